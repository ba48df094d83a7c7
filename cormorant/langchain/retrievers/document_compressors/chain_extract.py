"""Which sentences of each document answer the question, says a language model?"""

from __future__ import annotations

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
from cormorant.langchain.retrievers.document_compressors.compressor import Call, Compressor
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
        stripped = text.strip()
        return "" if plain(stripped) == plain(self.no_output_str) else stripped


class LLMChainExtractor(Compressor):
    """Shortens each document to what a language model finds relevant; drops one with nothing.

    Documents keep their ids, metadata, scores and order. All are asked at once, within the
    config's ``max_concurrency``.

    Args:
        llm_chain: ``get_input``'s output to text, empty if nothing is relevant.
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
        get_input: GetInput | None = None,
        **kwargs: Any,
    ) -> LLMChainExtractor:
        """Make one from a language model.

        Args:
            llm: The model.
            prompt: Over ``question`` and ``context``; its output parser, if it has one, reads
                the reply.
            get_input: Question and document to the prompt's variables.
            **kwargs: The class's other arguments.
        """
        prompt = _PROMPT if prompt is None else prompt
        chain = prompt | llm | (prompt.output_parser or NoOutputParser())
        return cls(llm_chain=chain, get_input=get_input or default_get_input, **kwargs)

    @override
    def _compress(self, call: Call) -> Iterable[Document]:
        return self._shortened(call, self.llm_chain.batch(asked(call, self.get_input), call.config))

    @override
    async def _acompress(self, call: Call) -> Iterable[Document]:
        outputs = await self.llm_chain.abatch(asked(call, self.get_input), call.config)
        return self._shortened(call, outputs)

    def _shortened(self, call: Call, outputs: Sequence[Any]) -> list[Document]:
        kept = []
        for document, output in zip(
            call.answer, checked(outputs, call, self.get_name()), strict=True
        ):
            text = text_of(output, self.get_name())
            if not text.strip():
                continue
            sizes = len(text), len(document.page_content)
            says = f"{self.get_name()}: {sizes[0]} characters, of {sizes[1]} before."
            detail = {"characters": sizes[0], "before": sizes[1]}
            short = document.model_copy(update={"page_content": text})
            kept.append(journeyed(short, Step("extract", kept=True, says=says, detail=detail)))
        return kept
