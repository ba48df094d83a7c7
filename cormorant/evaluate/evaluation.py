"""How good was a run, query by query and in the mean?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.run import Run

__all__ = ["Evaluation"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A run's values of each metric for each judged query.

    Attributes:
        run: What was judged.
        queries: Judged query ids, in the judgements' order. One that the run did not answer
            has the metric's lowest value, as ``trec_eval -c`` counts it.
        metrics: Their names, such as ``ndcg@10``.
        values: float64, shape (queries, metrics); for all but ``unjudged@k`` higher is better.
    """

    run: Run
    queries: tuple[str, ...]
    metrics: tuple[str, ...]
    values: NDArray[np.float64]

    def of(self, metric: str) -> NDArray[np.float64]:
        """One metric's values, shape (queries,), in the order of ``queries``."""
        return self.values[:, self.metrics.index(metric)]

    @property
    def means(self) -> dict[str, float]:
        """Each metric's mean over the judged queries."""
        return dict(zip(self.metrics, self.values.mean(axis=0).tolist(), strict=True))
