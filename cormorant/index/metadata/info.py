"""Which metadata fields are there, and what is in them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from cormorant.index.contract import Mask
from cormorant.index.metadata.table import (
    BIGS,
    BOOLS,
    COLUMN_KINDS,
    DATED,
    DATED_ELEMENTS,
    ELEMENTS,
    FLOATS,
    INSTANTS,
    INTS,
    TEXTS,
    Column,
    Field,
    whole_of,
)

__all__ = ["FieldInfo", "field_info"]

_SHOWN = 10
_MOST_COUNTED = 10_000  # distinct strings; beyond that they are identifiers, not categories
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One metadata field.

    Attributes:
        kinds: The kinds of value it holds, of null, boolean, number, text, date.
        present: Records that have it.
        distinct: How many different texts and booleans it holds; None if they are too
            many to count or it holds other kinds.
        values: Up to ten of those, the most frequent first.
        low, high: The smallest and greatest number or date; None if it holds neither or both.
    """

    kinds: tuple[str, ...]
    present: int
    distinct: int | None
    values: tuple[Any, ...]
    low: Any = None
    high: Any = None


def field_info(parts: Sequence[tuple[Field, Mask | None]]) -> FieldInfo | None:
    """What is in a field, among the records that are alive (None: all)?

    Args:
        parts: The field in each table that has it, with a bool mask of that table's slots.

    Returns:
        None if no living record has the field.
    """
    kinds: set[str] = set()
    for field, alive in parts:
        kinds.update(
            kind
            for sort, kind in COLUMN_KINDS.items()
            if kind is not None and sort in field and _count(field[sort], alive)
        )
    present = sum(_present(field, alive) for field, alive in parts)
    if not present:
        return None
    counted = _frequencies(parts)
    low, high = _extremes(parts)
    return FieldInfo(
        kinds=tuple(sorted(kinds)),
        present=present,
        distinct=len(counted) if counted and kinds <= {"boolean", "text", "null"} else None,
        values=tuple(value for value, _ in (counted or Counter()).most_common(_SHOWN)),
        low=low,
        high=high,
    )


def _count(column: Column, alive: Mask | None) -> int:
    return column.slots.n if alive is None else int(np.count_nonzero(column.slots.pick(alive)))


def _present(field: Field, alive: Mask | None) -> int:
    end = max(column.slots.end for column in field.values())
    there = np.zeros(end, dtype=np.bool_)
    for column in field.values():
        column.slots.mark(None, there)
    return int(np.count_nonzero(there if alive is None else there & alive[:end]))


def _frequencies(parts: Sequence[tuple[Field, Mask | None]]) -> Counter[Any] | None:
    """How often each text and boolean occurs; None if there are too many."""
    counter: Counter[Any] = Counter()
    for column, alive in _each(parts, TEXTS, ELEMENTS, DATED, DATED_ELEMENTS):
        if column.strings is None or column.values is None:
            continue
        if len(column.strings) > _MOST_COUNTED:
            return None
        codes = (
            column.values.view if alive is None else column.values.view[column.slots.pick(alive)]
        )
        counts = np.bincount(codes, minlength=len(column.strings)).tolist()
        strings = column.strings.all()
        counter.update({string: n for string, n in zip(strings, counts, strict=False) if n})
    for column, alive in _each(parts, BOOLS):
        values = _living(column, alive)
        for value in (True, False):
            if n := int(np.count_nonzero(values == value)):
                counter[value] += n
    return counter


def _extremes(parts: Sequence[tuple[Field, Mask | None]]) -> tuple[Any, Any]:
    numbers: list[Any] = []
    for column, alive in _each(parts, INTS, FLOATS):
        values = _living(column, alive)
        if len(values):
            numbers += [values.min().item(), values.max().item()]
    for column, alive in _each(parts, BIGS):
        if column.strings is not None:
            strings = column.strings.all()
            numbers += [whole_of(strings[code]) for code in set(_living(column, alive).tolist())]
    moments: list[int] = []
    for column, alive in _each(parts, INSTANTS):
        values = _living(column, alive)
        if len(values):
            moments += [values.min().item(), values.max().item()]
    if bool(numbers) == bool(moments):
        return None, None
    if numbers:
        return min(numbers), max(numbers)
    return _moment(min(moments)), _moment(max(moments))


def _moment(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # an offset took it past year 1 or 9999
        return _FIRST if microseconds < 0 else _LAST


def _living(column: Column, alive: Mask | None) -> Any:
    values = np.empty(0) if column.values is None else column.values.view
    return values if alive is None else values[column.slots.pick(alive)]


def _each(
    parts: Sequence[tuple[Field, Mask | None]], *sorts: str
) -> Iterable[tuple[Column, Mask | None]]:
    return [(field[sort], alive) for field, alive in parts for sort in sorts if sort in field]
