"""Which few of the candidates answer the question without repeating each other?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Picks", "diversified", "pick_diverse"]

_TIE = 1e-12  # cosines this close are equal but for the order of additions


@dataclass(frozen=True, slots=True)
class Picks:
    """What MMR chose.

    Attributes:
        positions: int64, into the candidates, in the order chosen.
        values: float64: each pick's marginal relevance when it was chosen.
        passed_over: float64, for every candidate: its marginal relevance when the last pick
            was made (for a pick, when it was chosen).
        nearest: int64, for every candidate: the position of the pick it is most like;
            -1 while there was none.
    """

    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    passed_over: NDArray[np.float64]
    nearest: NDArray[np.int64]


def pick_diverse(
    query: NDArray[np.floating],
    vectors: NDArray[np.floating],
    *,
    mmr_lambda: float,
    k: int,
) -> Picks:
    """Maximal marginal relevance: each pick is relevant and unlike those before it.

    The first pick is the candidate most like the query; each next one maximises
    λ · cos(query, candidate) − (1 − λ) · max cos(pick, candidate). A tie goes to the earlier
    candidate. A vector of zeros has cosine 0 with everything.

    Args:
        query: Shape (dim,).
        vectors: Candidates', shape (m, dim).
        mmr_lambda: 1 relevance only, 0 diversity only.
        k: How many to pick; m if there are fewer.

    Source:
        Carbonell and Goldstein, The use of MMR, diversity-based reranking, SIGIR 1998,
        doi:10.1145/290941.291025; cosine on both sides, and the first pick by the query
        alone whatever λ, as in langchain-core's ``maximal_marginal_relevance``.
    """
    m = len(vectors)
    count = min(k, m)
    lengths = _lengths(vectors)
    relevance = _cosines(vectors, lengths, query)
    redundancy = np.full(m, -np.inf)
    nearest = np.full(m, -1, dtype=np.int64)
    value = relevance.copy()
    open_ = np.ones(m, dtype=np.bool_)
    positions, values = np.empty(count, dtype=np.int64), np.empty(count)
    for step in range(count):
        if step:
            likeness = _cosines(vectors, lengths, vectors[positions[step - 1]])
            nearer = open_ & (likeness > redundancy)
            redundancy[nearer] = likeness[nearer]
            nearest[nearer] = positions[step - 1]
            value[open_] = mmr_lambda * relevance[open_] - (1.0 - mmr_lambda) * redundancy[open_]
        pick = _first_best(value, open_)
        positions[step], values[step] = pick, value[pick]
        open_[pick] = False
    return Picks(positions, values, value, nearest)


def diversified(
    query: NDArray[np.floating],
    vectors: NDArray[np.floating],
    has_vector: NDArray[np.bool_],
    *,
    mmr_lambda: float,
    k: int,
) -> tuple[NDArray[np.int64], Picks]:
    """The hits MMR makes of candidates, some of which may have no vector: those come last.

    Args:
        query: Shape (dim,).
        vectors: Of the candidates that have one, shape (count of ``has_vector``, dim).
        has_vector: bool, for every candidate, best first.
        mmr_lambda: As in :func:`pick_diverse`.
        k: Hits wanted.

    Returns:
        The hits, as positions of candidates; and what was picked of those with a vector.
    """
    picks = pick_diverse(query, vectors, mmr_lambda=mmr_lambda, k=k)
    chosen = np.flatnonzero(has_vector)[picks.positions]
    return np.concatenate([chosen, np.flatnonzero(~has_vector)[: k - len(chosen)]]), picks


def _first_best(value: NDArray[np.float64], open_: NDArray[np.bool_]) -> int:
    """The earliest of those that are as good as the best."""
    left = np.where(open_, value, -np.inf)
    return int(np.argmax(left >= left.max() - _TIE))


def _lengths(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Of each row; 1 for a row of zeros, so that its cosines come out as 0."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    lengths = np.sqrt(squares, out=squares)
    lengths[lengths == 0] = 1.0
    return lengths


def _cosines(
    vectors: NDArray[np.floating], lengths: NDArray[np.float64], one: NDArray[np.floating]
) -> NDArray[np.float64]:
    # Converted block by block inside: a float64 copy of all candidates costs more than all picks.
    found: NDArray[np.float64] = np.einsum("ij,j->i", vectors, one, dtype=np.float64)
    found /= lengths
    found /= _lengths(one[None, :])[0]
    return found
