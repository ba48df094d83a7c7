"""How similar are two vectors, and how does that become a relevance in [0, 1]?

Every score is a similarity, higher is better. A distance never leaves this file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.model import Metric

__all__ = ["normalise", "relevance", "scores"]

_SAME = 1.0 - 1e-6  # cosines of float32 vectors with themselves fall this short of 1 and less
_BLOCK_BYTES = 1 << 20  # differences are taken block by block: they should stay in the cache


def normalise(vectors: NDArray[np.float32], metric: Metric) -> NDArray[np.float32]:
    """The vectors as the metric wants them stored and asked: of length 1 under cosine.

    Args:
        vectors: float32, shape (n, dim), finite; no row of zeros under cosine.
        metric: Which one.

    Returns:
        float32, shape (n, dim); the same array under dot and euclidean.
    """
    if metric != "cosine":
        return vectors
    wide = vectors.astype(np.float64)  # squares of small float32 numbers would vanish
    wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    return wide.astype(np.float32)


def scores(
    query: NDArray[np.float32], rows: NDArray[np.float32], metric: Metric
) -> NDArray[np.float32]:
    """The similarity of each row to the query.

    ``einsum`` and not BLAS: it gives a row the same bits wherever and beside whatever it
    stands (BLAS does not), so equal vectors tie, and a scan and a rescoring agree; it starts
    no threads; and from 10k rows of 384 on it is as fast (docs/decisions/0011).

    Args:
        query: float32, shape (dim,); of length 1 under cosine.
        rows: float32, shape (m, dim); of length 1 under cosine.
        metric: Cosine and dot: the inner product. Euclidean: minus the distance, from the
            differences themselves, so nothing cancels when the vectors lie far from zero.

    Returns:
        float32, shape (m,), higher is better.
    """
    if metric != "euclidean":
        found: NDArray[np.float32] = np.einsum("ij,j->i", rows, query)
        return found
    squares = np.empty(len(rows), dtype=np.float32)
    block = max(1, _BLOCK_BYTES // (4 * max(1, rows.shape[1])))
    differences = np.empty((min(block, len(rows)), rows.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        difference = np.subtract(some, query, out=differences[: len(some)])
        np.einsum("ij,ij->i", difference, difference, out=squares[start : start + block])
    return np.negative(np.sqrt(squares, out=squares), out=squares)


def relevance(score: NDArray[np.floating], metric: Metric) -> NDArray[np.float64]:
    """A vector score as a relevance in [0, 1], whatever the metric; order is kept.

    Cosine: max(0, cos), and 1 from 1 − 1e-6 on, so that rounding does not keep a vector from being
    wholly like itself. Dot: 1 / (1 + e^-x), the logistic. Euclidean: 1 / (1 + distance).

    Args:
        score: Any shape; -inf (no vector) becomes 0.
        metric: Which one the score is of.
    """
    wide = np.asarray(score, dtype=np.float64)
    if metric == "cosine":
        return np.where(wide >= _SAME, 1.0, np.maximum(wide, 0.0))
    if metric == "dot":
        # tanh does not overflow, whatever the sign: 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2.
        return 0.5 * (1.0 + np.tanh(0.5 * wide))
    return 1.0 / (1.0 - wide)
