"""Is each document relevant to the question, says a language model?"""

from __future__ import annotations

import re
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
from cormorant.langchain.retrievers.asking.rewriting import quoted, unthought
from cormorant.langchain.retrievers.document_compressors.compressor import Call, RerankError
from cormorant.langchain.retrievers.document_compressors.per_document import PerDocument
from cormorant.model import Step

__all__ = ["BooleanOutputParser", "LLMChainFilter", "default_get_input"]

_PROMPT: Final = PromptTemplate.from_template(
    """Does the passage help to answer the question? Answer with one word, YES or NO.

Question: {question}

Passage:
<passage>
{context}
</passage>

YES or NO:"""
)
_CHINESE: Final = {"是": True, "相关": True, "否": False, "不是": False, "不相关": False}


class BooleanOutputParser(BaseOutputParser[bool]):
    """YES or NO, in any case, as a word of its own; 是 or 否 alone.

    Raises:
        RerankError: If the reply says neither, or both.
    """

    true_val: str = "YES"
    false_val: str = "NO"

    @override
    def parse(self, text: str) -> bool:
        text = unthought(text)
        if plain(text) in _CHINESE:
            return _CHINESE[plain(text)]
        # The longer one first, so that "NOT RELEVANT" is not read as "RELEVANT".
        words = sorted((self.true_val, self.false_val), key=len, reverse=True)
        pattern = rf"\b({'|'.join(map(re.escape, words))})\b"
        says = {found.upper() for found in re.findall(pattern, text, re.IGNORECASE)}
        if len(says) != 1:
            raise RerankError(
                f"The reply must say {self.true_val} or {self.false_val}, and not both; got "
                f"{quoted(text)}."
            )
        return says == {self.true_val.upper()}


class LLMChainFilter(PerDocument):
    """Drops each document that a language model finds irrelevant.

    Documents keep their ids, metadata, scores and order. All are asked at once, within the
    config's ``max_concurrency``; async, without one, ``defaults.CALLS_AT_ONCE``.

    Args:
        llm_chain: ``get_input``'s output to a bool, or to text that says YES or NO.
        get_input: Question and document to the chain's input.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.
    """

    default_prompt: ClassVar[BasePromptTemplate[Any]] = _PROMPT
    default_parser: ClassVar[type[BaseOutputParser[Any]]] = BooleanOutputParser

    @override
    def _compress(self, call: Call) -> Iterable[Document]:
        return self._relevant(call, self._replies(call))

    @override
    async def _acompress(self, call: Call) -> Iterable[Document]:
        replies = await self._areplies(call)
        return await aside(call.answer, self._relevant, call, replies)

    def _relevant(self, call: Call, replies: Sequence[Any]) -> list[Document]:
        who = self.get_name()
        verdicts = [_verdict(reply, who) for reply in replies]
        step = Step("llm_filter", kept=True, says=f"{who}: relevant.")
        return [
            journeyed(document, step)
            for document, verdict in zip(call.answer, verdicts, strict=True)
            if verdict
        ]


def _verdict(output: Any, who: str) -> bool:
    return (
        output
        if isinstance(output, bool)
        else BooleanOutputParser().parse(text_of(output, who, RerankError))
    )
