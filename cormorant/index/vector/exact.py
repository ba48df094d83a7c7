"""Nearest vectors by looking at every one that may be returned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import LegResult, Mask
from cormorant.index.vector.metric import scores
from cormorant.index.vector.topk import TopK
from cormorant.model import Metric

__all__ = ["ExactIndex"]

BLOCK_BYTES = 4 << 20  # vectors looked at in one go
GATHER_BELOW = 0.3
"""Copy the wanted rows of a block together if they are fewer than this part of it.

Above it, scoring the whole block and leaving some scores unused costs less than the copy;
measured at 10k, 100k and 1M rows of 384, see docs/decisions/0011.
"""


class ExactIndex:
    """A :class:`~cormorant.index.contract.VectorIndex` that is never wrong.

    Args:
        vectors: float32, shape (n, dim), rows L2-normalised under cosine; may be mapped
            read-only. Kept as it is, never copied as a whole.
        metric: How to compare.
        has_vector: bool, shape (n,): False where the row means nothing; None if all do.
    """

    __slots__ = ("_has_vector", "_metric", "_vectors")

    def __init__(
        self, vectors: NDArray[np.float32], metric: Metric, has_vector: Mask | None = None
    ) -> None:
        self._vectors = vectors
        self._metric = metric
        self._has_vector = has_vector

    def search(self, query: NDArray[np.float32], k: int, mask: Mask | None) -> LegResult:
        """The ``k`` best among the slots where ``mask`` is True.

        Args:
            query: float32, shape (dim,), as :func:`check_vector` returns it.
            k: At least 1; more than there are is fine.
            mask: bool, shape (n,), False for the dead; None: all that have a vector.

        Returns:
            Best first, ties by the lower slot.
        """
        n = len(self._vectors)
        wanted = self._wanted(mask)
        count = n if wanted is None else len(wanted)
        best = TopK(min(k, count) or 1)
        block = self._block()
        scanned = 0
        if wanted is None:
            for start in range(0, n, block):
                best.feed(scores(query, self._vectors[start : start + block], self._metric), start)
            scanned = n
        else:
            for first in range(0, count, block):
                some = wanted[first : first + block]
                start, stop = int(some[0]), int(some[-1]) + 1
                if len(some) < GATHER_BELOW * (stop - start):
                    best.feed(scores(query, self._vectors[some], self._metric), some)
                    scanned += len(some)
                    continue
                row = scores(query, self._vectors[start:stop], self._metric)
                best.feed(row[some - start], some)
                scanned += stop - start
        slots, found = best.best()
        return LegResult(
            slots=slots,
            scores=found,
            matched=count,
            exact=True,
            counters={"rows_scanned": scanned, "rows_eligible": count},
            says=f"vector: exact scan of {_of(count, n)} by {self._metric}",
        )

    def score(self, query: NDArray[np.float32], slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Exact scores of the given slots, bit for bit those of :meth:`search`.

        Args:
            query: float32, shape (dim,).
            slots: int64, any order, repeats allowed.

        Returns:
            float32, in the order of ``slots``; -inf where a slot has no vector.
        """
        found = np.empty(len(slots), dtype=np.float32)
        block = self._block()
        for start in range(0, len(slots), block):
            some = slots[start : start + block]
            found[start : start + block] = scores(query, self._vectors[some], self._metric)
        if self._has_vector is not None:
            found[~self._has_vector[slots]] = -np.inf
        return found

    def _wanted(self, mask: Mask | None) -> NDArray[np.int64] | None:
        """Slots to look at, ascending; None for every one."""
        if self._has_vector is not None:
            mask = self._has_vector if mask is None else mask & self._has_vector
        if mask is None:
            return None
        wanted = np.flatnonzero(mask)
        return None if len(wanted) == len(self._vectors) else wanted

    def _block(self) -> int:
        dim: int = self._vectors.shape[1]
        return max(1, BLOCK_BYTES // (4 * max(1, dim)))


def _of(count: int, n: int) -> str:
    return f"all {n:,} rows" if count == n else f"{count:,} of {n:,} rows"
