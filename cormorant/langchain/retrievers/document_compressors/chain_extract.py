"""Which sentences of each document answer the question, says a language model?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from langchain_core.documents import Document
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from typing_extensions import override

from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.provenance import journeyed
from cormorant.langchain.retrievers.asking.answers import (
    default_get_input,
    plain,
    text_of,
)
from cormorant.langchain.retrievers.asking.rewriting import unthought
from cormorant.langchain.retrievers.document_compressors.compressor import Call, RerankError
from cormorant.langchain.retrievers.document_compressors.per_document import PerDocument
from cormorant.model import Step

__all__ = ["LLMChainExtractor", "NoOutputParser", "default_get_input"]

NO_OUTPUT: Final = "NO_OUTPUT"

_PROMPT: Final = PromptTemplate.from_template(
    """Copy from the passage those sentences that help to answer the question. Copy them word for \
word: no rewording, no translation, nothing of your own. If no sentence helps, write NO_OUTPUT.

Question: {question}

Passage:
<passage>
{context}
</passage>

Sentences:"""
)


class NoOutputParser(BaseOutputParser[str]):
    """The text, or nothing if the model says there is nothing."""

    no_output_str: str = NO_OUTPUT

    @override
    def parse(self, text: str) -> str:
        stripped = unthought(text).strip()
        return "" if plain(stripped) == plain(self.no_output_str) else stripped


class LLMChainExtractor(PerDocument):
    """Shortens each document to what a language model finds relevant; drops one with nothing.

    Documents keep their ids, metadata, scores and order. All are asked at once, within the
    config's ``max_concurrency``; async, without one, ``defaults.CALLS_AT_ONCE``.

    Args:
        llm_chain: ``get_input``'s output to text, empty if nothing is relevant.
        get_input: Question and document to the chain's input.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.
    """

    default_prompt: ClassVar[BasePromptTemplate[Any]] = _PROMPT
    default_parser: ClassVar[type[BaseOutputParser[Any]]] = NoOutputParser

    @override
    def _compress(self, call: Call) -> Iterable[Document]:
        return self._shortened(call, self._replies(call))

    @override
    async def _acompress(self, call: Call) -> Iterable[Document]:
        replies = await self._areplies(call)
        return await aside(call.answer, self._shortened, call, replies)

    def _shortened(self, call: Call, replies: Sequence[Any]) -> list[Document]:
        kept = []
        for document, reply in zip(call.answer, replies, strict=True):
            text = text_of(reply, self.get_name(), RerankError)
            if not text.strip():
                continue
            sizes = len(text), len(document.page_content)
            says = f"{self.get_name()}: {sizes[0]} characters, of {sizes[1]} before."
            detail = {"characters": sizes[0], "before": sizes[1]}
            short = document.model_copy(update={"page_content": text})
            kept.append(journeyed(short, Step("extract", kept=True, says=says, detail=detail)))
        return kept
