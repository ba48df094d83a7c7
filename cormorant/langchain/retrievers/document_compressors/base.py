"""How do several compressors work one after the other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer
from pydantic import Field
from typing_extensions import override

from cormorant.errors import QueryError, RerankError, UsageError
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.document_compressors.compressor import Call, Compressor
from cormorant.langchain.retrievers.document_compressors.foreign import Foreign, as_compressor
from cormorant.langchain.retrievers.document_compressors.vectors import embedded_once

__all__ = [
    "BaseDocumentCompressor",
    "BaseDocumentTransformer",
    "Compressor",
    "DocumentCompressorPipeline",
    "RerankError",
    "acompressed",
    "compressed",
]


class DocumentCompressorPipeline(Compressor):
    """Compressors one after the other, each over what the one before kept.

    Texts are embedded once, however many stages compare them with one embedder. ``top_n`` of a
    call reaches every stage that has one: none keeps fewer, and no more come back.

    Args:
        transformers: At least one document compressor, document transformer, or Runnable that
            takes ``{"query", "documents"}``.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        UsageError: On a stage that is none of these.

    Example:
        >>> from langchain_core.documents import Document
        >>> from cormorant.langchain.document_transformers import LongContextReorder
        >>> from cormorant.langchain.retrievers.document_compressors import TokenBudgetPacker
        >>> pipeline = DocumentCompressorPipeline(
        ...     transformers=[TokenBudgetPacker(token_budget=3), LongContextReorder()]
        ... )
        >>> documents = [Document("one"), Document("two"), Document("six"), Document("ten")]
        >>> [doc.page_content for doc in pipeline.invoke({"query": "?", "documents": documents})]
        ['one', 'six', 'two']
    """

    transformers: list[Any] = Field(min_length=1)

    call_arguments: ClassVar[tuple[str, ...]] = ("top_n",)
    needs_query: ClassVar[bool] = False  # its stages say for themselves

    def __init__(self, **values: Any) -> None:
        stages = values.get("transformers")
        if not isinstance(stages, (list, tuple)) or not stages:
            raise UsageError(
                f"transformers must be a list of compressors, not empty; got {stages!r}."
            )
        for stage in stages:
            as_compressor(stage)
        super().__init__(**values)

    @property
    @override
    def arranges(self) -> bool:
        return as_compressor(self.transformers[-1]).arranges

    @override
    def _compress(self, call: Call) -> Answer:
        with embedded_once():
            return compressed(self.transformers, call)

    @override
    async def _acompress(self, call: Call) -> Answer:
        with embedded_once():
            return await acompressed(self.transformers, call)


def compressed(stages: Sequence[Any], call: Call) -> Answer:
    """The documents after all stages; at most ``call.top_n`` of them."""
    first, turns = _turns(stages, call.top_n)
    answer = call.answer.of(call.answer[:first])
    for turn in turns:
        if answer:
            input = {"query": call.query, "documents": answer}
            answer = turn.cut(Answer.taken(turn.stage.invoke(input, call.config, **turn.arguments)))
    return answer


async def acompressed(stages: Sequence[Any], call: Call) -> Answer:
    """Like :func:`compressed`, awaiting each stage's own async method."""
    first, turns = _turns(stages, call.top_n)
    answer = call.answer.of(call.answer[:first])
    for turn in turns:
        if answer:
            input = {"query": call.query, "documents": answer}
            found = await turn.stage.ainvoke(input, call.config, **turn.arguments)
            answer = turn.cut(Answer.taken(found))
    return answer


@dataclass(frozen=True, slots=True)
class _Turn:
    """One stage, what it is asked, and how many of its documents go on."""

    stage: Compressor
    arguments: dict[str, Any]
    limit: int | None = None

    def cut(self, answer: Answer) -> Answer:
        return answer if self.limit is None else answer.of(answer[: self.limit])


def _turns(stages: Sequence[Any], top_n: int | None) -> tuple[int | None, list[_Turn]]:
    """How many documents the first stage gets, and the stages' turns."""
    ours = [as_compressor(stage) for stage in stages]
    if top_n is None:
        return None, [_Turn(stage, {}) for stage in ours]
    # What comes out of stages that arrange is not in the order of rank: cut before them.
    last = len(ours) - 1
    while last >= 0 and ours[last].arranges and "top_n" not in ours[last].call_arguments:
        last -= 1
    turns = []
    for position, stage in enumerate(ours):
        _refuse_fewer(stage, top_n)
        takes = "top_n" in stage.call_arguments
        arguments = {"top_n": stage.room_for(top_n)} if takes else {}
        turns.append(_Turn(stage, arguments, top_n if position == last else None))
    return (top_n if last < 0 else None), turns


def _refuse_fewer(stage: Compressor, top_n: int) -> None:
    own = getattr(stage.stage, "top_n", None) if isinstance(stage, Foreign) else None
    if isinstance(own, int) and own < top_n:
        raise QueryError(
            f"{top_n} documents are wanted, and {stage.get_name()} keeps {own} whatever a call "
            f"says. Make it with top_n={top_n} or more."
        )
