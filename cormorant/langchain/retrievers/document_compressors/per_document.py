"""How is a language model asked about each document by itself?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from cormorant.langchain.calls.blocking import aeach, aside, each, only_sync
from cormorant.langchain.calls.time_limit import time_left, to_thread
from cormorant.langchain.retrievers.asking.answers import (
    GetInput,
    default_get_input,
)
from cormorant.langchain.retrievers.asking.chain import chain_of, check_chain
from cormorant.langchain.retrievers.document_compressors.compressor import (
    Call,
    Compressor,
    RerankError,
)

__all__ = ["PerDocument"]


class PerDocument(Compressor):
    """Asks a model about each document, all of them at once.

    The base of those that extract, filter and grade. To make one, give
    ``default_prompt`` and ``default_parser``, and read what ``_replies`` and ``_areplies`` return.

    Args:
        llm_chain: ``get_input``'s output to a reply.
        get_input: Question and document to the chain's input.
    """

    llm_chain: Runnable[Any, Any]
    get_input: GetInput = default_get_input

    default_prompt: ClassVar[BasePromptTemplate[Any]]
    """Over ``question`` and ``context``."""

    default_parser: ClassVar[type[BaseOutputParser[Any]]]
    """Reads the replies, where the prompt has no parser of its own."""

    def __init__(self, **values: Any) -> None:
        check_chain(values.get("llm_chain"), "llm_chain")
        super().__init__(**values)

    @classmethod
    def from_llm(
        cls,
        llm: LanguageModelLike,
        prompt: BasePromptTemplate[Any] | None = None,
        get_input: GetInput | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make one from a language model.

        Args:
            llm: The model, or any Runnable from a prompt to text.
            prompt: Over ``question`` and ``context``; its output parser, if it has one, reads
                the reply.
            get_input: Question and document to the prompt's variables.
            **kwargs: The class's other arguments.

        Raises:
            ConfigError: If there is no model, or the prompt has other variables.
        """
        prompt = cls.default_prompt if prompt is None else prompt
        chain = chain_of(
            prompt,
            llm,
            getattr(prompt, "output_parser", None) or cls.default_parser(),
            call=f"{cls.__name__}.from_llm(llm)",
            gives=("question", "context") if get_input is None else None,
        )
        return cls(llm_chain=chain, get_input=get_input or default_get_input, **kwargs)

    def _replies(self, call: Call) -> Sequence[Any]:
        """The chain's replies, one per document."""
        replies = each(self.llm_chain, self._inputs(call), call.config, name=self.get_name())
        return self._checked(call, replies)

    async def _areplies(self, call: Call) -> Sequence[Any]:
        """Like :meth:`_replies`, awaiting the chain."""
        if only_sync(self.llm_chain) and time_left() is not None:
            return await to_thread(self, self._replies, call)
        inputs = await aside(call.answer, self._inputs, call)
        return self._checked(call, await aeach(self.llm_chain, inputs, call.config))

    def _inputs(self, call: Call) -> list[Any]:
        return [self.get_input(call.query, document) for document in call.answer]

    def _checked(self, call: Call, replies: Sequence[Any]) -> Sequence[Any]:
        if len(replies) != len(call.answer):
            raise RerankError(
                f"{self.get_name()} got {len(replies)} answers for {len(call.answer)} documents; "
                "its chain must give one per document, in their order."
            )
        return replies
