"""Which record is asked about, and why is it, or is it not, among the hits of a query?

What a caller may know of is what the scope of the door it asks at admits. ``narrower``
narrows the search further, as for one tenant, while the record is still looked up at the
door: only whoever may see a record is told that a narrower scope hides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cormorant import search as searching
from cormorant.errors import NotFound, QueryError
from cormorant.model import Change, Explanation, Query, WhyNot
from cormorant.store.intake import check_ids

if TYPE_CHECKING:
    from cormorant.store.core import Core
    from cormorant.store.scope import Scope
    from cormorant.store.snapshot import Snapshot

__all__ = ["explain", "why_not"]


def explain(core: Core, scope: Scope, query: Query, id: str) -> Explanation:
    """See :meth:`cormorant.store.door.Door.explain`."""

    def work(snapshot: Snapshot) -> Explanation:
        slot = _slot(snapshot, scope, id)
        if slot is None:
            raise NotFound(
                f"{_nothing(scope)} has the id {id!r}. Ids are compared exactly, letter for letter."
            )
        return searching.explain(snapshot, query, slot)

    return core.read(scope, work)


def why_not(
    core: Core,
    scope: Scope,
    query: Query,
    *,
    id: str | None,
    text: str | None,
    narrower: Mapping[str, Any] | None,
) -> WhyNot:
    """See :meth:`cormorant.store.door.Door.why_not`."""
    if (id is None) == (text is None):
        raise QueryError(
            "why_not takes the id of a record, or text=… to find it by; got "
            + ("neither." if id is None else "both.")
        )
    like, given = None, f"the id {id!r}"
    if text is not None:
        if not isinstance(text, str) or not text.strip():
            raise QueryError(f"text must be a string that is not empty; got {text!r:.80}.")
        passage, given = text, f"the text {text[:60]!r}"
        like = core.read(scope, lambda snapshot: searching.most_like(snapshot, passage))
        id = like.id if like is not None and like.alike else None
    inside = scope if narrower is None else scope.narrowed(narrower)

    def work(snapshot: Snapshot) -> WhyNot:
        slot = None if id is None else _slot(snapshot, scope, id)
        if slot is None:
            return _not_stored(scope, given, like)
        return searching.why_not(snapshot, query, slot)

    return core.read(inside, work)


def _slot(snapshot: Snapshot, scope: Scope, id: str) -> int | None:
    """Where a live record of the scope is; an id the scope hides is as one that is not stored."""
    rows = snapshot.reader.rows_of(check_ids([id])).values()
    slots = snapshot.state.slots_of(np.array(sorted(rows), dtype=np.int64))
    if not len(slots) or slots[0] < 0:
        return None
    (record,) = snapshot.fetch(slots)
    return int(slots[0]) if scope.admits(record.metadata) else None


def _nothing(scope: Scope) -> str:
    return f"No record inside {scope}" if scope else "No record in the store"


def _not_stored(scope: Scope, given: str, like: searching.Likeness | None) -> WhyNot:
    says = f"{_nothing(scope)} has {given}."
    if like is not None:
        says += f" The nearest is {like.id!r}, which shares {like.share:.0%} of the terms."
    change = Change("Add it: what is not stored cannot be found.", store={"add": {}})
    return WhyNot(None, "not_stored", says, (change,))
