"""Is this a fitting operand, and what does it mean?

Each function here checks one shape of operand, says what is accepted if it does not
fit, and returns it in an immutable form that shares nothing with what the user gave.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeAlias

import numpy as np

from cormorant import defaults
from cormorant.errors import FilterError
from cormorant.filters.like import count_wildcards, pattern_fault
from cormorant.filters.values import Kind, Value, classify

__all__ = [
    "Choices",
    "Interval",
    "Operand",
    "at_least",
    "at_most",
    "between",
    "check_text",
    "flag",
    "kinds_of",
    "less",
    "more",
    "pattern",
    "plain",
    "render",
    "scalar",
    "scalars",
    "some_scalars",
    "words",
]

_SHOWN = 5
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of values of one kind; a side that is None is open-ended."""

    low: Value | None = None
    high: Value | None = None
    open_low: bool = False
    open_high: bool = False

    @property
    def kind(self) -> Kind:
        """The only kind of value it can hold."""
        bound = self.low if self.low is not None else self.high
        if bound is None:
            raise FilterError("A range needs at least one bound; got none.")
        return bound.kind

    def covers(self, value: Value) -> bool:
        """Does the value lie within?"""
        if value.kind is not self.kind:
            return False
        return self._above(value.key) and self._below(value.key)

    def _above(self, key: Any) -> bool:
        if self.low is None:
            return True
        bound: Any = self.low.key
        return bool(key > bound if self.open_low else key >= bound)

    def _below(self, key: Any) -> bool:
        if self.high is None:
            return True
        bound: Any = self.high.key
        return bool(key < bound if self.open_high else key <= bound)


@dataclass(frozen=True, slots=True)
class Choices:
    """Several distinct values, in the order given, of any kinds."""

    values: tuple[Value, ...]
    members: frozenset[Value] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", frozenset(self.values))


Operand: TypeAlias = Value | Choices | Interval | bool | str


