"""What is found for what a user meant, said plainly and without what went before?"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Final

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import convert_to_messages, get_buffer_string
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import Runnable
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from typing_extensions import override

from cormorant.errors import RewriteError, UsageError
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.asking.chain import chain_of, check_chain, check_retriever
from cormorant.langchain.retrievers.asking.rewriting import (
    aask_model,
    ask_model,
    excuse,
    flaw,
    passage,
    questions,
    quoted,
    told,
)
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, cut, takes
from cormorant.langchain.retrievers.fusing.legs import OnError

__all__ = ["DEFAULT_QUERY_PROMPT", "RePhraseQueryRetriever"]

logger = logging.getLogger(__name__)

DEFAULT_QUERY_PROMPT: Final = PromptTemplate.from_template(
    """Turn the user's words below into one search query: what they want to know, without \
greetings, stories and requests about the form of the answer. Keep names, numbers and the language \
of the question. Write the query alone.

User: {question}"""
)
_HISTORY_PROMPT: Final = PromptTemplate.from_template(
    """Turn the last words of the user below into one search query that can be understood without \
the conversation: put what they refer to in place of "it", "that" and the like. Keep names, \
numbers and the language of the question. Write the query alone.

Conversation:
{chat_history}

User: {question}"""
)


class RePhraseQueryRetriever(Retriever):
    """A model says the question plainly, and that is searched for.

    With ``chat_history`` in the call, what the question refers to is put in its place. If the
    model fails, refuses or writes nothing, the question is searched as it was put, and
    ``degraded`` says so.

    Args:
        retriever: Any retriever or Runnable from a question to Documents.
        llm_chain: The question (in a call with history ``{"question", "chat_history"}``) to text.
        history_chain: ``{"question", "chat_history"}`` to text; None: ``llm_chain``.
        k: Documents wanted, of a retriever that takes ``k`` or brings more; by default what it
            brings.
        on_llm_error: ``raise`` hands on the model's failure.

    A call takes ``k`` and ``filter``, which reach the retriever or are refused, and
    ``chat_history``: messages, or (role, text) pairs.

    Raises:
        UsageError: On an argument nobody reads, or a history that is none.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from cormorant.langchain.retrievers import BM25Retriever
        >>> retriever = RePhraseQueryRetriever.from_llm(
        ...     BM25Retriever.from_texts(["gulls eat bread", "cormorants eat fish"]),
        ...     FakeListChatModel(responses=["what do cormorants eat"]),
        ... )
        >>> history = [("human", "What is a cormorant?"), ("ai", "A bird.")]
        >>> retriever.invoke("And its food?", chat_history=history)[0].page_content
        'cormorants eat fish'
    """

    retriever: RetrieverLike
    llm_chain: Runnable[Any, Any]
    history_chain: Runnable[Any, Any] | None = None
    k: int | None = None
    on_llm_error: OnError = "degrade"

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter", "chat_history")

    def __init__(self, **values: Any) -> None:
        check_retriever(values.get("retriever"))
        check_chain(values.get("llm_chain"), "llm_chain")
        if values.get("history_chain") is not None:
            check_chain(values["history_chain"], "history_chain")
        if values.get("k") is not None:
            check_k(values["k"])
        super().__init__(**values)

    @classmethod
    def from_llm(
        cls,
        retriever: RetrieverLike,
        llm: LanguageModelLike,
        prompt: BasePromptTemplate[Any] = DEFAULT_QUERY_PROMPT,
        history_prompt: BasePromptTemplate[Any] | None = None,
        **kwargs: Any,
    ) -> RePhraseQueryRetriever:
        """Make one from a language model.

        Args:
            retriever: Any retriever or Runnable from a question to Documents.
            llm: The model.
            prompt: Over ``question``.
            history_prompt: Over ``question`` and ``chat_history``.
            **kwargs: The class's other arguments.
        """
        call = f"{cls.__name__}.from_llm(retriever, llm)"
        with_history = _HISTORY_PROMPT if history_prompt is None else history_prompt
        known = ("question", "chat_history")
        return cls(
            retriever=retriever,
            llm_chain=chain_of(prompt, llm, StrOutputParser(), call=call, gives=1),
            history_chain=chain_of(with_history, llm, StrOutputParser(), call=call, gives=known),
            **kwargs,
        )

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the retriever and the chains."""
        chains = (self.llm_chain, self.history_chain)
        below = (self.retriever, *(chain for chain in chains if chain is not None))
        return get_unique_config_specs(spec for child in below for spec in child.config_specs)

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call takes an argument of this name, and it reaches where it must."""
        own = name in {"with_scores", "chat_history"}
        return super().accepts(name) and (own or takes(self.retriever, name))

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        chain, input = self._asking(query, asked.pop("chat_history", None))
        says: tuple[str, ...] = ()
        try:
            text = self._read(ask_model(run, chain, input, "llm_chain"))
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            text, says = query, self._alone(error)
        found = run.call(self.retriever, text, tag="retriever", **self._reaching(asked))
        return self._told(found, text, says, asked)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        chain, input = self._asking(query, asked.pop("chat_history", None))
        says: tuple[str, ...] = ()
        try:
            output = await aask_model(run, chain, input, "llm_chain")
            text = await aside(output, self._read, output)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            text, says = query, self._alone(error)
        found = await run.acall(self.retriever, text, tag="retriever", **self._reaching(asked))
        return self._told(found, text, says, asked)

    def _reaching(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The call's arguments, and the k of one's own where the retriever takes one."""
        own = {"k": self.k} if self.k is not None and takes(self.retriever, "k") else {}
        return {**own, **asked}

    def _told(
        self, found: Answer, text: str, says: tuple[str, ...], asked: dict[str, Any]
    ) -> Answer:
        k = asked.get("k", self.k)
        return told(found if k is None else cut(found, k), [f"re-phrased: {text}"], says)

    def _asking(self, query: str, history: Any) -> tuple[Runnable[Any, Any], Any]:
        if not history:
            return self.llm_chain, query
        try:
            written = get_buffer_string(convert_to_messages(history))
        except Exception as error:
            raise UsageError(
                "chat_history takes messages, or (role, text) pairs such as ('human', 'Hello'); "
                f"got {history!r}."
            ) from error
        return self.history_chain or self.llm_chain, {"question": query, "chat_history": written}

    def _read(self, output: Any) -> str:
        written = passage(output, self.get_name())
        lines = questions(written, self.get_name()) if written else []
        if not lines:
            raise RewriteError("it wrote no query")
        logger.info("Re-phrased question: %s", quoted(" ".join(lines)))
        # A query over several lines stays one; with chatter around it, the query alone is left.
        query = " ".join(lines)
        wrong = flaw(query)
        if wrong is not None:
            raise RewriteError(f"its query cannot be searched for: {wrong}")
        return query

    def _alone(self, error: Exception) -> tuple[str, ...]:
        return (excuse(error, self.on_llm_error, "the question was searched as it was put"),)
