"""Is each document relevant to the question, says a language model?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable
from typing_extensions import override

from cormorant.langchain.provenance import journeyed
from cormorant.langchain.retrievers.document_compressors.answers import (
    GetInput,
    asked,
    check_chain,
    checked,
    default_get_input,
    plain,
    text_of,
)
from cormorant.langchain.retrievers.document_compressors.compressor import (
    Call,
    Compressor,
    RerankError,
)
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
        if plain(text) in _CHINESE:
            return _CHINESE[plain(text)]
        # The longer one first, so that "NOT RELEVANT" is not read as "RELEVANT".
        words = sorted((self.true_val, self.false_val), key=len, reverse=True)
        pattern = rf"\b({'|'.join(map(re.escape, words))})\b"
        says = {found.upper() for found in re.findall(pattern, text, re.IGNORECASE)}
        if len(says) != 1:
            raise RerankError(
                f"The reply must say {self.true_val} or {self.false_val}, and not both; got "
                f"{text!r}."
            )
        return says == {self.true_val.upper()}


class LLMChainFilter(Compressor):
    """Drops each document that a language model finds irrelevant.

    Documents keep their ids, metadata, scores and order. All are asked at once, within the
    config's ``max_concurrency``.

    Args:
        llm_chain: ``get_input``'s output to a bool, or to text that says YES or NO.
        get_input: Question and document to the chain's input.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.
    """

    llm_chain: Runnable[Any, Any]
    get_input: GetInput = default_get_input

    def __init__(self, **values: Any) -> None:
        check_chain(values.get("llm_chain"), "llm_chain")
        super().__init__(**values)

    @classmethod
    def from_llm(
        cls,
        llm: LanguageModelLike,
        prompt: BasePromptTemplate[Any] | None = None,
        **kwargs: Any,
    ) -> LLMChainFilter:
        """Make one from a language model.

        Args:
            llm: The model.
            prompt: Over ``question`` and ``context``; its output parser, if it has one, reads
                the reply.
            **kwargs: The class's other arguments.
        """
        prompt = _PROMPT if prompt is None else prompt
        chain = prompt | llm | (prompt.output_parser or BooleanOutputParser())
        return cls(llm_chain=chain, **kwargs)

    @override
    def _compress(self, call: Call) -> Iterable[Document]:
        return self._relevant(call, self.llm_chain.batch(asked(call, self.get_input), call.config))

    @override
    async def _acompress(self, call: Call) -> Iterable[Document]:
        outputs = await self.llm_chain.abatch(asked(call, self.get_input), call.config)
        return self._relevant(call, outputs)

    def _relevant(self, call: Call, outputs: Sequence[Any]) -> list[Document]:
        who = self.get_name()
        verdicts = [_verdict(output, who) for output in checked(outputs, call, who)]
        step = Step("llm_filter", kept=True, says=f"{who}: relevant.")
        return [
            journeyed(document, step)
            for document, verdict in zip(call.answer, verdicts, strict=True)
            if verdict
        ]


def _verdict(output: Any, who: str) -> bool:
    return output if isinstance(output, bool) else BooleanOutputParser().parse(text_of(output, who))
