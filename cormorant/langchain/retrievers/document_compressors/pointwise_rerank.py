"""How relevant is each document, from 1 to 10, says a language model?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from typing_extensions import override

from cormorant.analysis.normalise import normalise
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.retrievers.asking.answers import text_of
from cormorant.langchain.retrievers.asking.rewriting import quoted, unthought
from cormorant.langchain.retrievers.document_compressors.compressor import Call, RerankError
from cormorant.langchain.retrievers.document_compressors.per_document import PerDocument
from cormorant.langchain.retrievers.document_compressors.reranker import Reranker

__all__ = ["LLMPointwiseRerank", "ScoreOutputParser"]

_PROMPT: Final = PromptTemplate.from_template(
    """How well does the passage answer the question? Give a whole number from 1 to 10: 1 if it is \
about something else, 5 if it touches on the question, 10 if it answers it fully. Write the \
number alone.

Question: {question}

Passage:
<passage>
{context}
</passage>

Number:"""
)
# What names the scale is no score on it.
_SCALE: Final = re.compile(
    r"(?:from\s+|between\s+)?\b1\s*(?:to|and|-|–|到|~)\s*10\b|(?:/|\bout\s+of)\s*10\b|满分\s*10\s*分?",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?(?![\d%])")


class ScoreOutputParser(BaseOutputParser[float]):
    """The one number from 1 to 10 in a reply: ``7``, ``Score: 7/10``, ``7 out of 10``, ``评分：7``.

    Raises:
        RerankError: If the reply holds none, several, or one outside the scale.
    """

    @override
    def parse(self, text: str) -> float:
        bare = _SCALE.sub(" ", normalise(unthought(text)))
        numbers = {float(found) for found in _NUMBER.findall(bare)}
        if len(numbers) != 1 or not 1 <= min(numbers) <= 10:
            raise RerankError(f"The reply must be one number from 1 to 10; got {quoted(text)}.")
        return numbers.pop()


class LLMPointwiseRerank(PerDocument, Reranker):
    """Has a language model grade each document from 1 to 10, and keeps the best.

    Documents with equal grades stay in their earlier order. All are asked at once, within the
    config's ``max_concurrency``; async, without one, ``defaults.CALLS_AT_ONCE``.
    Each costs a call of the model.

    Args:
        llm_chain: ``get_input``'s output to a number from 1 to 10, or to text that holds one.
        get_input: Question and document to the chain's input.
        top_n: Documents to keep; None: all. A call's ``top_n`` comes before it.
        min_rerank_score: The lowest grade to keep.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.
    """

    default_prompt: ClassVar[BasePromptTemplate[Any]] = _PROMPT
    default_parser: ClassVar[type[BaseOutputParser[Any]]] = ScoreOutputParser

    @override
    def _scores(self, call: Call) -> dict[int, float]:
        return self._grades(self._replies(call))

    @override
    async def _ascores(self, call: Call) -> dict[int, float]:
        replies = await self._areplies(call)
        return await aside(replies, self._grades, replies)

    def _grades(self, replies: Sequence[Any]) -> dict[int, float]:
        who = self.get_name()
        return {position: _grade(reply, who) for position, reply in enumerate(replies)}

    @override
    def _relevance(self, score: float) -> float:
        return (score - 1.0) / 9.0


def _grade(output: Any, who: str) -> float:
    if isinstance(output, (int, float)) and not isinstance(output, bool):
        if not 1 <= output <= 10:  # NaN is not, either
            raise RerankError(f"{who} needs a number from 1 to 10 from its chain; got {output!r}.")
        return float(output)
    return ScoreOutputParser().parse(text_of(output, who, RerankError))
