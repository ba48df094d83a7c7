"""Is this system better than that one, by how much, and how sure is that?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.comparing.holes import Holes, holes
from cormorant.evaluate.comparing.holm import holm
from cormorant.evaluate.comparing.interval import Interval, bootstrap_interval
from cormorant.evaluate.comparing.pairing import cut_differently, named, paired
from cormorant.evaluate.comparing.randomisation import randomisation_p
from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.groups import Grouping, Groups, grouping
from cormorant.evaluate.names import parse_metric

__all__ = ["Comparison", "Moved", "compare", "compare_all"]

_HOLES_AT: Final = 10
"""Places looked at for unjudged documents where the metric counts all of them."""
_FEW: Final = 10
"""With fewer moved queries than this a comparison says that it rests on little."""


class Moved(NamedTuple):
    """A query and its value under both systems.

    Attributes:
        query: Its id.
        baseline: The baseline's value.
        system: The other system's.
    """

    query: str
    baseline: float
    system: float

    @property
    def difference(self) -> float:
        """The system's value minus the baseline's."""
        return self.system - self.baseline


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One system against a baseline, by one metric, over the same queries.

    Attributes:
        metric: Its name.
        baseline_name: The baseline run's name.
        system_name: The other run's.
        queries: Query ids; the order of both arrays of values.
        baseline: The baseline's values, float64, shape (queries,).
        system: The system's.
        interval: Limits of the mean difference; see ``bootstrap_interval``. Of this comparison
            alone: not widened where several are made.
        p: Of the paired randomisation test, two-sided.
        p_adjusted: By Holm over the comparisons it was made among; ``p`` if it is the only one.
        among: How many those were.
        groups: How many groups of queries test and interval count as independent; None if each
            query is.
        confidence: Of the interval; the difference is significant at 1 minus this.
        higher_is_better: False for ``unjudged@k`` alone.
        holes: Unjudged documents of each system; None if the judgements are not known.
        warnings: What to know before believing it, a sentence each; empty is good.
    """

    metric: str
    baseline_name: str
    system_name: str
    queries: tuple[str, ...] = field(repr=False)
    baseline: NDArray[np.float64] = field(repr=False)
    system: NDArray[np.float64] = field(repr=False)
    interval: Interval
    p: float
    p_adjusted: float
    among: int
    groups: int | None
    confidence: float
    higher_is_better: bool
    holes: Holes | None
    warnings: tuple[str, ...]

    @property
    def differences(self) -> NDArray[np.float64]:
        """The system's values minus the baseline's, shape (queries,)."""
        return self.system - self.baseline

    @property
    def difference(self) -> float:
        """Mean of the system minus mean of the baseline."""
        return float(self.differences.mean())

    @property
    def wins(self) -> int:
        """Queries at which the system is better."""
        return int(np.count_nonzero(self._gains > 0))

    @property
    def losses(self) -> int:
        """Queries at which the baseline is better."""
        return int(np.count_nonzero(self._gains < 0))

    @property
    def ties(self) -> int:
        """Queries at which both have the same value."""
        return len(self.queries) - self.wins - self.losses

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is below 1 minus the confidence."""
        return self.p_adjusted < 1 - self.confidence

    @property
    def verdict(self) -> Literal["better", "worse", "no significant difference"]:
        """What the randomisation test says of the system."""
        if not self.significant:
            return "no significant difference"
        return "better" if (self.difference > 0) == self.higher_is_better else "worse"

    def moved(self, most: int = 10) -> list[Moved]:
        """The queries whose value changed, the largest change first; ties in query order."""
        apart = np.abs(self.differences)
        order = np.argsort(-apart, kind="stable")[:most]
        return [
            Moved(self.queries[i], float(self.baseline[i]), float(self.system[i]))
            for i in order.tolist()
            if apart[i] > 0
        ]

    @property
    def says(self) -> str:
        """The comparison in one sentence with its numbers."""
        head = {
            "better": f"{self.system_name} is better than {self.baseline_name}",
            "worse": f"{self.system_name} is worse than {self.baseline_name}",
            "no significant difference": (
                f"No significant difference between {self.system_name} and {self.baseline_name}"
            ),
        }[self.verdict]
        low, high = self.interval
        p = f"p = {self.p:.4f}"
        if self.among > 1:
            p += f", {self.p_adjusted:.4f} by Holm over {self.among}"
        return (
            f"{head}: {self.metric} {self.baseline.mean():.4f} → {self.system.mean():.4f}, "
            f"{self.difference:+.4f} [{low:+.4f}, {high:+.4f}], {p}, {len(self.queries)} queries "
            f"{f'in {self.groups} groups ' if self.groups is not None else ''}"
            f"({self.wins} better, {self.ties} equal, {self.losses} worse)."
        )

    @property
    def _gains(self) -> NDArray[np.float64]:
        return self.differences if self.higher_is_better else -self.differences


def compare(
    baseline: Evaluation,
    system: Evaluation,
    metric: str,
    *,
    groups: Groups | None = None,
    confidence: float = defaults.CONFIDENCE,
    resamples: int = defaults.RESAMPLES,
    seed: int = defaults.RESAMPLING_SEED,
) -> Comparison:
    """Compare one system with a baseline, query by query.

    Args:
        baseline: What is compared against.
        system: What is compared; judged for the same queries by the same judgements.
        metric: A metric both were judged by.
        groups: Queries that rise and fall together, as paraphrases of one question do: query id to
            group, or ``records`` for those with a relevant record in common. None takes each
            query for independent.
        confidence: Of the interval; 1 minus it is the test's level.
        resamples: Of the test and the bootstrap each.
        seed: Of both.

    Returns:
        The mean difference (system minus baseline) with its interval and p-value, and what
        to know before believing it.

    Raises:
        UsageError: If the two cannot be compared: other queries, other judgements, a metric
            one was not judged by, or fewer than two queries or groups.

    Example:
        >>> from cormorant.evaluate import Run, judge
        >>> qrels = {str(q): {"a": 1} for q in range(8)}
        >>> first = Run("first", {q: (("b", 2.0), ("a", 1.0)) for q in qrels})
        >>> second = Run("second", {q: (("a", 2.0), ("b", 1.0)) for q in qrels})
        >>> done = compare(judge(first, qrels, "mrr"), judge(second, qrels, "mrr"), "mrr")
        >>> done.verdict, done.difference, done.p
        ('better', 0.5, 0.0078125)

    Source:
        Smucker, Allan and Carterette, CIKM 2007, doi:10.1145/1321440.1321528: the randomisation
        test asks what is meant. Urbano, Lima and Hanjalic, SIGIR 2019,
        doi:10.1145/3331184.3331259, who find it and the t-test close to their stated rates.
    """
    ours, theirs = paired(baseline, system, metric)
    parsed = parse_metric(metric)
    found = (
        holes(baseline, system, parsed.k or _HOLES_AT) if baseline.qrels and system.qrels else None
    )
    apart = theirs - ours
    among = grouping(baseline.queries, groups, baseline.qrels or system.qrels)
    low, high = bootstrap_interval(
        apart if among is None else among.witnesses(apart),
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    p = randomisation_p(
        apart if among is None else among.totals(apart), resamples=resamples, seed=seed
    )
    return Comparison(
        metric=metric,
        baseline_name=baseline.run.name,
        system_name=system.run.name,
        queries=baseline.queries,
        baseline=ours,
        system=theirs,
        # No difference of two metrics is beyond these.
        interval=Interval(max(low, -1.0), min(high, 1.0)),
        p=p,
        p_adjusted=p,
        among=1,
        groups=None if among is None else among.count,
        confidence=confidence,
        higher_is_better=parsed.metric.higher_is_better,
        holes=found,
        warnings=tuple(_warnings(baseline, system, metric, apart, found, among)),
    )


def compare_all(
    baseline: Evaluation,
    systems: Sequence[Evaluation],
    metric: str,
    *,
    groups: Groups | None = None,
    confidence: float = defaults.CONFIDENCE,
    resamples: int = defaults.RESAMPLES,
    seed: int = defaults.RESAMPLING_SEED,
) -> list[Comparison]:
    """Compare several systems with one baseline; p-values are adjusted by Holm.

    Args:
        baseline: What all are compared against.
        systems: What is compared.
        metric: A metric all were judged by.
        groups: As for :func:`compare`.
        confidence: Of each interval; 1 minus it is the level of all tests together.
        resamples: As for :func:`compare`.
        seed: As for :func:`compare`.

    Returns:
        In the order of ``systems``.

    Raises:
        UsageError: As :func:`compare`, or if there are no systems.

    Example:
        >>> from cormorant.evaluate import Run, judge
        >>> qrels = {str(q): {"a": 1} for q in range(8)}
        >>> runs = {"x": "ba", "y": "ab", "z": "ba"}
        >>> x, y, z = (
        ...     judge(Run(n, {q: ((ids[0], 2.0), (ids[1], 1.0)) for q in qrels}), qrels, "mrr")
        ...     for n, ids in runs.items()
        ... )
        >>> [(each.system_name, each.p, each.p_adjusted) for each in compare_all(x, [y, z], "mrr")]
        [('y', 0.0078125, 0.015625), ('z', 1.0, 1.0)]
    """
    if not systems:
        raise UsageError("There is nothing to compare with the baseline: systems is empty.")
    alone = [
        compare(
            baseline,
            each,
            metric,
            groups=groups,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
        for each in systems
    ]
    adjusted = holm([each.p for each in alone])
    return [
        replace(each, p_adjusted=p, among=len(alone))
        for each, p in zip(alone, adjusted, strict=True)
    ]


def _warnings(
    baseline: Evaluation,
    system: Evaluation,
    metric: str,
    differences: NDArray[np.float64],
    found: Holes | None,
    among: Grouping | None,
) -> list[str]:
    out = []
    for each in (baseline, system):
        name = each.run.name
        if each.failed:
            out.append(f"{name} failed at {len(each.failed)} queries: {named(each.failed)}.")
        if each.missing:
            out.append(
                f"{name} was not asked {len(each.missing)} of the queries, which count as no "
                f"answer: {named(each.missing)}."
            )
        lesser = [query for query in each.queries if each.run.degraded.get(query)]
        if lesser:
            out.append(
                f"{name} answered {len(lesser)} queries in a lesser way: "
                f"{each.run.degraded[lesser[0]][0]}"
            )
    ended = cut_differently(baseline.run, system.run, metric)
    if ended:
        out.append(ended)
    moved, of, what = int(np.count_nonzero(differences)), len(differences), "queries"
    if among is not None:
        moved, of, what = among.any(differences != 0), among.count, "groups of queries"
    if 0 < moved < _FEW:
        out.append(
            f"By {metric} only {moved} of {of} {what} moved from "
            f"{baseline.run.name} to {system.run.name}: this rests on little."
        )
    if found is None:
        out.append("The judgements are not known here: unjudged documents were not looked for.")
    elif found.uneven:
        more, less = baseline.run.name, system.run.name
        if found.system > found.baseline:
            more, less = less, more
        out.append(
            f"Unjudged among the first {found.k}: {found.baseline:.1%} of {baseline.run.name}, "
            f"{found.system:.1%} of {system.run.name}. {more} may be better than it looks beside "
            f"{less}: judge what it returned."
        )
    return out