def check_text(text: str, where: str) -> str:
    """The string, if it can be stored and compared: no lone surrogates."""
    text = str.__str__(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FilterError(
            f"{where} holds a lone surrogate ({_show(text)}), which is no character and matches no "
            "stored text. Decode the string properly before it gets here."
        ) from None
    return text


def scalar(raw: object, where: str) -> Value:
    """One value: text, a number, a boolean, a date or datetime, or None."""
    return _value(raw, where, "text, a number, a boolean, a date, a datetime or None")


def _value(raw: object, where: str, accepted: str) -> Value:
    value = classify(raw)
    if value is None:
        raise FilterError(f"{where} takes {accepted}; got {_name(raw)}.{_advice(raw)}")
    if value.kind is Kind.NUMBER and isinstance(value.key, float) and math.isnan(value.key):
        raise FilterError(
            f"{where} is NaN, which equals nothing and has no order. Give a number, or leave the "
            "clause out."
        )
    if value.text is not None:
        check_text(value.text, where)
    return value


def _ordered(raw: object, where: str) -> Value:
    accepted = "a number, text, a date or a datetime"
    value = _value(raw, where, accepted)
    if value.kind in (Kind.NULL, Kind.BOOLEAN):
        raise FilterError(f"{where} takes {accepted}; got {raw!r}, which has no order. Use $eq.")
    return value


def more(raw: object, where: str) -> Interval:
    """Greater than a value."""
    return Interval(low=_ordered(raw, where), open_low=True)


def at_least(raw: object, where: str) -> Interval:
    """Greater than or equal to a value."""
    return Interval(low=_ordered(raw, where))


def less(raw: object, where: str) -> Interval:
    """Less than a value."""
    return Interval(high=_ordered(raw, where), open_high=True)


def at_most(raw: object, where: str) -> Interval:
    """Less than or equal to a value."""
    return Interval(high=_ordered(raw, where))


def between(raw: object, where: str) -> Interval:
    """From the first to the second of two values, both included."""
    bounds = list(_items(raw, where, "a list of two values, [low, high]"))
    if len(bounds) != 2:
        raise FilterError(f"{where} takes a list of two values, [low, high]; got {len(bounds)}.")
    low, high = (_ordered(bound, f"{where}[{i}]") for i, bound in enumerate(bounds))
    if low.kind is not high.kind:
        raise FilterError(
            f"{where} takes two values of one kind; got a {low.kind} and a {high.kind}."
        )
    interval = Interval(low=low, high=high)
    if not interval.covers(low):
        raise FilterError(
            f"{where} takes the lower bound first; got {_show(low)} before {_show(high)}. "
            "Swap them."
        )
    return interval


def scalars(raw: object, where: str) -> Choices:
    """A list of values, which may be empty; kinds may be mixed."""
    items = _items(raw, where, "a list of values")
    values = (scalar(item, f"{where}[{i}]") for i, item in enumerate(items))
    return Choices(tuple(dict.fromkeys(values)))


def some_scalars(raw: object, where: str) -> Choices:
    """A list of values that is not empty."""
    choices = scalars(raw, where)
    if not choices.values:
        raise FilterError(
            f"{where} takes a list of at least one value; got an empty one, which every record or "
            "none could be said to match. Leave the clause out."
        )
    return choices


def flag(raw: object, where: str) -> bool:
    """True or False, not 1 or 0."""
    if not isinstance(raw, (bool, np.bool_)):
        raise FilterError(f"{where} takes True or False; got {_name(raw)}.")
    return bool(raw)


def pattern(raw: object, where: str) -> str:
    """A pattern for LIKE."""
    if not isinstance(raw, str):
        raise FilterError(
            f"{where} takes a text pattern with % for any characters and _ for one; "
            f"got {_name(raw)}."
        )
    text = check_text(raw, where)
    if len(text) > defaults.MAX_PATTERN_LENGTH:
        raise FilterError(
            f"{where} takes a pattern of at most {defaults.MAX_PATTERN_LENGTH} characters; got "
            f"{len(text):,}, beginning {_show(text)}. Its beginning and % will often do."
        )
    fault = pattern_fault(text)
    if fault is not None:
        raise FilterError(f"{where}: {fault} in {_show(text)}. Write \\\\ for a backslash.")
    wildcards = count_wildcards(text)
    if wildcards > defaults.MAX_PATTERN_WILDCARDS:
        raise FilterError(
            f"{where} takes a pattern with at most {defaults.MAX_PATTERN_WILDCARDS} wildcards; got "
            f"{wildcards} in {_show(text)}. Leave some out, or split it into several clauses."
        )
    return text


def words(raw: object, where: str) -> str:
    """Text with something in it."""
    if not isinstance(raw, str) or not raw.strip():
        got = "an empty text" if isinstance(raw, str) else _name(raw)
        raise FilterError(f"{where} takes the words to look for, as text; got {got}.")
    text = check_text(raw, where)
    size = len(text.encode())
    if size > defaults.MAX_QUERY_BYTES:
        raise FilterError(
            f"{where} takes words of at most {defaults.MAX_QUERY_BYTES:,} bytes; got {size:,}, "
            f"beginning {_show(text)}. Look for fewer of them."
        )
    return text


def _items(raw: object, where: str, accepted: str) -> Iterator[object]:
    """Each item once, by the container's own iterator even if a subclass overrides it."""
    if isinstance(raw, np.ndarray) and raw.ndim == 1:
        return iter(raw.tolist() if raw.dtype.kind in "biufU" else list(raw))
    for container in (list, tuple, set, frozenset, range):
        if isinstance(raw, container):
            return container.__iter__(raw)  # type: ignore[arg-type]
    if isinstance(raw, (str, bytes)) or not isinstance(raw, Iterable):
        raise FilterError(f"{where} takes {accepted}; got {_name(raw)}. Wrap it in a list.")
    raise FilterError(
        f"{where} takes {accepted}; got {_name(raw)}. Accepted are list, tuple, set, frozenset, "
        "range and one-dimensional arrays."
    )


def _name(raw: object) -> str:
    kind = type(raw).__name__
    if type(raw) in (str, int, float, bool):
        return f"{kind} {_show_raw(raw)}"
    return kind


def _advice(raw: object) -> str:
    if isinstance(raw, (list, tuple, set, frozenset)):
        return " To match one of several values use $in; for all of them, $all."
    if isinstance(raw, Mapping):
        return " To reach into a nested mapping write its name with a dot: 'outer.inner'."
    return ""


def plain(operand: Operand) -> Any:
    """The operand as it is written in a filter; the inverse of the checks above."""
    if isinstance(operand, Value):
        return operand.raw
    if isinstance(operand, Interval):
        bounds = [bound.raw for bound in (operand.low, operand.high) if bound is not None]
        return bounds[0] if len(bounds) == 1 else bounds
    if isinstance(operand, Choices):
        return [value.raw for value in operand.values]
    return operand


def kinds_of(operand: Operand) -> frozenset[Kind]:
    """The kinds of value it can equal or hold."""
    if isinstance(operand, Choices):
        return frozenset(value.kind for value in operand.values)
    if isinstance(operand, (Value, Interval)):
        return frozenset((operand.kind,))
    return frozenset((Kind.TEXT,)) if isinstance(operand, str) else frozenset()


def render(operand: Operand) -> str:
    """The operand as words in a sentence."""
    if isinstance(operand, Interval):
        bounds = [_show(bound) for bound in (operand.low, operand.high) if bound is not None]
        return " and ".join(bounds)
    if isinstance(operand, Choices):
        shown = ", ".join(_show(value) for value in operand.values[:_SHOWN])
        rest = len(operand.values) - _SHOWN
        return f"[{shown}, and {rest} more]" if rest > 0 else f"[{shown}]"
    if isinstance(operand, bool):
        return "present" if operand else "missing"
    return _show(operand)


def _show(value: Value | str) -> str:
    return _show_raw(value.raw if isinstance(value, Value) else value)


def _show_raw(raw: Any) -> str:
    if isinstance(raw, str):
        # Escaped where a lone surrogate could not be printed.
        shown = json.dumps(raw, ensure_ascii=any("\ud800" <= c <= "\udfff" for c in raw))
    elif isinstance(raw, int) and raw.bit_length() > _LONGEST_SHOWN * 4:
        shown = f"an integer of {raw.bit_length()} bits"  # Python refuses to print the longest
    elif isinstance(raw, date):
        shown = raw.isoformat()
    else:
        shown = repr(raw)
    return shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 1] + "…"
