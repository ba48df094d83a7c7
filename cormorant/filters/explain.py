"""Why does a record match a filter, or not, clause by clause?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cormorant.filters.operands import kinds_of, render
from cormorant.filters.operators import nearest
from cormorant.filters.tree import And, Compare, Filter, Not, Or, Text, TextMatch, describe
from cormorant.filters.values import Kind, Value, mappings_in, reach

__all__ = ["Clause", "explain"]

_SHOWN = 5


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
    wanted = kinds_of(clause.operand)
    found = {value.kind for value in values}
    if clause.operator in ("$like", "$ilike"):
        crossed = all(value.text is None for value in values)
    else:
        crossed = bool(wanted) and not wanted & found and not _has_part(clause, values)
    if crossed:
        return (
            f"{held}, of type {_kinds(found)}, and the filter asks for {_kinds(wanted)}: "
            "values of different types are never equal and have no order"
        )
    return held


def _has_part(clause: Compare, values: Sequence[Value]) -> bool:
    """``$contains`` looks for text inside text, a date written as text included."""
    part = clause.operand.text if isinstance(clause.operand, Value) else None
    return (
        clause.operator == "$contains"
        and part is not None
        and any(value.text is not None for value in values)
    )


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
