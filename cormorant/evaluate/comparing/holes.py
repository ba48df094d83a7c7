"""Do the judgements know one system's documents better than the other's?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
        uneven: Whether one has clearly more. Finding more relevant documents leaves less room
            for unjudged ones, so that alone does not count: the shares must differ by .02 at
            least, both of all k documents and, in the same direction, of those not judged
            relevant (where both returned such); and the latter by the randomisation test at
            .05. Judgements that name relevant documents alone can show no unevenness.
    """

    k: int
    baseline: float
    system: float
    uneven: bool


def holes(baseline: Evaluation, system: Evaluation, k: int) -> Holes:
    """Count what nobody judged among the first ``k`` documents of two systems.

    Args:
        baseline: What is compared against; its judgements are the ones asked.
        system: What is compared, for the same queries.
        k: Places to look at.

    Raises:
        UsageError: If the evaluation does not know its judgements.
    """
    (ours, of_ours), (theirs, of_theirs) = (
        _shares(each, baseline.qrels, k) for each in (baseline, system)
    )
    more = float((theirs - ours).mean())
    # A query at which one returned nothing irrelevant says nothing of what was judged.
    apart = (of_theirs - of_ours)[~np.isnan(of_theirs - of_ours)]
    unexplained = float(apart.mean()) if len(apart) else 0.0
    uneven = (
        abs(more) >= _CLEARLY
        and abs(unexplained) >= _CLEARLY
        and (more > 0) == (unexplained > 0)
        and randomisation_p(apart) < _ALPHA
    )
    return Holes(k, float(ours.mean()), float(theirs.mean()), uneven)


def _shares(
    each: Evaluation, qrels: Mapping[str, Mapping[str, float]], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Unjudged of the first k, and of those among them not relevant (NaN: none), by query."""
    places = Places.of({query: each.run.ids(query)[:k] for query in qrels}, qrels)
    share = unjudged(places, k)
    irrelevant = places.returned - places.hits(k).sum(axis=1)
    of_irrelevant = places.share(share * places.returned, irrelevant)
    return share, np.where(irrelevant > 0, of_irrelevant, np.nan)
