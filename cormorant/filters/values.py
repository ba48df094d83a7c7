"""What is a metadata value, when are two equal, and which values lie under a dotted name?

Every value has one kind, decided by the value alone, and values of different kinds
are never equal and never ordered. The kinds: null, boolean (True is not 1), number
(1 is 1.0, compared exactly whatever the size), text (by code point), and date: a
``date``, a ``datetime``, or a string that spells one in ISO 8601, compared as the
instant it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    "kind_and_key",
    "mappings_in",
    "reach",
]

Key: TypeAlias = bool | int | float | str | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Only the extended format: "20240105" and "2024" are identifiers as often as dates.
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?"
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


def classify(raw: object, *, element: bool = False) -> Value | None:
    """What kind of value is this? None if filters cannot compare it (an object, bytes, …)."""
    known = kind_and_key(raw)
    return None if known is None else Value(known[0], known[1], _exact(raw), element)


def kind_and_key(raw: object) -> tuple[Kind, Key] | None:
    """The kind of a value and what of it is compared; None if filters cannot compare it."""
    reader = _READERS.get(type(raw))
    if reader is not None:
        return reader(raw)
    exact = _exact(raw)
    reader = _READERS.get(type(exact))
    return None if reader is None else reader(exact)


def _exact(raw: object) -> object:
    """The value as a plain built-in, so that no override of a subclass is ever called."""
    if type(raw) in _READERS:
        return raw
    if isinstance(raw, np.generic):
        raw = _builtin(raw)
        if type(raw) in _READERS:
            return raw
    for kind, exact in _EXACT:
        if isinstance(raw, kind):
            return exact(raw)
    return raw


def _builtin(raw: np.generic) -> object:
    """The scalar as a Python value; what has none stays as it is and is not compared."""
    if isinstance(raw, np.timedelta64) or (isinstance(raw, np.datetime64) and np.isnat(raw)):
        return raw
    if isinstance(raw, np.datetime64):
        return raw.astype("datetime64[us]").item()  # item() of nanoseconds is a bare integer
    return raw.item()


def _read_text(raw: Any) -> tuple[Kind, Key]:
    instant = instant_of_text(raw)
    return (Kind.TEXT, raw) if instant is None else (Kind.DATE, instant)


def _read_datetime(raw: datetime) -> tuple[Kind, Key]:
    moment = raw.replace(tzinfo=UTC) if raw.utcoffset() is None else raw
    return Kind.DATE, (moment - _EPOCH) // _MICROSECOND


def _read_date(raw: date) -> tuple[Kind, Key]:
    return _read_datetime(datetime(raw.year, raw.month, raw.day, tzinfo=UTC))


_READERS: dict[type, Callable[[Any], tuple[Kind, Key]]] = {
    type(None): lambda raw: (Kind.NULL, raw),
    bool: lambda raw: (Kind.BOOLEAN, raw),
    int: lambda raw: (Kind.NUMBER, raw),
    float: lambda raw: (Kind.NUMBER, raw),
    str: _read_text,
    datetime: _read_datetime,
    date: _read_date,
}
_EXACT: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (datetime, lambda raw: datetime.combine(date(raw.year, raw.month, raw.day), raw.timetz())),
    (date, lambda raw: date(raw.year, raw.month, raw.day)),
)


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
    day, clock, second, fraction, _, sign, hours, minutes = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}:{second or '00'}+00:00")
    except ValueError:  # the thirtieth of February
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    since = moment - _EPOCH - (-offset if sign == "-" else offset)
    return since // _MICROSECOND + int((fraction or "0").ljust(6, "0")[:6])


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
