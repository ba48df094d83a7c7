"""Which records score highest, and how do scores spread over the collection?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask

__all__ = ["Ranking", "best", "spread"]

_PROBED = 4096  # postings that are asked for a threshold
_ROUNDING = 4e-7  # a deviation below this share of the scores is float32's, not the collection's


class Ranking(NamedTuple):
    """Slots by descending score, ties by the lower slot, and how many were compared."""

    slots: NDArray[np.int64]
    scores: NDArray[np.float32]
    candidates: int


def best(
    scores: NDArray[np.float32],
    found: NDArray[np.int64],
    values: NDArray[np.float32],
    lists: Sequence[NDArray[np.int32]],
    k: int,
    mask: Mask | None,
) -> Ranking:
    """The ``k`` best of the records found.

    Sorting all that match would cost more than scoring them. A threshold that at least
    ``k`` records reach leaves few: the ``k``-th best of the rarest term's records.

    Args:
        scores: By slot.
        found: Slots that match, ascending.
        values: Their scores.
        lists: The slots of each term, rarest first.
        k: At least 1.
        mask: Who may be returned; None for all.
    """
    threshold = _threshold(scores, lists, k, mask)
    if threshold > 0:
        high = np.flatnonzero(values >= threshold)
        found, values = found[high], values[high]
    if mask is not None:
        allowed = mask.take(found)
        found, values = found[allowed], values[allowed]
    candidates = len(found)
    if candidates > k:
        high = np.flatnonzero(values >= _kth(values, k))
        found, values = found[high], values[high]
    order = np.lexsort((found, -values))[:k]
    return Ranking(found[order], values[order], candidates)


def _threshold(
    scores: NDArray[np.float32], lists: Sequence[NDArray[np.int32]], k: int, mask: Mask | None
) -> float:
    for slots in lists:
        if len(slots) < k:
            continue
        allowed = slots if mask is None else slots[mask.take(slots)]
        if len(allowed) >= k:
            return _kth(scores.take(allowed[: max(_PROBED, 4 * k)]), k)
    return 0.0


def _kth(values: NDArray[np.float32], k: int) -> float:
    """The ``k``-th largest."""
    at = len(values) - k
    return float(np.partition(values, at)[at])


def spread(values: NDArray[np.float32], records: int) -> tuple[float, float]:
    """Mean and standard deviation over all live records, those that score 0 included.

    Args:
        values: The scores above 0.
        records: How many live records there are, at least ``len(values)``.
    """
    if not len(values):
        return 0.0, 0.0
    mean = float(np.add.reduce(values)) / records  # pairwise summation: float32 is enough
    off = values - np.float32(mean)
    off *= off
    square = (float(np.add.reduce(off)) + (records - len(values)) * mean * mean) / records
    std = math.sqrt(square)
    return mean, std if std > _ROUNDING * float(values.max()) else 0.0
