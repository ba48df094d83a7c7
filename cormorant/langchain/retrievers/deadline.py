"""How is a stage held to its time? By a runnable around it."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase
from typing_extensions import override

from cormorant.errors import ConfigError
from cormorant.langchain.calls.blocking import only_sync
from cormorant.langchain.calls.time_limit import Stage, alimited, limited, limited_in_thread
from cormorant.langchain.configured import Configured
from cormorant.langchain.scopes.children import innermost
from cormorant.langchain.wrappers import Wrapper
from cormorant.ranges import is_number

__all__ = ["Deadline", "with_deadline"]


class Deadline(Configured, Wrapper, RunnableBindingBase[Any, Any]):
    """A stage that answers in time, or raises DeadlineExceeded; made by :func:`with_deadline`.

    Args:
        bound: The stage.
        seconds: The most a call may take.
    """

    seconds: float

    def __init__(self, **values: Any) -> None:
        _check_seconds(values.get("seconds"))
        super().__init__(**values)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As the stage's, in time.

        Raises:
            DeadlineExceeded: If it takes longer, or what is around it has no time left.
        """
        return self._call_with_config(self._timed, input, config, **kwargs)  # type: ignore[arg-type]

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Like :meth:`invoke`, without holding the event loop; what is late is cancelled."""
        return await self._acall_with_config(self._atimed, input, config, **kwargs)  # type: ignore[arg-type]

    def _timed(self, input: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        return limited(copy_context(), lambda: self._ask(input, config, kwargs), self._stage)

    async def _atimed(self, input: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        if only_sync(self.bound):
            return await limited_in_thread(
                copy_context(), lambda: self._ask(input, config, kwargs), self._stage
            )
        ask = RunnableBindingBase.ainvoke
        return await alimited(
            copy_context(), lambda: ask(self, input, config, **kwargs), self._stage
        )

    def _ask(self, input: Any, config: RunnableConfig, kwargs: dict[str, Any]) -> Any:
        return RunnableBindingBase.invoke(self, input, config, **kwargs)

    @property
    def _stage(self) -> Stage:
        return Stage(self.get_name(), innermost(self.bound), self.seconds)


def with_deadline(stage: object, seconds: float) -> Deadline:
    """A stage that answers within so many seconds, or raises DeadlineExceeded.

    Around a whole retriever it is the time of all its stages: each sees what is left, and the
    retriever can still fuse or return what came in time. Around one stage, it is that stage's;
    what then happens the retriever around it says: ``on_error="degrade"`` leaves a late leg or
    reranker out, a late rewriter is done without, and ``degraded`` names it.

    Async work is cancelled when it is late. Sync work cannot be stopped: it runs in a thread of
    its own that is left to itself, does what it does to its end, and holds no exit of the program
    up. When too many calls of one stage are left running, it is not asked at all, which raises
    DeadlineExceeded at once.

    Args:
        stage: A retriever, a document compressor or transformer, a model, a chain, a function.
        seconds: More than 0, for each call. What a model streams arrives as one piece.

    Raises:
        ConfigError: If the stage is none of these, or ``seconds`` is no such number.

    Example:
        >>> import time
        >>> from cormorant.langchain.retrievers import BM25Retriever, EnsembleRetriever
        >>> words = BM25Retriever.from_texts(["a fish", "a boat"])
        >>> slow = with_deadline(lambda question: time.sleep(1), seconds=0.05)
        >>> both = EnsembleRetriever(retrievers=[words, slow], on_error="degrade")
        >>> result = both.retrieve("fish")
        >>> [hit.text for hit in result]
        ['a fish']
        >>> "within 0.05 s" in result.degraded[0]
        True
    """
    return Deadline(bound=_runnable(stage), seconds=seconds)


def _runnable(stage: object) -> Runnable[Any, Any]:
    if isinstance(stage, Runnable):
        return stage
    if isinstance(stage, (BaseDocumentCompressor, BaseDocumentTransformer)):
        from cormorant.langchain.retrievers.document_compressors.foreign import as_compressor

        return as_compressor(stage)
    if callable(stage):
        return RunnableLambda(stage)
    raise ConfigError(
        "with_deadline takes a retriever, a document compressor, a model, a chain or a function; "
        f"got {stage!r:.80}."
    )


def _check_seconds(seconds: object) -> None:
    if not is_number(seconds) or seconds <= 0:
        raise ConfigError(f"seconds must be a number of more than 0; got {seconds!r:.80}.")
