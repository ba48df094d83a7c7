"""Which documents should be judged, so that several systems can be compared fairly?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.judgements.words import number_of
from cormorant.evaluate.run import Run

__all__ = ["pool"]


def pool(
    runs: Sequence[Run],
    queries: Mapping[str, str],
    *,
    depth: int = defaults.JUDGED_DEPTH,
    seed: int = 0,
) -> dict[str, tuple[str, ...]]:
    """The first ``depth`` documents of every run, each once, in an order that tells nothing.

    Args:
        runs: Of the systems to be compared, the more unlike the better: what none of them
            found is never judged.
        queries: Query id to text: those that are judged.
        depth: Places of each run that are judged.
        seed: Of the order, which depends on neither ranks nor names of the runs.

    Returns:
        Query id to document ids, in the queries' order; queries no run answered have none.

    Raises:
        UsageError: If there is no run, none knows any of the queries, or the depth is not a
            whole number of at least 1.

    Example:
        >>> runs = [Run("a", {"1": (("x", 2.0), ("y", 1.0))}), Run("b", {"1": (("z", 1.0),)})]
        >>> sorted(pool(runs, {"1": "who dives?"})["1"])
        ['x', 'y', 'z']

    Source:
        Spärck Jones and van Rijsbergen, Report on the need for and provision of an "ideal"
        information retrieval test collection, 1975.
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise UsageError(f"depth must be a whole number of at least 1; got {depth!r}.")
    if not runs:
        raise UsageError("There is nothing to pool: runs is empty.")
    if not any(query in run.rankings for run in runs for query in queries):
        raise UsageError(
            f"No run answers any of the {len(queries)} queries, such as "
            f"{next(iter(queries), '')!r}. Do the queries and the runs belong together?"
        )
    out = {}
    for query in queries:
        found = {doc for run in runs for doc in run.ids(query)[:depth]}
        out[query] = tuple(sorted(found, key=lambda doc: (number_of(seed, query, doc), doc)))
    return out
