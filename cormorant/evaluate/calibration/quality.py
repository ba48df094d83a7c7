"""Do the probabilities mean what they say?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bin", "Quality", "Threshold", "quality"]

_BINS: Final = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
_THRESHOLDS: Final = (0.5, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Bin:
    """Candidates whose probability was said to lie in one range.

    Attributes:
        low, high: The range; the last one includes its end.
        count: How many.
        said: Their mean probability.
        found: The part of them that is relevant.
    """

    low: float
    high: float
    count: int
    said: float
    found: float


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a threshold keeps.

    Attributes:
        at: The threshold.
        kept: Candidates kept, a question.
        precision: The part of them that is relevant; None if none is kept.
        recall: The part of all relevant candidates that is kept; None if there are none.
    """

    at: float
    kept: float
    precision: float | None
    recall: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """How good probabilities are on questions they were not fitted to.

    Attributes:
        questions: How many.
        candidates: How many, all of them together.
        brier: Mean squared error of the probabilities; lower is better.
        brier_without: The same if every candidate were given the share of relevant ones.
        bins: The reliability table: what was said beside what was found.
        thresholds: What thresholds keep.
    """

    questions: int
    candidates: int
    brier: float
    brier_without: float
    bins: tuple[Bin, ...]
    thresholds: tuple[Threshold, ...]

    @property
    def skill(self) -> float:
        """Part of the error without knowledge that the probabilities take away; at most 1."""
        return 1.0 - self.brier / self.brier_without if self.brier_without else 0.0

    def at(self, threshold: float) -> Threshold:
        """What one of the thresholds .5, .8 and .9 keeps."""
        return next(each for each in self.thresholds if math.isclose(each.at, threshold))

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        told = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in told.items()} | {
            "skill": self.skill
        }


def quality(
    said: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    *,
    share: float,
    questions: int,
    thresholds: Sequence[float] = _THRESHOLDS,
) -> Quality:
    """Measure probabilities against what is so.

    Args:
        said: Probabilities, shape (n,), at least one.
        relevant: Shape (n,).
        share: Of relevant candidates where the probabilities were fitted.
        questions: Whose candidates they are.
        thresholds: To tell the effect of.

    Source:
        Brier, Verification of forecasts expressed in terms of probability, Monthly Weather
        Review 78(1), 1950. Reliability: Murphy and Winkler, J. R. Statist. Soc. C 26(1), 1977.
    """
    truth = relevant.astype(np.float64)
    edges = np.array(_BINS)
    at = np.clip(np.searchsorted(edges, said, side="right") - 1, 0, len(edges) - 2)
    bins = [
        Bin(
            float(edges[number]),
            float(edges[number + 1]),
            int(np.count_nonzero(at == number)),
            float(said[at == number].mean()),
            float(truth[at == number].mean()),
        )
        for number in range(len(edges) - 1)
        if (at == number).any()
    ]
    kept = []
    for threshold in thresholds:
        above = said >= threshold
        count, right = int(np.count_nonzero(above)), float(truth[above].sum())
        kept.append(
            Threshold(
                threshold,
                count / questions,
                right / count if count else None,
                right / float(truth.sum()) if truth.any() else None,
            )
        )
    return Quality(
        questions=questions,
        candidates=len(said),
        brier=float(np.square(said - truth).mean()),
        brier_without=float(np.square(share - truth).mean()),
        bins=tuple(bins),
        thresholds=tuple(kept),
    )
