"""Do the judgements know one system's documents better than the other's?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cormorant.evaluate.comparing.randomisation import randomisation_p
from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.metrics.places import Places
from cormorant.evaluate.metrics.unjudged import unjudged

__all__ = ["Holes", "holes"]

_CLEARLY: Final = 0.02
"""Shares that differ by less are not warned about, however certain the difference."""
_ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Holes:
    """How much of what each system returned was never judged.

    Attributes:
        k: Places looked at.
        baseline: Mean share of unjudged documents among the baseline's first k, from 0 to 1.
        system: The same of the other system.
        p: How often chance alone would set the shares so far apart; see
            :func:`~cormorant.evaluate.comparing.randomisation_p`.
    """

    k: int
    baseline: float
    system: float
    p: float

    @property
    def uneven(self) -> bool:
        """Whether one has clearly more: by .02 at least, and significantly at .05."""
        return abs(self.system - self.baseline) >= _CLEARLY and self.p < _ALPHA


def holes(baseline: Evaluation, system: Evaluation, k: int) -> Holes:
    """Count what nobody judged among the first ``k`` documents of two systems.

    Args:
        baseline: What is compared against; its judgements are the ones asked.
        system: What is compared, for the same queries.
        k: Places to look at.

    Raises:
        UsageError: If the evaluation does not know its judgements.
    """
    ours, theirs = (
        unjudged(Places.of({q: each.run.ids(q)[:k] for q in baseline.qrels}, baseline.qrels), k)
        for each in (baseline, system)
    )
    return Holes(k, float(ours.mean()), float(theirs.mean()), randomisation_p(theirs - ours))
