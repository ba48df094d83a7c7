"""Which slots match one clause? The column functions the operator table names.

Each sets True in ``out`` at the slots with a matching value and leaves the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.filters import Choices, Interval, Kind, Value, compile_like, literal_prefix
from cormorant.index.contract import Mask
from cormorant.index.metadata.dictionary import Codes
from cormorant.index.metadata.table import (
    BIGS,
    BOOLS,
    DATED,
    DATED_ELEMENTS,
    ELEMENTS,
    FLOATS,
    INSTANTS,
    INTS,
    NULLS,
    TEXTS,
    Column,
    Field,
    whole_of,
)

__all__ = ["MASKS", "MaskFunction"]

MaskFunction = Callable[[Field, Any, Mask], None]

_FEW = 8  # values compared one after the other rather than looked up in a sorted list


def _exists(field: Field, operand: object, out: Mask) -> None:  # noqa: ARG001
    for column in field.values():
        column.slots.mark(None, out)


def _equal(field: Field, operand: Value, out: Mask) -> None:
    _MEMBERS[operand.kind](field, [operand.key], out)


def _all_of(field: Field, operand: Choices, out: Mask) -> None:
    every = np.ones(len(out), dtype=np.bool_)
    for value in operand.values:
        has = np.zeros(len(out), dtype=np.bool_)
        _equal(field, value, has)
        every &= has
    out |= every


def _one_of(field: Field, operand: Choices, out: Mask) -> None:
    keys: dict[Kind, list[Any]] = {}
    for value in operand.values:
        keys.setdefault(value.kind, []).append(value.key)
    for kind, members in keys.items():
        _MEMBERS[kind](field, members, out)


def _within(field: Field, operand: Interval, out: Mask) -> None:
    if operand.kind is Kind.TEXT:
        for column in _columns(field, TEXTS, ELEMENTS):
            if column.strings is not None:
                _mark_codes(column, column.strings.within(operand), out)
    elif operand.kind is Kind.DATE:
        for column in _columns(field, INSTANTS):
            _mark(column, _whole_within(_values(column), operand), out)
    else:
        for column in _columns(field, INTS):
            _mark(column, _whole_within(_values(column), operand), out)
        for column in _columns(field, FLOATS):
            _mark(column, _real_within(_values(column), operand), out)
        _mark_bigs(field, lambda number: operand.covers(Value(Kind.NUMBER, number, number)), out)


def _contains(field: Field, operand: Value, out: Mask) -> None:
    _equal(field, operand, out)
    part = operand.text
    if part is not None:
        for column in _columns(field, TEXTS, DATED):
            if column.strings is not None:
                _mark_codes(column, column.strings.where(lambda text: part in text), out)


def _like(field: Field, operand: str, out: Mask) -> None:
    _fits(field, operand, out, ignore_case=False)


def _ilike(field: Field, operand: str, out: Mask) -> None:
    _fits(field, operand, out, ignore_case=True)


def _fits(field: Field, operand: str, out: Mask, *, ignore_case: bool) -> None:
    whole = compile_like(operand, ignore_case=ignore_case).fullmatch
    prefix = "" if ignore_case else literal_prefix(operand)
    for column in _columns(field, TEXTS, ELEMENTS, DATED, DATED_ELEMENTS):
        if column.strings is not None:
            found = column.strings.where(lambda text: whole(text) is not None, prefix)
            _mark_codes(column, found, out)


def _null_members(field: Field, members: list[Any], out: Mask) -> None:  # noqa: ARG001
    for column in _columns(field, NULLS):
        column.slots.mark(None, out)


def _boolean_members(field: Field, members: list[Any], out: Mask) -> None:
    for column in _columns(field, BOOLS):
        for member in members:
            _mark(column, _values(column) == np.uint8(member), out)


def _number_members(field: Field, members: list[Any], out: Mask) -> None:
    for column in _columns(field, INTS):
        _mark(column, _among(_values(column), members), out)
    for column in _columns(field, FLOATS):
        _mark(column, _among(_values(column), members), out)
    wanted = frozenset(members)
    _mark_bigs(field, wanted.__contains__, out)


def _date_members(field: Field, members: list[Any], out: Mask) -> None:
    for column in _columns(field, INSTANTS):
        _mark(column, _among(_values(column), members), out)


def _text_members(field: Field, members: list[Any], out: Mask) -> None:
    for column in _columns(field, TEXTS, ELEMENTS):
        if column.strings is not None:
            _mark_codes(column, column.strings.find(members), out)


_MEMBERS: Mapping[Kind, MaskFunction] = {
    Kind.NULL: _null_members,
    Kind.BOOLEAN: _boolean_members,
    Kind.NUMBER: _number_members,
    Kind.DATE: _date_members,
    Kind.TEXT: _text_members,
}


def _columns(field: Field, *sorts: str) -> Iterable[Column]:
    return [field[sort] for sort in sorts if sort in field]


def _values(column: Column) -> NDArray[Any]:
    return np.empty(0) if column.values is None else column.values.view


def _mark(column: Column, matched: Mask | bool, out: Mask) -> None:  # noqa: FBT001
    if isinstance(matched, bool):
        if matched:
            column.slots.mark(None, out)
    else:
        column.slots.mark(matched, out)


def _mark_codes(column: Column, codes: Codes, out: Mask) -> None:
    """Mark the slots whose code is among these."""
    if len(codes) == 0:
        return
    values = _values(column)
    if isinstance(codes, range):
        _mark(column, _between(values, codes.start, codes.stop - 1), out)
    elif codes.dtype == np.bool_:
        if codes.any():
            column.slots.mark(codes[values], out)
    elif len(codes) <= _FEW:
        for code in codes.tolist():
            column.slots.mark(values == values.dtype.type(code), out)
    elif column.strings is not None:
        table = np.zeros(len(column.strings), dtype=np.bool_)
        table[codes] = True
        column.slots.mark(table[values], out)


def _mark_bigs(field: Field, test: Callable[[int], bool], out: Mask) -> None:
    for column in _columns(field, BIGS):
        if column.strings is not None:
            found = column.strings.where(lambda digits: test(whole_of(digits)))
            _mark_codes(column, found, out)


def _whole_within(values: NDArray[Any], interval: Interval) -> Mask | bool:
    """Integers within bounds that may be fractions or too large: exact."""
    bounds = np.iinfo(values.dtype)
    low, high = int(bounds.min), int(bounds.max)
    if interval.low is not None:
        key: Any = interval.low.key
        if key == math.inf:
            return False
        if key != -math.inf:
            low = math.floor(key) + 1 if interval.open_low else math.ceil(key)
    if interval.high is not None:
        key = interval.high.key
        if key == -math.inf:
            return False
        if key != math.inf:
            high = math.ceil(key) - 1 if interval.open_high else math.floor(key)
    return _between(values, low, high)


def _between(values: NDArray[Any], low: int, high: int) -> Mask | bool:
    """Integers from low to high, both included; a bound the dtype cannot pass is not compared."""
    bounds = np.iinfo(values.dtype)
    if low > high or low > bounds.max or high < bounds.min:
        return False
    exact = values.dtype.type
    matched: Mask
    if low == high:
        matched = values == exact(low)
    elif low <= bounds.min:
        if high >= bounds.max:
            return True
        matched = values <= exact(high)
    else:
        matched = values >= exact(low)
        if high < bounds.max:
            matched &= values <= exact(high)
    return matched


def _real_within(values: NDArray[Any], interval: Interval) -> Mask:
    """Floats within bounds that may be integers no float can express: exact."""
    matched: Mask = values == values  # noqa: PLR0124 - NaN is within nothing
    real = values.dtype.type
    if interval.low is not None:
        bound, above = _float_from(interval.low.key, real)
        matched &= values > bound if interval.open_low and not above else values >= bound
    if interval.high is not None:
        key: Any = interval.high.key
        bound, below = _float_from(-key, real)
        matched &= values < -bound if interval.open_high and not below else values <= -bound
    return matched


def _float_from(key: Any, real: Any) -> tuple[Any, bool]:
    """The least float of that width that is at least ``key``, and whether it is more."""
    with np.errstate(over="ignore"):
        try:
            bound = real(float(key))
        except OverflowError:
            bound = real(math.inf if key > 0 else -math.inf)
        while float(bound) < key:
            bound = np.nextafter(bound, real(math.inf))
        below = np.nextafter(bound, real(-math.inf))
        while float(below) >= key and below != bound:
            bound, below = below, np.nextafter(below, real(-math.inf))
    return bound, float(bound) > key


def _among(values: NDArray[Any], members: list[Any]) -> Mask | bool:
    """Numbers that equal one of the members exactly."""
    express = _as_float if values.dtype.kind == "f" else _as_whole
    with np.errstate(over="ignore"):
        expressed = [express(values.dtype, member) for member in members]
    exact = [member for member in expressed if member is not None]
    matched: Mask
    if not exact:
        return False
    if len(exact) <= _FEW:
        matched = values == exact[0]
        for member in exact[1:]:
            matched |= values == member
        return matched
    ordered = np.sort(np.array(exact, dtype=values.dtype))
    at = np.searchsorted(ordered, values)
    np.minimum(at, len(ordered) - 1, out=at)
    matched = ordered[at] == values
    return matched


def _as_float(dtype: np.dtype[Any], member: Any) -> Any:
    """The member in that dtype, or None if that cannot express it."""
    try:
        real = dtype.type(float(member))
    except OverflowError:
        return None
    return real if float(real) == member else None


def _as_whole(dtype: np.dtype[Any], member: Any) -> Any:
    """The member in that dtype, or None if that cannot express it."""
    bounds = np.iinfo(dtype)
    if not bounds.min <= member <= bounds.max or member != math.floor(member):
        return None
    return dtype.type(int(member))


MASKS: Mapping[str, MaskFunction] = MappingProxyType(
    {
        "equal": _equal,
        "within": _within,
        "one_of": _one_of,
        "all_of": _all_of,
        "exists": _exists,
        "contains": _contains,
        "like": _like,
        "ilike": _ilike,
    }
)
"""By the name in ``Operator.mask``."""
