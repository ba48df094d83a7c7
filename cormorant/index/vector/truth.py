"""Which vectors are truly the nearest to each of many queries?

What recall is measured against. A matrix product, many queries at a time: its last bit is not
that of :func:`cormorant.index.vector.metric.scores`, which decides what a search returns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cormorant.model import Metric

__all__ = ["nearest"]

_BLOCK = 8192


def nearest(
    vectors: NDArray[np.float32],
    slots: NDArray[np.int64],
    queries: NDArray[np.float32],
    k: int,
    metric: Metric,
    progress: Callable[[float], None] = lambda _done: None,
) -> NDArray[np.int64]:
    """The ``k`` nearest of each query among ``slots``.

    Args:
        vectors: float32, shape (n, dim); read block by block.
        slots: int64, ascending: which of them count.
        queries: float32, shape (q, dim).
        k: At most as many as there are slots.
        metric: How to compare.
        progress: Told what part of the slots was seen.

    Returns:
        int64, shape (q, k), nearest first.
    """
    k = min(k, len(slots))
    best = np.full((len(queries), k), -np.inf, np.float32)
    found = np.zeros((len(queries), k), np.int64)
    lengths = np.einsum("ij,ij->i", queries, queries)[:, None]
    for start in range(0, len(slots), _BLOCK):
        some = slots[start : start + _BLOCK]
        whole = int(some[-1]) - int(some[0]) + 1 == len(some)
        block = vectors[int(some[0]) : int(some[-1]) + 1] if whole else vectors[some]
        near = queries @ block.T
        if metric == "euclidean":
            near = 2 * near - lengths - np.einsum("ij,ij->i", block, block)[None]
        both = np.concatenate([best, near], axis=1)
        named = np.concatenate([found, np.broadcast_to(some, near.shape)], axis=1)
        keep = np.argpartition(-both, k - 1, axis=1)[:, :k]
        best = np.take_along_axis(both, keep, axis=1)
        found = np.take_along_axis(named, keep, axis=1)
        progress(start / len(slots))
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)
