"""Why did a document enter, leave or move?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cormorant.errors import NotFound, UsageError
from cormorant.evaluate.diffing.changes import Change, Diff, QueryDiff
from cormorant.evaluate.run import Run
from cormorant.evaluate.store_system import Embed, StoreSystem
from cormorant.model import Explanation, Query, StoreProtocol

__all__ = ["Asked", "asked_for", "with_reasons"]


@dataclass(frozen=True, slots=True)
class Asked:
    """How a store is asked.

    Attributes:
        fields: Of its Query, such as ``{"mode": "text"}``.
        k: Hits wanted, which decides how many candidates each leg gives.
        by: The metadata field whose values the run ranks; None if it ranks records.
    """

    fields: Mapping[str, Any]
    k: int
    by: str | None = None


def asked_for(run: Run) -> Asked | None:
    """How a store was asked for this run; None if the run does not say.

    Example:
        >>> asked_for(Run("a", {}, config={"k": 10, "query": {"mode": "text"}})).k
        10
    """
    fields, k = run.config.get("query"), run.config.get("k")
    by = run.config.get("judged_by")
    if not isinstance(fields, Mapping) or not isinstance(k, int):
        return None
    return Asked(fields, k, by if isinstance(by, str) else None)


def with_reasons(
    found: Diff,
    store: StoreProtocol,
    queries: Mapping[str, str],
    before: Asked,
    after: Asked,
    *,
    embed: Embed | Any = None,
    only: Iterable[QueryDiff] | None = None,
) -> Diff:
    """Ask the store why each changed document is where it is, under both configurations.

    Args:
        found: What changed.
        store: The store both runs asked; as it is now, which is said where it no longer gives
            the run's rank.
        queries: Query id to text.
        before: How the store was asked for the first run.
        after: For the second.
        embed: Makes a query's vector, as for :func:`~cormorant.evaluate.run_system`.
        only: Of which of the changed queries; None explains all of them.

    Returns:
        The same changes, each saying why.

    Raises:
        UsageError: If a changed query has no text, or a configuration does not fit.

    Example:
        >>> import cormorant
        >>> from cormorant.evaluate.diffing import diff
        >>> from cormorant.evaluate.running import run_system
        >>> store = cormorant.open(":memory:")
        >>> _ = store.add([{"id": "a", "text": "a fish dives", "metadata": {"year": 2020}},
        ...                {"id": "b", "text": "a fish swims", "metadata": {"year": 2024}}])
        >>> ways = ({"mode": "text"}, {"mode": "text", "filter": {"year": 2024}})
        >>> runs = [run_system(store, {"1": "fish"}, config=way) for way in ways]
        >>> asked = [asked_for(run) for run in runs]
        >>> told = with_reasons(diff(*runs), store, {"1": "fish"}, *asked)
        >>> [(each.id, each.kind) for each in told.changed[0].left]
        [('a', 'left')]
        >>> told.changed[0].left[0].after_says[:19]
        'It fails the filter'
    """
    wanted = {each.query for each in (found.changed if only is None else only)}
    systems = [
        StoreSystem(store, k=each.k, config=each.fields, embed=embed) for each in (before, after)
    ]

    def explained(each: QueryDiff) -> QueryDiff:
        if each.query not in wanted:
            return each
        if each.query not in queries:
            raise UsageError(
                f"Query {each.query!r} has no text to ask the store with. Give the file with the "
                "queries that both runs answered."
            )
        asked = [system.query(queries[each.query]) for system in systems]

        def why(change: Change) -> Change:
            return replace(
                change,
                before_says=_says(store, asked[0], change.id, change.before, before.by),
                after_says=_says(store, asked[1], change.id, change.after, after.by),
            )

        return replace(
            each,
            entered=tuple(map(why, each.entered)),
            left=tuple(map(why, each.left)),
            moved=tuple(map(why, each.moved)),
        )

    return replace(found, changed=tuple(map(explained, found.changed)))


def _says(store: StoreProtocol, query: Query, doc: str, rank: int | None, by: str | None) -> str:
    if by is not None:
        return _says_of_field(store, query, by, doc)
    try:
        explanation = store.explain(query, doc)
    except NotFound:
        return "It is not in the store, or no longer."
    says = _reason(explanation)
    if explanation.rank != rank:
        now = "misses it" if explanation.rank is None else f"ranks it {explanation.rank}"
        says = f"The store as it is now {now}, unlike the run. {says}"
    return says


def _says_of_field(store: StoreProtocol, query: Query, by: str, value: str) -> str:
    """Of what is judged by a metadata field: why its best record is where it is.

    That record's rank is not the value's own: other values may have several records above it.
    """
    of_it: Any = {by: value}
    if query.filter is not None:
        if not isinstance(query.filter, Mapping):
            return f"It is a {by}, of which nothing can be said under a filter that is a function."
        of_it = {"$and": [query.filter, of_it]}
    best = store.search(replace(query, top_k=1, fetch_k=None, min_score=None, filter=of_it)).hits
    if not best:
        return f"No record with this {by} is found."
    return f"Its best record, {best[0].id}: {_reason(store.explain(query, best[0].id))}"


def _reason(explanation: Explanation) -> str:
    """The sentence of the stage that lost it; of a hit, that of the stage that scored it."""
    if not explanation.found:
        return next(s.says for s in explanation.steps if s.stage == explanation.lost_at)
    scored = [s for s in explanation.steps if s.stage in {"vector", "text", "fuse"}]
    return scored[-1].says if scored else explanation.says
