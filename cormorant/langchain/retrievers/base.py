"""What do all our retrievers do alike? Arguments, scores, runs, configs.

A retriever of ours says what it finds in ``_find`` and ``_afind``; everything around that is
here, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict
from typing_extensions import override

from cormorant import trace
from cormorant.errors import UsageError
from cormorant.langchain import provenance
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.configured import Configured
from cormorant.langchain.large_k import advised
from cormorant.langchain.provenance import Answer
from cormorant.langchain.request import check_text, refuse_unknown
from cormorant.langchain.retrievers.calling import Run
from cormorant.langchain.scopes.in_force import complete_config, of_call
from cormorant.langchain.wrappers import Retrieving
from cormorant.ranges import check_whole

__all__ = ["DEGRADED", "Retriever", "check_k"]

DEGRADED: Final = "cormorant_degraded"
"""The custom event of a run whose answer is a lesser one; its data are the sentences."""

_CONFIG: Final = "_config"  # how a call's config travels from invoke to the search


class Retriever(Configured, Retrieving, BaseRetriever):
    """Question to documents, with their scores and how they came by them.

    To make one, write ``_find`` (and ``_afind``, unless a thread will do), and list in
    ``call_arguments`` what a call may give.

    Args:
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        UsageError: On an argument nobody reads; ConfigError on one that is missing or wrong.
    """

    with_scores: bool = False

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")
    """What ``invoke`` takes besides ``with_scores``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    # To be written

    def _find(self, query: str, run: Run, **asked: Any) -> Iterable[Document]:
        """The documents, best first; an Answer if there is more to say.

        Args:
            query: The question, not blank.
            run: To call others from.
            **asked: Those of ``call_arguments`` that the call gave, none of them None.
        """
        raise NotImplementedError

    async def _afind(self, query: str, run: Run, **asked: Any) -> Iterable[Document]:
        """Like :meth:`_find`; by default that, in a thread."""
        return await to_thread(self, self._find, query, run.sync, **asked)

    def accepts(self, name: str) -> bool:
        """Whether ``invoke`` takes an argument of this name, and it reaches every child."""
        return name == "with_scores" or name in self.call_arguments

    # What callers use

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Find documents.

        Args:
            input: The question.
            config: LangChain's; ``configurable["scope"]`` narrows every Cormorant below.
            **kwargs: ``call_arguments`` of the class, and ``with_scores``.

        Returns:
            Documents, best first: copies, which also say how they got there (``retrieve``).

        Raises:
            UsageError: On an argument nobody reads.
        """
        with of_call(config):
            config = complete_config(config)
            return super().invoke(input, config, **_travelling(config, kwargs))

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Like :meth:`invoke`, without holding the event loop."""
        with of_call(config):
            config = complete_config(config)
            return await super().ainvoke(input, config, **_travelling(config, kwargs))

    # What LangChain calls

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        # A wrapper may come past invoke.
        with of_call(None), trace.span("retrieve", retriever=type(self).__name__) as span:
            run, asked, shown = self._asked(run_manager, kwargs)
            found = self._find(check_text(query), run, **asked)
            answer = self._handed_on(found, with_scores=shown)
            _noted(span, query, answer)
            if answer.degraded:
                dispatch_custom_event(DEGRADED, list(answer.degraded), config=run.child_config())
            return answer

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        with of_call(None), trace.span("retrieve", retriever=type(self).__name__) as span:
            run, asked, shown = self._asked(run_manager, kwargs)
            found = await self._afind(check_text(query), run, **asked)
            answer = await aside(found, self._handed_on, found, with_scores=shown)
            _noted(span, query, answer)
            if answer.degraded:
                says = list(answer.degraded)
                await adispatch_custom_event(DEGRADED, says, config=run.child_config())
            return answer

    def _handed_on(self, found: Iterable[Document], *, with_scores: bool) -> Answer:
        answer = advised(Answer.taken(found), self.get_name())
        return provenance.with_scores(answer) if with_scores else answer

    def _asked(
        self,
        manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        given: dict[str, Any],
    ) -> tuple[Run, dict[str, Any], bool]:
        given = dict(given)
        run = Run(manager, given.pop(_CONFIG, None) or complete_config(None))
        given.pop("verbose", None)  # LangChain reads it, and passes it on
        refuse_unknown(given, (*self.call_arguments, "with_scores"), f"{self.get_name()}.invoke")
        shown = given.pop("with_scores", None)
        asked = {name: value for name, value in given.items() if value is not None}
        if "k" in asked:
            check_k(asked["k"])
        return run, asked, self.with_scores if shown is None else bool(shown)


def _noted(span: trace.Span | trace.Silence, query: str, answer: Answer) -> None:
    span.note(found=len(answer), degraded=len(answer.degraded))
    span.tell(query=query)


def check_k(k: object, name: str = "k") -> None:
    """Refuse what is no number of documents.

    Raises:
        QueryError: If it is not a whole number of at least 1.
    """
    check_whole(name, k)


def _travelling(config: RunnableConfig, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The call's arguments with its config; LangChain reads a run's id among the former."""
    if _CONFIG in kwargs:
        raise UsageError(f"{_CONFIG} is no argument; config is the second one of invoke.")
    run_id = config.get("run_id")
    return {**({} if run_id is None else {"run_id": run_id}), **kwargs, _CONFIG: config}
