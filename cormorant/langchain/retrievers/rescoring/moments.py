"""When is that? Any form a date in metadata comes in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from cormorant.filters.values import instant_of_text

__all__ = ["moment", "moment_in", "utc_now"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 9999
# From which number on an epoch is in milliseconds, microseconds, nanoseconds: seconds reach
# 1e11 in the year 5138.
_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
_YEAR_FIRST: Final = re.compile(
    r"(\d{4})\s*[-/.年]\s*(\d{1,2})(?:\s*[-/.月]\s*(\d{1,2})\s*日?|\s*月?)"
)
_COMPACT: Final = re.compile(r"(\d{4})(\d{2})(\d{2})")
_NAMED: Final = (
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%B %d %Y",
    "%b %d %Y",
    "%B %Y",
    "%b %Y",
)


def utc_now() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def moment_in(metadata: Mapping[str, Any], field: str) -> datetime | None:
    """The moment under a field, dots reaching into what is nested; of several, the latest."""
    value: Any = metadata
    if field in metadata:
        value = metadata[field]
    else:
        for name in field.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, (list, tuple)):
        read = [at for at in map(moment, value) if at is not None]
        return max(read, default=None)
    return moment(value)


def moment(value: object) -> datetime | None:
    """The moment a value says, in UTC; None if it says none.

    Args:
        value: A datetime or date; seconds, milliseconds, microseconds or nanoseconds since 1970;
            a year; or text: ISO 8601, RFC 2822, ``2024/1/5``, ``20240105``, ``2024年1月5日``,
            ``January 5, 2024``, ``5 Jan 2024``, or one of the numbers. What has no offset is UTC,
            a bare date midnight. ``01/02/2024`` is read as nothing: it is January to some.

    Example:
        >>> moment("2024年1月5日") == moment("2024-01-05T08:00:00+08:00") == moment(1704412800)
        True
    """
    try:
        if isinstance(value, datetime):
            aware = value.replace(tzinfo=UTC) if value.utcoffset() is None else value
            return aware.astimezone(UTC)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _since_1970(value)
        if isinstance(value, str):
            return _read(value.strip())
    except (ValueError, OverflowError):  # the thirtieth of February, the year 99999
        return None
    return None


def _since_1970(number: float) -> datetime | None:
    if not math.isfinite(number):
        return None
    if isinstance(number, int) and _FIRST_YEAR <= number <= _LAST_YEAR:
        return datetime(number, 1, 1, tzinfo=UTC)
    unit = next((unit for least, unit in _UNITS if abs(number) >= least), 1.0)
    return _EPOCH + timedelta(seconds=number / unit)


def _read(text: str) -> datetime | None:
    for reader in (_iso, _digits, _year_first, _named, _standard):
        at = reader(text)  # one that knows the form and finds no such day raises ValueError
        if at is not None:
            return at
    return None


def _iso(text: str) -> datetime | None:
    since = instant_of_text(text)
    return None if since is None else _EPOCH + timedelta(microseconds=since)


def _digits(text: str) -> datetime | None:
    if found := _COMPACT.fullmatch(text):
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
    if re.fullmatch(r"-?\d+", text):
        return _since_1970(int(text))
    return _since_1970(float(text)) if re.fullmatch(r"-?\d+\.\d+", text) else None


def _year_first(text: str) -> datetime | None:
    found = _YEAR_FIRST.fullmatch(text)
    if found is None:
        return None
    return datetime(int(found[1]), int(found[2]), int(found[3] or 1), tzinfo=UTC)


def _named(text: str) -> datetime | None:
    for form in _NAMED:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _standard(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return moment(read(text))
        except (ValueError, TypeError):
            continue
    return None
