"""What is a candidate worth, given how each leg saw it?

One path for all: each leg's scores become *standards* by the fusion's own formula, a
contribution is weight times standard, and the fused score is the sum of contributions.
A search of one leg takes the same path with its scores as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.model import Fusion
from cormorant.search.legs import Statistics

__all__ = ["FUSIONS", "Fused", "LegScores", "best_first", "fuse", "standards_of", "weighted"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LegScores:
    """One leg's view of all candidates, in one order.

    Attributes:
        weight: Trust in the leg.
        scores: float32, exact; -inf where the leg cannot judge.
        ranks: int64, from 1; 0 where the leg did not fetch the candidate.
        statistics: Of the whole collection; read by ``z`` alone.
        among: Of the part of it that the leg can judge for this query, where that is known; ``z``
            prefers it.
        least: float64, the least standard that ``z`` gives each candidate; None if there is none.
        imagined: Part of the other leg's standard that ``least`` is of a candidate it holds for.
    """

    weight: float
    scores: NDArray[np.float32]
    ranks: NDArray[np.int64]
    statistics: Statistics | None = None
    among: Statistics | None = None
    least: Floats | None = None
    imagined: float = 0.0

    def take(self, places: NDArray[np.int64]) -> LegScores:
        """The view of some of the candidates, in their order."""
        least = None if self.least is None else self.least[places]
        return replace(self, scores=self.scores[places], ranks=self.ranks[places], least=least)


@dataclass(frozen=True, slots=True)
class Fused:
    """Candidates with their worth.

    Attributes:
        standards: A leg's scores as fusion used them, leg by leg in the order given.
        contributions: weight × standard, likewise.
        scores: Their sum.
    """

    standards: tuple[Floats, ...]
    contributions: tuple[Floats, ...]
    scores: Floats


def z(leg: LegScores, rrf_k: float) -> Floats:  # noqa: ARG001 - one signature for all
    """Deviations above the collection's mean; 0 (the mean) where the leg cannot judge.

    A leg that has nothing to say about a query scores everything alike, and so counts little.

    Source:
        The standard score as in Montague and Aslam, Relevance score normalization for
        metasearch, CIKM 2001 (ZMUV). Deviation: mean and standard deviation of the whole
        collection, not of the retrieved list; they are then no artefact of ``fetch_k``.
    """
    statistics = leg.among or leg.statistics
    if statistics is None:  # pragma: no cover - run() always gives them
        raise ValueError("z needs the collection's statistics.")
    standards = statistics.standard(leg.scores)
    return standards if leg.least is None else np.maximum(standards, leg.least)


def rrf(leg: LegScores, rrf_k: float) -> Floats:
    """1 / (rrf_k + rank); 0 where the leg did not fetch the candidate.

    Source:
        Cormack, Clarke, Buettcher, Reciprocal rank fusion outperforms Condorcet and
        individual rank learning methods, SIGIR 2009, doi:10.1145/1571941.1572114; ranks
        from 1. Deviation: legs are weighted.
    """
    fetched = leg.ranks > 0
    return np.where(fetched, 1.0 / (rrf_k + np.maximum(leg.ranks, 1)), 0.0)


def minmax(leg: LegScores, rrf_k: float) -> Floats:  # noqa: ARG001 - one signature for all
    """Where the score lies between the leg's worst (0) and best (1) fetched candidate.

    Candidates the leg did not fetch are at most its worst, so 0. If the fetched do not
    differ, each is the best.

    Source:
        Fox and Shaw, Combination of multiple searches, TREC-2, 1994 (CombSUM); the
        normalisation of Lee, Analyses of multiple evidence combination, SIGIR 1997, eq. 1.
    """
    fetched = leg.ranks > 0
    if not fetched.any():
        return np.zeros(len(leg.scores))
    known = leg.scores[fetched].astype(np.float64)
    low, high = float(known.min()), float(known.max())
    if high == low:
        return fetched.astype(np.float64)
    wide = np.where(fetched, leg.scores, low).astype(np.float64)
    return (wide - low) / (high - low)


def _as_is(leg: LegScores, rrf_k: float) -> Floats:  # noqa: ARG001 - one signature for all
    return leg.scores.astype(np.float64)


FUSIONS: Final[Mapping[Fusion, Callable[[LegScores, float], Floats]]] = MappingProxyType(
    {
        "z": z,
        "rrf": rrf,
        "minmax": minmax,
    }
)


def fuse(legs: Sequence[LegScores], *, fusion: Fusion | None, rrf_k: float) -> Fused:
    """Fuse legs that all list the same candidates in the same order.

    Args:
        legs: At least one.
        fusion: One of :data:`FUSIONS`; None for one leg whose scores stay as they are.
        rrf_k: Read by ``rrf`` alone.
    """
    return weighted(standards_of(legs, fusion=fusion, rrf_k=rrf_k), [leg.weight for leg in legs])


def standards_of(
    legs: Sequence[LegScores], *, fusion: Fusion | None, rrf_k: float
) -> tuple[Floats, ...]:
    """Each leg's standards, which its weight has no part in. See :func:`fuse`."""
    formula = _as_is if fusion is None else FUSIONS[fusion]
    return tuple(formula(leg, rrf_k) for leg in legs)


def weighted(standards: Sequence[Floats], weights: Sequence[float | Floats]) -> Fused:
    """Standards made worth by weights: one weighting, or many at once.

    Args:
        standards: One array a leg, shape (m,).
        weights: One a leg: a number, or float64 of shape (n, 1) for n weightings; then
            contributions and scores have the shape (n, m).
    """
    contributions = tuple(w * standard for w, standard in zip(weights, standards, strict=True))
    total = np.zeros(contributions[0].shape)
    for contribution in contributions:
        total += contribution
    return Fused(tuple(standards), contributions, total)


def best_first(scores: Floats, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of candidates by falling score, ties by the lower slot.

    Args:
        scores: Shape (m,), or (n, m) for n weightings, each ordered by itself.
        slots: Shape (m,), in any order.
    """
    return np.lexsort((np.broadcast_to(slots, scores.shape), -scores), axis=-1)
