"""What does a diff look like, on a screen and as JSON?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cormorant.width import clip, plain, wrap

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.evaluate.diffing import Change, Diff, QueryDiff

__all__ = ["FIELDS", "json_fields", "lines"]

_MARKS = {"entered": "+", "left": "-", "moved": "~"}
_COLOURS = {"entered": "green", "left": "red", "moved": "yellow"}

FIELDS = {
    "before": "the first run's name",
    "after": "the second's",
    "k": "places compared",
    "compared": "queries that both answered",
    "changed": "queries whose first k places differ",
    "unchanged": "queries with the same documents in the same order",
    "only_before": "queries that the first alone answered; not compared",
    "only_after": "queries that the second alone answered; not compared",
    "diffs[].query": "one of the --most queries that changed most; its id",
    "diffs[].text": "its text; null if it is not known",
    "diffs[].same": "how many documents are where they were",
    "diffs[].changes[].id": "a document's id",
    "diffs[].changes[].kind": "entered, left or moved",
    "diffs[].changes[].before": "its rank before, from 1, also beyond k; null if not returned",
    "diffs[].changes[].after": "its rank after",
    "diffs[].changes[].before_says": "why it was there, or missed, before; null without --kb",
    "diffs[].changes[].after_says": "the same of after",
}


def lines(
    found: Diff, chosen: list[QueryDiff], queries: Mapping[str, str], console: Console
) -> Iterator[str]:
    """Each query with its changes and their reasons, then the count."""
    for each in chosen:
        text = queries.get(each.query)
        head = f"{plain(each.query)}: {plain(text)}" if text else plain(each.query)
        yield console.style(clip(head, console.width), "bold")
        for change in each.changes:
            mark = console.style(_MARKS[change.kind], _COLOURS[change.kind])
            yield f"  {mark} {_ranks(change):>9}  {clip(plain(change.id), console.width - 15)}"
            for when, says in (("before", change.before_says), ("after", change.after_says)):
                if says:
                    for line in wrap(f"{when}: {says}", console.width - 15, 3):
                        yield console.style(f"{'':15}{line}", "dim")
        yield ""
    more = len(found.changed) - len(chosen)
    yield (
        f"{len(found.changed)} of {found.compared} queries changed in their first {found.k} places "
        f"from {plain(found.before)} to {plain(found.after)}; {found.unchanged} did not."
        + (f" {more} more are not shown: --most 0." if more else "")
    )


def _ranks(change: Change) -> str:
    before, after = ("–" if rank is None else str(rank) for rank in (change.before, change.after))
    return f"{before} → {after}"


def json_fields(found: Diff, chosen: list[QueryDiff], queries: Mapping[str, str]) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "before": found.before,
        "after": found.after,
        "k": found.k,
        "compared": found.compared,
        "changed": len(found.changed),
        "unchanged": found.unchanged,
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "diffs": [
            {
                "query": each.query,
                "text": queries.get(each.query),
                "same": each.same,
                "changes": [
                    {
                        "id": change.id,
                        "kind": change.kind,
                        "before": change.before,
                        "after": change.after,
                        "before_says": change.before_says or None,
                        "after_says": change.after_says or None,
                    }
                    for change in each.changes
                ],
            }
            for each in chosen
        ],
    }
