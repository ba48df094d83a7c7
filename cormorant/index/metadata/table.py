"""How are the values of a run of records laid out?

A :class:`Table` is one run of slots, 0 … n-1. For each dotted field it keeps the values
apart by kind, each kind raw in an array of its own with the slots beside it
(:class:`Column`); the records that have the field are those of all its columns. Nested
mappings are fields with dotted names; an array's elements are several values of one slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cormorant.errors import CorruptionError, RecordError
from cormorant.filters import Kind, kind_and_key
from cormorant.index.metadata.dictionary import REPAIR, GrowingStrings, Strings
from cormorant.index.metadata.runs import Run, Slots

__all__ = [
    "BARE",
    "BIGS",
    "BOOLS",
    "COLUMN_KINDS",
    "DATED",
    "DATED_ELEMENTS",
    "ELEMENTS",
    "FLOATS",
    "INSTANTS",
    "INTS",
    "NULLS",
    "TEXTS",
    "Column",
    "Field",
    "Table",
    "empty_column",
    "stretches",
    "tabulate",
    "whole_of",
]

BARE = "bare"  # the field is there without a value: an empty array, or a mapping
NULLS = "nulls"
BOOLS = "bools"
INTS = "ints"
FLOATS = "floats"
BIGS = "bigs"  # integers beyond 64 bits, as hexadecimal strings
INSTANTS = "instants"  # microseconds since 1970, of dates and of strings that spell one
TEXTS = "texts"
ELEMENTS = "elements"  # texts that stand in an array; $contains tells the two apart
DATED = "dated"  # the characters of strings that spell a date; compared as instants
DATED_ELEMENTS = "dated_elements"

COLUMN_KINDS: Mapping[str, Kind | None] = {
    BARE: None,
    NULLS: Kind.NULL,
    BOOLS: Kind.BOOLEAN,
    INTS: Kind.NUMBER,
    FLOATS: Kind.NUMBER,
    BIGS: Kind.NUMBER,
    INSTANTS: Kind.DATE,
    TEXTS: Kind.TEXT,
    ELEMENTS: Kind.TEXT,
    DATED: None,
    DATED_ELEMENTS: None,
}
"""Every sort of column a field can have, and the kind of value whose keys it holds."""

_RAW: Mapping[str, type[np.generic]] = {
    BOOLS: np.uint8,
    INTS: np.int64,
    FLOATS: np.float64,
    INSTANTS: np.int64,
}
_CODED = frozenset({BIGS, TEXTS, ELEMENTS, DATED, DATED_ELEMENTS})
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one sort.

    Attributes:
        slots: Which record each value belongs to.
        values: The values, or codes into ``strings``; None if being there is all there is.
        strings: The distinct strings, if the values are codes.
    """

    slots: Slots
    values: Run | None = None
    strings: Strings | None = None

    def extend(self, other: Column, offset: int) -> Column:
        """These values, then the other's with their slots moved up by ``offset``."""
        slots = self.slots.extend(other.slots, offset)
        if self.values is None or other.values is None:
            return Column(slots)
        if other.strings is None:
            return Column(slots, self.values.extend(other.values.view))
        if not isinstance(self.strings, GrowingStrings):
            raise TypeError("Only a growing table can be extended.")
        strings, codes = self.strings.extend(other.strings.all())
        return Column(slots, self.values.extend(codes[other.values.view]), strings)


Field = Mapping[str, Column]
"""A field's columns, by sort; at least one."""

_NOTHING = Slots(None, 0, 0)


def stretches(sort: str) -> int:
    """How many arrays a column of that sort has: its slots, values, and strings in two.

    Raises:
        ValueError: There is no such sort.
    """
    if sort not in COLUMN_KINDS:
        raise ValueError(f"no column is called {sort!r:.80}")
    return 4 if sort in _CODED else 2 if sort in _RAW else 1


def whole_of(digits: str) -> int:
    """The integer that a string of ``BIGS`` spells.

    Raises:
        CorruptionError: It spells none.
    """
    try:
        return int(digits, 16)
    except ValueError as error:
        raise CorruptionError(f"A large integer is damaged: {digits!r:.80}. {REPAIR}") from error


