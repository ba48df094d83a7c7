"""Which records score highest, and how do scores spread over the collection?"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask

__all__ = ["Scored", "Spread", "Tally"]

_BLOCK: Final = 4096  # scores squared and summed in float32 before float64 takes over
_PROBED: Final = 4096  # records that are asked for a threshold
_CANCELLED: Final = 1e-3  # a variance below this share of the mean square is computed anew
_ROUNDING: Final = 4e-7  # a deviation below this share of the scores is float32's own


class Scored(NamedTuple):
    """Slots by descending score, ties by the lower slot, and how many were compared."""

    slots: NDArray[np.int64]
    scores: NDArray[np.float32]
    candidates: int


class Spread(NamedTuple):
    """Over all live records, those that score 0 included; ``largest`` is the best score."""

    mean: float
    std: float
    largest: float


class Tally:
    """The scores of one query, summed term by term.

    Args:
        n: Slots there are.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._blocks = np.zeros((-(-n // _BLOCK), _BLOCK), np.float32)
        self._scores = self._blocks.reshape(-1)
        self._lists: list[NDArray[np.int32]] = []
        self._sum = 0.0

    def add(self, slots: NDArray[np.int32], impact: NDArray[np.float32]) -> None:
        """One term's part in the score of each of its slots; rarest terms first."""
        np.add.at(self._scores, slots, impact)
        self._lists.append(slots)
        self._sum += float(np.add.reduce(impact))  # summed pairwise: float32 is enough

    def spread(self, records: int) -> Spread:
        """Mean and deviation over ``records`` live ones; dead ones score 0 here."""
        if not self._lists:
            return Spread(0.0, 0.0, 0.0)
        mean = self._sum / records
        squares = np.einsum("ij,ij->i", self._blocks, self._blocks)
        square = float(squares.sum(dtype=np.float64)) / records
        variance = square - mean * mean
        if variance < _CANCELLED * square:
            off = self._scores[self._above()].astype(np.float64) - mean
            rest = (records - self.matched) * mean * mean
            variance = float(np.add.reduce(off * off) + rest) / records
        std = math.sqrt(max(variance, 0.0))
        if std <= _ROUNDING * math.sqrt(square):
            std = 0.0
        return Spread(mean, std, float(self._scores.max()))

    @cached_property
    def matched(self) -> int:
        """How many records score more than 0."""
        return int(np.count_nonzero(self._above()))

    def of(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of some slots, in their order."""
        return self._scores.take(slots)

    def _above(self) -> Mask:
        return self._scores > 0

    def best(self, k: int, mask: Mask | None) -> Scored:
        """The ``k`` best of the slots where ``mask`` is True (None: of all).

        Sorting all that match would cost more than scoring them. A score that at least ``k``
        records reach is found among the records of the rarest term; few others reach it.
        """
        threshold = self._threshold(k, mask)
        high = self._scores > 0 if threshold is None else self._scores >= threshold
        found = np.flatnonzero(high[: self._n])
        if mask is not None:
            found = found[mask.take(found)]
        values = self._scores.take(found)
        candidates = len(found)
        if candidates > k:
            reached = np.flatnonzero(values >= _kth(values, k))
            found, values = found[reached], values[reached]
        order = np.lexsort((found, -values))[:k]
        return Scored(found[order], values[order], candidates)

    def _threshold(self, k: int, mask: Mask | None) -> float | None:
        """A score that ``k`` allowed records reach; None if no term has that many."""
        for slots in self._lists:
            if len(slots) >= k:
                allowed = slots if mask is None else slots[mask.take(slots)]
                if len(allowed) >= k:
                    return _kth(self._scores.take(allowed[: max(_PROBED, 4 * k)]), k)
        return None


def _kth(values: NDArray[np.float32], k: int) -> float:
    """The ``k``-th largest."""
    at = len(values) - k
    return float(np.partition(values, at)[at])
