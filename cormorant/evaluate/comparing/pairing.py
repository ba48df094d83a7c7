"""May these two be compared, and how do they differ, query by query?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.evaluate.evaluation import Evaluation, check_judged
from cormorant.evaluate.names import parse_metric
from cormorant.evaluate.run import Run

__all__ = ["cut", "cut_differently", "named", "paired"]

_SAME = 1e-9
"""Values closer than this are one value, summed in another order."""


def paired(
    baseline: Evaluation, system: Evaluation, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both systems' values of a metric, in the order of the baseline's queries.

    Args:
        baseline: What is compared against.
        system: What is compared.
        metric: A metric's name; both must have been judged by it.

    Returns:
        Two arrays, float64, shape (queries,); values that differ by rounding alone are equal.

    Raises:
        UsageError: If the two were judged by different judgements or for different queries,
            or have no such metric, or are runs that nobody judged.
    """
    check_judged(baseline, system)
    ours, theirs = baseline.of(metric), system.of(metric)
    if baseline.qrels and system.qrels and baseline.qrels != system.qrels:
        raise UsageError(
            f"{baseline.run.name!r} and {system.run.name!r} were judged by different judgements, "
            "so a difference would say nothing of the systems. Judge both by the same ones."
        )
    if baseline.queries != system.queries:
        at = {query: place for place, query in enumerate(system.queries)}
        apart = set(baseline.queries) ^ set(system.queries)
        if apart or len(at) != len(system.queries):
            raise UsageError(
                f"{baseline.run.name!r} was judged for {len(baseline.queries)} queries, "
                f"{system.run.name!r} for {len(system.queries)}; not the same: {named(apart)}. "
                "Judge both by the same judgements."
            )
        theirs = theirs[[at[query] for query in baseline.queries]]
    return ours, np.where(np.abs(theirs - ours) <= _SAME, ours, theirs)


def cut(run: Run) -> int | None:
    """After how many places do the run's rankings end? None if they end at no common place.

    A run that was cut off shows it: half of its rankings or more are of one length, and none
    is longer.
    """
    lengths = Counter(len(ranking) for ranking in run.rankings.values() if ranking)
    longest = max(lengths, default=0)
    return longest if longest and 2 * lengths[longest] >= lengths.total() else None


def cut_differently(baseline: Run, system: Run, metric: str) -> str | None:
    """Why a metric cannot compare these runs: one was cut off where the metric still looks.

    Returns:
        A sentence, or None if both reach as far as the metric looks, or equally far.
    """
    asked = [run.config.get("k") for run in (baseline, system)]
    if isinstance(asked[0], int) and asked[0] == asked[1]:
        return None  # fewer hits are then all there were: of few documents, above a threshold
    k = parse_metric(metric).k
    for short, other in ((baseline, system), (system, baseline)):
        end = cut(short)
        deepest = max(map(len, other.rankings.values()), default=0)
        if end is not None and deepest > end and (k is None or k > end):
            return (
                f"The rankings of {short.name!r} end after {end} places and those of "
                f"{other.name!r} go on, where {metric} still counts. Search both with the same "
                f"k, or use a metric of the first {end} places."
            )
    return None


def named(queries: Iterable[str], most: int = 3) -> str:
    """The first few query ids, in order, and how many more there are."""
    ordered = sorted(queries)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(map(repr, ordered[:most])) + more