def empty_column(sort: str) -> Column:
    """A column that can grow."""
    if sort in _CODED:
        return Column(_NOTHING, Run.of(np.empty(0, dtype=np.int32)), GrowingStrings())
    if sort in _RAW:
        return Column(_NOTHING, Run.of(np.empty(0, dtype=_RAW[sort])))
    return Column(_NOTHING)


@dataclass(frozen=True, slots=True)
class Table:
    """``n`` records by field."""

    n: int
    fields: Mapping[str, Field]

    def extend(self, other: Table) -> Table:
        """These records, then the other's. Work and room: the other's, and the fields' count."""
        fields = dict(self.fields)
        for name, added in other.fields.items():
            columns = dict(fields.get(name, {}))
            for sort, column in added.items():
                mine = columns.get(sort) or empty_column(sort)
                columns[sort] = mine.extend(column, self.n)
            fields[name] = columns
        return Table(self.n + other.n, fields)


class _Pile:
    """Slots and values of one column while records are read."""

    __slots__ = ("slots", "values")

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.values: list[Any] = []

    def add(self, slot: int, value: Any) -> None:
        self.slots.append(slot)
        self.values.append(value)

    def column(self, sort: str) -> Column:
        slots = Slots.of(np.array(self.slots, dtype=np.int32))
        if sort in _CODED:
            strings, codes = GrowingStrings().extend(self.values)
            return Column(slots, Run.of(codes), strings)
        if sort in _RAW:
            return Column(slots, Run.of(np.array(self.values, dtype=_RAW[sort])))
        return Column(slots)


def tabulate(records: Iterable[Mapping[str, Any]]) -> Table:
    """The table of these records' metadata.

    Raises:
        RecordError: A value is of a type no filter could compare.
    """
    piles: dict[str, dict[str, _Pile]] = {}
    n = 0
    for slot, metadata in enumerate(records):
        n += 1
        for name, raw, element in _leaves(metadata):
            field = piles.get(name)
            if field is None:
                field = piles[name] = {}
            sort, value = _sorted_out(name, raw, element=element)
            _pile(field, sort).add(slot, value)
            if sort is INSTANTS and isinstance(raw, str):
                _pile(field, DATED_ELEMENTS if element else DATED).add(slot, str.__str__(raw))
    return Table(
        n,
        {
            name: {sort: pile.column(sort) for sort, pile in field.items()}
            for name, field in piles.items()
        },
    )


_NO_VALUE = object()


def _leaves(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Dotted name, value, whether it stands in an array; ``_NO_VALUE`` for what is just there."""
    stack: list[tuple[str, Any, bool]] = [(name, raw, False) for name, raw in metadata.items()]
    while stack:
        name, raw, element = stack.pop()
        if isinstance(raw, Mapping):
            yield name, _NO_VALUE, False
            stack.extend((f"{name}.{key}", inner, False) for key, inner in raw.items())
        elif isinstance(raw, (list, tuple)):
            if not raw:
                yield name, _NO_VALUE, False
            stack.extend((name, inner, True) for inner in raw)
        else:
            yield name, raw, element


def _pile(field: dict[str, _Pile], sort: str) -> _Pile:
    pile = field.get(sort)
    if pile is None:
        pile = field[sort] = _Pile()
    return pile


def _sorted_out(name: str, raw: Any, *, element: bool) -> tuple[str, Any]:
    """The column a value goes to, and what of it."""
    if raw is _NO_VALUE:
        return BARE, None
    known = kind_and_key(raw)
    if known is None:
        raise RecordError(
            f"The metadata field {name!r} holds a {type(raw).__name__}, which cannot be stored. "
            "Accepted are text, numbers, booleans, dates, datetimes, None, and lists and dicts of "
            "them."
        )
    kind, key = known
    return _SORTERS[kind](key, element)


def _number(key: Any, element: bool) -> tuple[str, Any]:  # noqa: ARG001, FBT001
    if isinstance(key, float):
        return FLOATS, key
    return (INTS, key) if -_INT64 <= key < _INT64 else (BIGS, hex(key))


_SORTERS: Mapping[Kind, Callable[[Any, bool], tuple[str, Any]]] = {
    Kind.NULL: lambda key, _: (NULLS, key),
    Kind.BOOLEAN: lambda key, _: (BOOLS, key),
    Kind.NUMBER: _number,
    Kind.TEXT: lambda key, element: (ELEMENTS if element else TEXTS, key),
    Kind.DATE: lambda key, _: (INSTANTS, key),
}
