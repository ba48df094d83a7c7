"""What entered, what left and what moved, query by query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.run import Run

__all__ = ["Change", "Diff", "QueryDiff", "diff"]


@dataclass(frozen=True, slots=True)
class Change:
    """One document that is not where it was.

    Attributes:
        id: The document's.
        before: Its rank in the first run, from 1, also beyond the places compared; None if it
            was not returned.
        after: The same in the second run.
        kind: ``entered`` or ``left`` the places compared, or ``moved`` among them.
        before_says: Why it was there, or was missed, before; empty unless explained.
        after_says: The same of after.
    """

    id: str
    before: int | None
    after: int | None
    kind: Literal["entered", "left", "moved"]
    before_says: str = ""
    after_says: str = ""


@dataclass(frozen=True, slots=True)
class QueryDiff:
    """One query whose first places are not what they were.

    Attributes:
        query: Its id.
        entered: By their new rank.
        left: By their old rank.
        moved: By their new rank.
        same: How many documents are where they were.
    """

    query: str
    entered: tuple[Change, ...]
    left: tuple[Change, ...]
    moved: tuple[Change, ...]
    same: int

    @property
    def changes(self) -> tuple[Change, ...]:
        """All of them: what entered, what left, what moved."""
        return (*self.entered, *self.left, *self.moved)


@dataclass(frozen=True, slots=True)
class Diff:
    """Two runs, query by query.

    Attributes:
        before: The first run's name.
        after: The second's.
        k: Places compared.
        compared: Queries that both runs answered.
        changed: Those whose first k places differ, in the first run's order.
        only_before: Queries that the first run alone answered; they are not compared.
        only_after: Queries that the second alone answered.
    """

    before: str
    after: str
    k: int
    compared: int
    changed: tuple[QueryDiff, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def unchanged(self) -> int:
        """How many queries have the same documents in the same order."""
        return self.compared - len(self.changed)

    @property
    def same(self) -> bool:
        """Whether both answered the same queries, with the same documents in the same order."""
        return not (self.changed or self.only_before or self.only_after)

    def most(self, count: int) -> list[QueryDiff]:
        """The queries that changed most: by documents entered and left, then by ranks moved."""

        def size(each: QueryDiff) -> tuple[int, int]:
            ranks = sum(abs((c.before or 0) - (c.after or 0)) for c in each.moved)
            return len(each.entered) + len(each.left), ranks

        return sorted(self.changed, key=size, reverse=True)[:count]


def diff(before: Run, after: Run, *, k: int = defaults.TOP_K) -> Diff:
    """Compare two runs' first ``k`` places.

    Scores do not count, and a query that failed in a run was not answered by it.

    Args:
        before: The first run.
        after: The second.
        k: Places to compare.

    Raises:
        UsageError: If ``k`` is less than 1, or no query was answered by both.

    Example:
        >>> first = Run("first", {"1": (("a", 3.0), ("b", 2.0), ("c", 1.0))})
        >>> second = Run("second", {"1": (("b", 3.0), ("a", 2.0), ("d", 1.0))})
        >>> (one,) = diff(first, second).changed
        >>> [(c.kind, c.id, c.before, c.after) for c in one.changes][:3]
        [('entered', 'd', None, 3), ('left', 'c', 3, None), ('moved', 'b', 2, 1)]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise UsageError(f"k must be a whole number of at least 1; got {k!r}.")
    both = [query for query in before.rankings if query in after.rankings]
    if not both:
        raise UsageError(
            f"{before.name!r} and {after.name!r} have no query in common: "
            f"{len(before.rankings)} and {len(after.rankings)} were answered. Do their query ids "
            "come from one file?"
        )
    each = (_query_diff(query, before.ids(query), after.ids(query), k) for query in both)
    return Diff(
        before=before.name,
        after=after.name,
        k=k,
        compared=len(both),
        changed=tuple(one for one in each if one.changes),
        only_before=tuple(query for query in before.rankings if query not in after.rankings),
        only_after=tuple(query for query in after.rankings if query not in before.rankings),
    )


def _query_diff(query: str, before: tuple[str, ...], after: tuple[str, ...], k: int) -> QueryDiff:
    was = {doc: rank for rank, doc in enumerate(before, start=1)}
    now = {doc: rank for rank, doc in enumerate(after, start=1)}
    entered, moved, same = [], [], 0
    for doc in after[:k]:
        old = was.get(doc)
        if old is None or old > k:
            entered.append(Change(doc, old, now[doc], "entered"))
        elif old != now[doc]:
            moved.append(Change(doc, old, now[doc], "moved"))
        else:
            same += 1
    left = tuple(
        Change(doc, was[doc], now.get(doc), "left") for doc in before[:k] if now.get(doc, k + 1) > k
    )
    return QueryDiff(query, tuple(entered), left, tuple(moved), same)
