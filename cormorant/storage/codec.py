"""How does metadata become text, so that what comes back equals what went in?

JSON, with dates and datetimes as one-key tables: ``{"$date": "2024-05-01"}``. A
user's own table that looks like one gets another ``$`` before its key.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np

from cormorant import defaults
from cormorant.errors import CorruptionError, RecordError

__all__ = ["MAX_DEPTH", "decode_metadata", "encode_metadata"]

MAX_DEPTH: Final = 32
"""Levels of nesting that metadata may have."""

_DATE: Final = "$date"
_DATETIME: Final = "$datetime"
_TAGGED = re.compile(r"\$+(date|datetime)")
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_ACCEPTED: Final = (
    "Accepted: strings, whole numbers, finite floats, True, False, None, dates, datetimes, and "
    "lists and dicts (with string keys) of these."
)
_HINTS: Final[dict[str, str]] = {
    "set": "Use sorted(…) to make it a list.",
    "frozenset": "Use sorted(…) to make it a list.",
    "bytes": "Decode it to a string.",
    "ndarray": "Use .tolist().",
    "Decimal": "Use float(…) or str(…).",
    "UUID": "Use str(…).",
    "time": "Use .isoformat().",
    "timedelta": "Use .total_seconds().",
    "datetime64": "Use .astype('datetime64[us]').item().",
}


def encode_metadata(metadata: Mapping[str, Any]) -> str:
    """Check metadata and write it as text.

    Tuples become lists and numpy scalars Python numbers. A datetime keeps whether it has
    an offset from UTC, and which; not the name of its time zone.

    Raises:
        RecordError: Says where in the metadata, what was found and what is accepted.

    Example:
        >>> import datetime
        >>> encode_metadata({"year": 2024, "day": datetime.date(2024, 5, 1)})
        '{"year":2024,"day":{"$date":"2024-05-01"}}'
    """
    if not isinstance(metadata, Mapping):
        raise RecordError(
            f"metadata must be a dict; got {type(metadata).__name__}. Use {{}} for none."
        )
    plain = _table(metadata, "metadata", 1)
    try:
        text = _ENCODE(plain)
        size = len(text.encode())
    except UnicodeEncodeError as exc:
        raise RecordError(
            f"{_surrogate(plain, 'metadata')} has a lone surrogate "
            f"({exc.object[exc.start]!r}), which is no character; nothing was stored. Clean the "
            "text first, for instance with text.encode('utf-8', 'replace').decode()."
        ) from None
    except ValueError as exc:  # a whole number of more than 4,300 digits
        raise RecordError(f"metadata has a number that cannot be written down: {exc}.") from None
    if size > defaults.MAX_METADATA_BYTES:
        raise RecordError(
            f"metadata is {size} bytes as JSON; at most {defaults.MAX_METADATA_BYTES} are "
            "accepted. Put long text into the record's text, or keep it elsewhere."
        )
    return text


def decode_metadata(text: str) -> dict[str, Any]:
    """The inverse of :func:`encode_metadata`: a fresh dict.

    Raises:
        CorruptionError: If the text is not what a store writes.

    Example:
        >>> decode_metadata('{"day":{"$date":"2024-05-01"}}')
        {'day': datetime.date(2024, 5, 1)}
    """
    try:
        found = (_TAGS if '"$' in text else _JSON).decode(text)
    except (ValueError, TypeError, RecursionError) as exc:
        raise CorruptionError(f"A record's metadata is damaged: {exc}.") from exc
    if not isinstance(found, dict):
        raise CorruptionError(f"A record's metadata is damaged: a {type(found).__name__}.")
    return found


_ENCODE = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def _table(table: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in table.items():
        if type(key) is not str:
            if not isinstance(key, str):
                raise RecordError(
                    f"{path} has the key {key!r} of type {type(key).__name__}; keys must be "
                    "strings. Use str(…)."
                )
            key = str.__str__(key)  # noqa: PLW2901 - an Enum's or numpy's string, as a plain one
        kind = type(value)
        if kind in _PLAIN:
            plain[key] = value
        else:
            plain[key] = _value(value, path, key, depth)
    if len(plain) == 1:
        (key,) = plain
        if _TAGGED.fullmatch(key):
            return {f"${key}": plain[key]}
    return plain


def _value(value: Any, path: str, key: str | int, depth: int) -> Any:
    """A value that is not of a plain type, or an item of a list."""
    if type(value) in _PLAIN:
        return value
    below = f"{path}[{key!r}]"
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    for kind, convert in _SCALARS:
        if isinstance(value, kind):
            return convert(value, below)
    if not isinstance(value, (Mapping, list, tuple)):
        _refuse(value, below)
    if depth >= MAX_DEPTH:
        raise RecordError(
            f"{path[:200]} is nested deeper than {MAX_DEPTH} levels, or contains itself. "
            "Flatten it."
        )
    if isinstance(value, Mapping):
        return _table(value, below, depth + 1)
    return [_value(item, below, place, depth + 1) for place, item in enumerate(value)]


def _number(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise RecordError(
            f"{path} is {value}; only finite numbers can be stored. Leave it out, or use None."
        )
    return float(value)


def _day(value: dt.date, path: str) -> dict[str, str]:
    if not isinstance(value, dt.datetime):
        return {_DATE: dt.date.isoformat(value)}
    # The base class's own: a subclass may write what cannot be read back.
    text = dt.datetime.isoformat(value)
    same = type(value) is dt.datetime or dt.datetime.fromisoformat(text) == value
    if not same:  # such as pandas.NaT, which says that it is a datetime
        _refuse(value, path)
    return {_DATETIME: text}


_SCALARS: Final[tuple[tuple[type, Callable[[Any, str], Any]], ...]] = (
    (float, _number),
    (bool, lambda value, _: value),
    (int, lambda value, _: int(value)),
    (str, lambda value, _: str.__str__(value)),
    (dt.date, _day),
)
"""In this order: a bool is an int too. Subclasses (an Enum's, say) become the plain type."""


def _refuse(value: object, path: str) -> NoReturn:
    kind = type(value).__name__
    hint = _HINTS.get(kind, "")
    raise RecordError(f"{path} is of type {kind}, which cannot be stored. {hint} {_ACCEPTED}")


def _surrogate(value: Any, path: str) -> str:
    """Where in plain metadata is the text that is no text?"""
    if isinstance(value, dict):
        for key, item in value.items():
            if _is_broken(key):
                return f"{path}: the key {key!r}"
            if found := _surrogate(item, f"{path}[{key!r}]"):
                return found
    elif isinstance(value, list):
        for place, item in enumerate(value):
            if found := _surrogate(item, f"{path}[{place}]"):
                return found
    elif isinstance(value, str) and _is_broken(value):
        return path
    return ""


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _untag(table: dict[str, Any]) -> Any:
    if len(table) != 1:
        return table
    ((key, value),) = table.items()
    if key == _DATE:
        return dt.date.fromisoformat(value)
    if key == _DATETIME:
        return dt.datetime.fromisoformat(value)
    return {key[1:]: value} if _TAGGED.fullmatch(key) else table


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_no_constant)
_TAGS = json.JSONDecoder(object_hook=_untag, parse_constant=_no_constant)
