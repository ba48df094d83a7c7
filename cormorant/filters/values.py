"""What is a metadata value, when are two equal, and which values lie under a dotted name?

Every value has one kind, decided by the value alone, and values of different kinds
are never equal and never ordered. The kinds: null, boolean (True is not 1), number
(1 is 1.0, compared exactly whatever the size), text (by code point), and date: a
``date``, a ``datetime``, or a string that spells one in ISO 8601, compared as the
instant it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

__all__ = [
    "Found",
    "Key",
    "Kind",
    "Value",
    "classify",
    "instant_of_text",
    "join",
    "mappings_in",
    "reach",
]

Key: TypeAlias = bool | int | float | str | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Only the extended format: "20240105" and "2024" are identifiers as often as dates.
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?)(?:\.([0-9]{1,9}))?"
    r"(?:([Zz])|([+-])((?:[01][0-9]|2[0-3])):?([0-5][0-9])?)?)?"
)
_SHORTEST_ISO = 10
_LONGEST_ISO = 35


class Kind(StrEnum):
    """What sort of value it is; the words appear in messages."""

    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar, ready to be compared: equal if ``kind`` and ``key`` are.

    Attributes:
        kind: Decides what it can be compared with.
        key: What is compared; of a date, microseconds since 1970 in UTC.
        raw: As it was written, an exact built-in type.
        element: Whether it stands in an array.
    """

    kind: Kind
    key: Key
    raw: Any = field(compare=False)
    element: bool = field(default=False, compare=False)

    @property
    def text(self) -> str | None:
        """The characters, if it was written as a string (a date may have been)."""
        return self.raw if isinstance(self.raw, str) else None


def classify(raw: object, *, element: bool = False) -> Value | None:  # noqa: PLR0911 - a table
    """What kind of value is this? None if filters cannot compare it (an object, bytes, …)."""
    if isinstance(raw, np.generic):
        raw = _builtin(raw)
    if raw is None:
        return Value(Kind.NULL, None, None, element)
    if isinstance(raw, bool):
        return Value(Kind.BOOLEAN, raw, raw, element)
    # Subclasses are reduced to the built-in type, so that none of their overrides is ever called.
    if isinstance(raw, int):
        number = int.__int__(raw)
        return Value(Kind.NUMBER, number, number, element)
    if isinstance(raw, float):
        real = float.__float__(raw)
        return Value(Kind.NUMBER, real, real, element)
    if isinstance(raw, str):
        text = str.__str__(raw)
        instant = instant_of_text(text)
        if instant is None:
            return Value(Kind.TEXT, text, text, element)
        return Value(Kind.DATE, instant, text, element)
    if isinstance(raw, datetime):
        moment = datetime.combine(date(raw.year, raw.month, raw.day), raw.timetz())
        return Value(Kind.DATE, _instant(moment), moment, element)
    if isinstance(raw, date):
        day = date(raw.year, raw.month, raw.day)
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return Value(Kind.DATE, _instant(midnight), day, element)
    return None


def _builtin(raw: np.generic) -> object:
    """The scalar as a Python value; what has none stays as it is and is not compared."""
    if isinstance(raw, np.timedelta64) or (isinstance(raw, np.datetime64) and np.isnat(raw)):
        return raw
    if isinstance(raw, np.datetime64):
        return raw.astype("datetime64[us]").item()  # item() of nanoseconds is a bare integer
    return raw.item()


def _instant(moment: datetime) -> int:
    if moment.tzinfo is None or moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def instant_of_text(text: str) -> int | None:
    """Microseconds since 1970 in UTC, if the string is an ISO 8601 date or datetime.

    ``2024-01-05``, ``2024-01-05T09:30``, ``2024-01-05 09:30:00.25+08:00``: a bare date is
    midnight, no offset means UTC, digits past the microsecond are dropped. Anything
    else, ``2024-02-30`` included, is text.
    """
    if not _SHORTEST_ISO <= len(text) <= _LONGEST_ISO or text[4] != "-":
        return None
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, _, sign, hours, minutes = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}").replace(tzinfo=UTC)
    except ValueError:  # the thirtieth of February
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    since = moment - _EPOCH - (-offset if sign == "-" else offset)
    return since // _MICROSECOND + int((fraction or "0").ljust(6, "0")[:6])


def join(prefix: str, key: str) -> str:
    """The dotted name of ``key`` inside the mapping called ``prefix``."""
    return f"{prefix}.{key}"


def mappings_in(raw: object) -> Iterator[Mapping[Any, Any]]:
    """The mappings a dotted name reaches into: the value itself, or those in its arrays."""
    stack = [raw]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            yield node
        elif isinstance(node, (list, tuple)):
            stack.extend(reversed(node))


class Found(NamedTuple):
    """What one record holds under a name: is it there, and its comparable values."""

    present: bool
    values: Sequence[Value]


def reach(metadata: Mapping[str, Any], name: str) -> Found:
    """Is the field there, and which values does it hold?

    A dot reaches into a nested mapping, and into the mappings of an array; a key that
    itself contains dots is reached by the same name. Arrays count as their elements,
    nested ones too. A mapping is there but is no value itself.
    """
    present = False
    values: list[Value] = []
    pending: list[tuple[Mapping[Any, Any], str]] = [(metadata, name)]
    while pending:
        node, rest = pending.pop()
        for key, child in node.items():
            if key == rest:
                present = True
                values.extend(_values_in(child))
            elif isinstance(key, str) and rest.startswith(key + "."):
                deeper = rest[len(key) + 1 :]
                pending.extend((mapping, deeper) for mapping in mappings_in(child))
    return Found(present, values)


def _values_in(raw: object) -> Iterator[Value]:
    stack = [(raw, False)]
    while stack:
        node, element = stack.pop()
        if isinstance(node, (list, tuple)):
            stack.extend((inner, True) for inner in reversed(node))
        elif not isinstance(node, Mapping):
            value = classify(node, element=element)
            if value is not None:
                yield value
