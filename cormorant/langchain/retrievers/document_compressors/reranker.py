"""What do the rerankers that score each document do alike?"""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.document_compressors.compressor import Call, Compressor
from cormorant.langchain.retrievers.document_compressors.ranking import ranked
from cormorant.ranges import is_number

__all__ = ["Reranker", "check_minimum"]


class Reranker(Compressor):
    """Question and documents to the best of them, by a score of its own.

    To make one, write ``_scores`` (and ``_ascores``, unless a thread will do).

    Args:
        top_n: Documents to keep; None: all. A call's ``top_n`` comes before it.
        min_rerank_score: The lowest score to keep, on the reranker's own scale.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.
    """

    top_n: int | None = defaults.RERANK_TOP_N
    min_rerank_score: float | None = None

    call_arguments: ClassVar[tuple[str, ...]] = ("top_n",)

    def __init__(self, **values: Any) -> None:
        if values.get("top_n") is not None:
            check_k(values["top_n"], "top_n")
        check_minimum(values.get("min_rerank_score"), "min_rerank_score")
        super().__init__(**values)

    def _scores(self, call: Call) -> dict[int, float]:
        """Each document's score by its position, higher is better; checked."""
        raise NotImplementedError

    async def _ascores(self, call: Call) -> dict[int, float]:
        """Like :meth:`_scores`; by default that, in a thread."""
        return await to_thread(self, self._scores, call)

    def _relevance(self, score: float) -> float | None:
        """The score as a relevance in [0, 1]; None if its scale is unknown."""
        del score
        return None

    @override
    def _compress(self, call: Call) -> Answer:
        return self._ranked(call, self._scores(call))

    @override
    async def _acompress(self, call: Call) -> Answer:
        scores = await self._ascores(call)
        return await aside(call.answer, self._ranked, call, scores)

    def _wanted(self, call: Call) -> int | None:
        return self.top_n if call.top_n is None else call.top_n

    def _ranked(self, call: Call, scores: dict[int, float]) -> Answer:
        return ranked(
            call.answer,
            scores,
            who=self.get_name(),
            top_n=self._wanted(call),
            minimum=self.min_rerank_score,
            relevance=self._relevance,
        )


def check_minimum(value: object, name: str) -> None:
    """Refuse what is no threshold.

    Raises:
        QueryError: If it is neither None nor a number.
    """
    if value is not None and not is_number(value):
        raise QueryError(f"{name} must be a number or None; got {value!r:.80}.")
