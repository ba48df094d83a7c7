"""How good was a run, query by query and in the mean?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.evaluate.run import Run

__all__ = ["Evaluation", "check_judged"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A run's values of each metric for each judged query.

    Attributes:
        run: What was judged.
        queries: Judged query ids, in the judgements' order. One that the run did not answer
            has the metric's lowest value, as ``trec_eval -c`` counts it.
        metrics: Their names, such as ``ndcg@10``.
        values: float64, shape (queries, metrics); for all but ``unjudged@k`` higher is better.
        qrels: What it was judged by. Two evaluations are comparable only if these are equal;
            empty if it is not known, which comparisons say.
    """

    run: Run
    queries: tuple[str, ...]
    metrics: tuple[str, ...]
    values: NDArray[np.float64]
    qrels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, metric: str) -> NDArray[np.float64]:
        """One metric's values, shape (queries,), in the order of ``queries``.

        Raises:
            UsageError: If the run was not judged by that metric.
        """
        if metric not in self.metrics:
            raise UsageError(
                f"{self.run.name!r} was not judged by {metric!r}, but by "
                f"{', '.join(self.metrics) or 'no metric'}. Judge it again with {metric!r}."
            )
        return self.values[:, self.metrics.index(metric)]

    def only(self, queries: Collection[str]) -> Evaluation:
        """The same over some of the queries, in the same order; the others are not judged."""
        keep = [place for place, query in enumerate(self.queries) if query in queries]
        names = tuple(self.queries[place] for place in keep)
        qrels = {query: self.qrels[query] for query in names if query in self.qrels}
        return Evaluation(self.run, names, self.metrics, self.values[keep], qrels)

    @property
    def means(self) -> dict[str, float]:
        """Each metric's mean over the judged queries."""
        return dict(zip(self.metrics, self.values.mean(axis=0).tolist(), strict=True))

    @property
    def failed(self) -> tuple[str, ...]:
        """Judged queries at which the system failed; their values are those of no answer."""
        return tuple(query for query in self.queries if query in self.run.failed)

    @property
    def missing(self) -> tuple[str, ...]:
        """Judged queries that the run was never asked; their values are those of no answer."""
        asked = self.run.rankings.keys() | self.run.failed.keys()
        return tuple(query for query in self.queries if query not in asked)


def check_judged(*given: object) -> None:
    """Refuse what is no evaluation, such as a run that was not judged yet.

    Raises:
        UsageError: Saying how to make one.
    """
    for each in given:
        if not isinstance(each, Evaluation):
            raise UsageError(
                f"Evaluations are compared; got a {type(each).__name__}. Judge the run first: "
                "judge(run, qrels)."
            )
