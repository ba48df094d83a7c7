"""Why does a record match a filter, or not, clause by clause?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from cormorant.filters.operands import kinds_of, render
from cormorant.filters.operators import nearest
from cormorant.filters.tree import And, Compare, Filter, Not, Or, Text, TextMatch, describe
from cormorant.filters.values import Kind, Value, mappings_in, reach

__all__ = ["Clause", "crossed", "explain"]

_SHOWN = 5
_APART = "values of different types are never equal and have no order"


class Clause(NamedTuple):
    """One clause's verdict on a record.

    Attributes:
        says: The clause as a sentence.
        matched: Whether it holds.
        note: What the record holds there, and what stood in the way.
    """

    says: str
    matched: bool
    note: str


def explain(
    filter: Filter,
    metadata: Mapping[str, Any],
    text: str = "",
    *,
    text_match: TextMatch | None = None,
) -> list[Clause]:
    """Each clause that must hold, with its verdict; the record matches if all are True.

    A clause that compares across types is False (True if it is a negation) and its
    note says so, as it does when the field is missing and another has nearly its name.
    """
    parts = filter.parts if isinstance(filter, And) else (filter,)
    return [
        Clause(
            describe(part),
            part.matches(metadata, text, text_match=text_match),
            _note(part, metadata, text, text_match),
        )
        for part in parts
    ]


def _note(
    filter: Filter,
    metadata: Mapping[str, Any],
    text: str,
    text_match: TextMatch | None,
) -> str:
    if isinstance(filter, Compare):
        return _compare_note(filter, metadata)
    if isinstance(filter, Text):
        return f"the text has {len(text)} characters"
    if isinstance(filter, (And, Or)):
        notes = (
            f"{describe(part)}: "
            f"{'yes' if part.matches(metadata, text, text_match=text_match) else 'no'}, "
            f"{_note(part, metadata, text, text_match)}"
            for part in filter.parts
        )
        return "; ".join(notes)
    if isinstance(filter, Not):
        return _note(filter.part, metadata, text, text_match)
    return ""


def _compare_note(clause: Compare, metadata: Mapping[str, Any]) -> str:
    present, values = reach(metadata, clause.field)
    if not present:
        guess = nearest(clause.field, _names(metadata))
        meant = f"; it has {guess!r}" if guess else ""
        return f"the record has no field {clause.field!r}{meant}"
    if not values:
        return f"{clause.field!r} is there but holds no value that can be compared"
    held = f"the record holds {_shown(values)}"
    found = {value.kind for value in values}
    if _crosses(clause, found, written=any(value.text is not None for value in values)):
        wanted = kinds_of(clause.operand)
        return (
            f"{held}, of type {_kinds(found)}, and the filter asks for {_kinds(wanted)}: {_APART}"
        )
    return held


def crossed(filter: Filter, held: Mapping[str, Iterable[str]]) -> list[str]:
    """The clauses that nothing can match, because their fields hold values of another type.

    Args:
        filter: Those that it negates are left out: they match all the more.
        held: The kinds of value that each field holds, in any record.

    Returns:
        A sentence each.
    """
    if isinstance(filter, (And, Or)):
        return [says for part in filter.parts for says in crossed(part, held)]
    if not isinstance(filter, Compare) or filter.row.negated:
        return []
    found = {Kind(kind) for kind in held.get(filter.field, ())}
    # A date may have been written as text.
    if not found or not _crosses(filter, found, written=bool(found & {Kind.TEXT, Kind.DATE})):
        return []
    wanted = _kinds(kinds_of(filter.operand))
    says = f"The filter asks for {wanted} in {filter.field!r}, whose values are of type "
    return [f"{says}{_kinds(found)} ({describe(filter)}): {_APART}."]


def _crosses(clause: Compare, found: AbstractSet[Kind], *, written: bool) -> bool:
    """Whether a clause compares across types: what it asks for with these kinds of value.

    Args:
        clause: It.
        found: What is there.
        written: Whether some of it is written as text, which a date may be.
    """
    if clause.operator in ("$like", "$ilike"):
        return not written
    wanted = kinds_of(clause.operand)
    if not wanted or wanted & found:
        return False
    # $contains looks for text inside text, a date written as text included.
    part = clause.operand.text if isinstance(clause.operand, Value) else None
    return not (clause.operator == "$contains" and part is not None and written)


def _kinds(kinds: Iterable[Kind]) -> str:
    return " or ".join(sorted(kinds))


def _shown(values: Sequence[Value]) -> str:
    shown = ", ".join(render(value) for value in values[:_SHOWN])
    more = len(values) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _names(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Every dotted name in the metadata."""
    pending: list[tuple[str, Mapping[Any, Any]]] = [("", metadata)]
    while pending:
        prefix, node = pending.pop()
        for key, child in node.items():
            if isinstance(key, str):
                yield prefix + key
                pending.extend((f"{prefix}{key}.", mapping) for mapping in mappings_in(child))
