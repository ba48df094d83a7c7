"""Nearest vectors by scanning small codes, then comparing the best of them exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import LegResult, Mask
from cormorant.index.vector.coded import Coded
from cormorant.index.vector.exact import ExactIndex
from cormorant.index.vector.metric import scores
from cormorant.index.vector.topk import TopK
from cormorant.model import Metric

__all__ = ["PqIndex"]

_CODES_PER_ROW = 100
"""Codes scanned in the time it takes to fetch and compare one vector (docs/decisions/0015)."""
_FIXED_ROWS = 500
"""Vectors compared in the time a scan of codes takes before its first code."""


class PqIndex:
    """A :class:`~cormorant.index.contract.VectorIndex` that may miss a neighbour, and says so.

    Slots behind the last code are scanned exactly, so what was just added is found. Where that
    is the quicker way, because the mask lets few through or many hits are wanted, everything is.

    Args:
        coded: The codes of the first slots.
        vectors: float32, shape (n, dim), n ≥ ``coded.n``; may be mapped read-only.
        metric: How to compare.
        has_vector: bool, shape (n,): False where the row means nothing; None if all do.
    """

    __slots__ = ("_coded", "_exact", "_has_vector", "_metric", "_vectors")

    def __init__(
        self,
        coded: Coded,
        vectors: NDArray[np.float32],
        metric: Metric,
        has_vector: Mask | None = None,
    ) -> None:
        self._coded = coded
        self._vectors = vectors
        self._metric = metric
        self._has_vector = has_vector
        self._exact = ExactIndex(vectors, metric, has_vector)

    def search(self, query: NDArray[np.float32], k: int, mask: Mask | None) -> LegResult:
        """The ``k`` best among the slots where ``mask`` is True, as far as the codes tell.

        Args:
            query: float32, shape (dim,), as :func:`check_vector` returns it.
            k: At least 1; more than there are is fine.
            mask: bool, shape (n,), False for the dead; None: all that have a vector.

        Returns:
            Best first, ties by the lower slot; scores are exact, the choice may not be.
        """
        if self._has_vector is not None:
            mask = self._has_vector if mask is None else mask & self._has_vector
        coded, n = self._coded, len(self._vectors)
        eligible = n if mask is None else int(np.count_nonzero(mask))
        rescore = coded.rescored(k)
        if eligible <= rescore + coded.n // _CODES_PER_ROW + _FIXED_ROWS:
            scanned = self._exact.search(query, k, mask)
            why = f"that is quicker than the {coded.n:,} codes for so few rows or so many hits"
            return replace(scanned, says=f"{scanned.says}: {why}")
        near = coded.kernel().search(
            query, rescore, None if mask is None else mask[: coded.n], probes=coded.probes
        )
        near = np.sort(near)
        best = TopK(k)
        best.feed(scores(query, self._vectors[near], self._metric), near)
        newer = self._newer(query, k, mask, best)
        slots, found = best.best()
        return LegResult(
            slots=slots,
            scores=found,
            matched=eligible,
            exact=False,
            counters={
                "codes_scanned": coded.n,
                "rows_scanned": len(near) + newer,
                "rows_eligible": eligible,
            },
            says=(
                f"vector: approximate by {self._metric}: {coded.n:,} codes scanned, the best "
                f"{len(near):,} compared exactly"
                + (f", and {newer:,} newer rows" if newer else "")
                + f"; recall measured at {coded.recall:.3f}"
            ),
        )

    def score(self, query: NDArray[np.float32], slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Exact scores of the given slots, as :class:`ExactIndex` gives them."""
        return self._exact.score(query, slots)

    def _newer(self, query: NDArray[np.float32], k: int, mask: Mask | None, best: TopK) -> int:
        """Feed the best of the slots behind the last code; returns how many were looked at."""
        first = self._coded.n
        rest = self._vectors[first:]
        if not len(rest):
            return 0
        tail = ExactIndex(rest, self._metric).search(
            query, k, None if mask is None else mask[first:]
        )
        order = np.argsort(tail.slots)
        best.feed(tail.scores[order], tail.slots[order] + first)
        return tail.counters["rows_scanned"]
