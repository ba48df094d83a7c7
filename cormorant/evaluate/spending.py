"""What did a run cost?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cormorant.evaluate.run import Run

__all__ = ["Spending", "spending"]


@dataclass(frozen=True, slots=True)
class Spending:
    """A run's costs, over the queries that were measured.

    Attributes:
        queries: How many were measured.
        seconds: Wall time of all, in seconds.
        seconds_p50, seconds_p95: Of one query, median and 95th percentile.
        tokens: Tokens that models read and wrote, for all.
        usd: Their price, as far as it is known, for all.
    """

    queries: int
    seconds: float
    seconds_p50: float
    seconds_p95: float
    tokens: int
    usd: float


def spending(run: Run) -> Spending | None:
    """A run's costs; None if nothing was measured, as in a run read from a TREC file.

    Example:
        >>> from cormorant.evaluate.run import Cost
        >>> costs = {"1": Cost(0.2, tokens=30), "2": Cost(0.4, tokens=50)}
        >>> spent = spending(Run("a", {"1": (), "2": ()}, costs=costs))
        >>> spent.tokens, round(spent.seconds_p50, 3)
        (80, 0.3)
    """
    costs = list(run.costs.values())
    if not costs:
        return None
    seconds = np.array([cost.seconds for cost in costs])
    median, slow = np.percentile(seconds, (50, 95)).tolist()
    return Spending(
        queries=len(costs),
        seconds=float(seconds.sum()),
        seconds_p50=median,
        seconds_p95=slow,
        tokens=sum(cost.tokens for cost in costs),
        usd=sum(cost.usd for cost in costs),
    )
