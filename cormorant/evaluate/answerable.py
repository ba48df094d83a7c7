"""Can a gate be asked of these runs, and what must be said beside its answer?"""

from __future__ import annotations

import math

from cormorant.errors import UsageError
from cormorant.evaluate.comparing.pairing import named
from cormorant.evaluate.evaluation import Evaluation, check_judged
from cormorant.evaluate.run import Run

__all__ = ["able", "alike", "answerable", "least", "lesser", "only_one"]


def answerable(run: Evaluation, metric: str, confidence: float) -> None:
    """Refuse what has no answer to give.

    Raises:
        UsageError: Saying what is missing.
    """
    check_judged(run)
    name = run.run.name
    run.of(metric)
    needed = least(confidence)
    if len(run.queries) < needed:
        raise UsageError(
            f"{name!r} was judged for {len(run.queries)} queries; a gate at confidence "
            f"{confidence:g} needs {needed} at least, and some hundreds to be of use. "
            "Judge more queries."
        )
    if run.failed:
        first = run.failed[0]
        raise UsageError(
            f"{name!r} failed at {len(run.failed)} of {len(run.queries)} queries "
            f"({named(run.failed)}), so no gate can be asked. The first error: "
            f"{run.run.failed[first]} Mend that, and run it again."
        )
    if run.missing:
        raise UsageError(
            f"{name!r} has no answer to {len(run.missing)} of {len(run.queries)} judged queries: "
            f"{named(run.missing)}. Run it for all of them, or judge only those it was asked. (A "
            "TREC file cannot hold an empty answer; JSONL can.)"
        )
    if not any(run.run.rankings.get(query) for query in run.queries):
        raise UsageError(f"{name!r} returned no document for any judged query. Check the run.")


def least(confidence: float) -> int:
    """So many queries that at least all of them moving one way would be significant."""
    return math.ceil(1 - math.log2(1 - confidence)) if 0 < confidence < 1 else 2


def able(run: Evaluation) -> list[str]:
    """Queries with something judged relevant: the others cannot move."""
    return [q for q in run.queries if any(grade > 0 for grade in run.qrels.get(q, {}).values())]


def alike(run: Evaluation, baseline: Evaluation, gate: str) -> None:
    """Refuse two runs of which one alone answered everything in a lesser way.

    Raises:
        UsageError: Saying which, and in what way.
    """
    for one, other in ((run, baseline), (baseline, run)):
        said = _degraded(one)
        if said and len(said) == len(one.queries) and not _degraded(other):
            raise UsageError(
                f"The gate {gate} cannot be asked: {one.run.name!r} answered every query in a "
                f"lesser way ({said[0]}), and {other.run.name!r} did not, so they are two "
                "systems. Mend that, or ask for the lesser way in both."
            )


def _degraded(run: Evaluation) -> list[str]:
    """What was said of each judged query that was answered in a lesser way."""
    return [run.run.degraded[q][0] for q in run.queries if run.run.degraded.get(q)]


def lesser(run: Evaluation) -> list[str]:
    """That a run answered in a lesser way, if it did."""
    said = _degraded(run)
    count = f"{len(said)} of {len(run.queries)} queries"
    return [f"{run.run.name} answered {count} in a lesser way: {said[0]}"] if said else []


def only_one(baseline: Run, run: Run) -> list[str]:
    """That one run answers queries that the other was not asked, and nobody judged, if so.

    Whoever takes the hard questions out of a set takes their loss out of the gate.
    """
    asked = [each.rankings.keys() | each.failed.keys() for each in (baseline, run)]
    return [
        f"{len(only)} queries that only {name} was asked are not judged here: {named(only)}."
        for name, only in ((baseline.name, asked[0] - asked[1]), (run.name, asked[1] - asked[0]))
        if only
    ]
