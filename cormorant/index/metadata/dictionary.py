"""Which distinct strings does a column hold, and which codes stand for those asked for?

Two forms of one thing. :class:`SortedStrings` is what is kept in files: sorted UTF-8 in
one blob, mapped; a code's order is its string's order (UTF-8 bytes sort as code points
do), so equality is a binary search, a range is a range of codes, and nothing is decoded
until a filter must look at every string. :class:`GrowingStrings` is what recent records
are collected in: a list and a dict, shared by the versions that grow from each other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.filters import Interval
from cormorant.index.contract import Mask

__all__ = ["REPAIR", "Codes", "GrowingStrings", "SortedStrings", "Strings", "encode_strings"]

REPAIR: Final = "check(repair=True) builds the columns anew from the records."

Codes: TypeAlias = range | NDArray[np.int64] | Mask
"""A set of codes: a range, a list of them, or a table with one entry per code."""


class Strings(Protocol):
    """The distinct strings of a column; a code is a position among them."""

    def __len__(self) -> int: ...

    def all(self) -> Sequence[str]:
        """Every string, by code.

        Raises:
            CorruptionError: The bytes of one are no UTF-8.
        """
        ...

    def find(self, wanted: Sequence[str]) -> Codes:
        """The codes of those strings that occur."""
        ...

    def within(self, interval: Interval) -> Codes:
        """The codes of the strings in the interval."""
        ...

    def where(self, test: Callable[[str], bool], prefix: str = "") -> Codes:
        """The codes of the strings that pass; all of those are known to begin with ``prefix``."""
        ...


def encode_strings(strings: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets, shape (d + 1,), and the UTF-8 bytes they cut."""
    whole = "".join(strings)
    data = whole.encode()
    sizes: Any = map(len, strings if len(data) == len(whole) else map(str.encode, strings))
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(sizes, dtype=np.int64, count=len(strings)), out=offsets[1:])
    return offsets, np.frombuffer(data, dtype=np.uint8)


class SortedStrings:
    """Sorted distinct strings in mapped arrays."""

    __slots__ = ("_blob", "_offsets")

    def __init__(self, offsets: NDArray[Any], blob: NDArray[np.uint8]) -> None:
        self._offsets = offsets
        self._blob = blob

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def all(self) -> list[str]:
        """Every string, in order."""
        return self._decode(0, len(self))

    def find(self, wanted: Sequence[str]) -> Codes:
        """By binary search, or by one pass if many are asked for."""
        if len(wanted) * max(1, len(self).bit_length()) > len(self):
            members = frozenset(wanted)
            return np.flatnonzero([string in members for string in self.all()])
        found = []
        for string in wanted:
            data = string.encode()
            code = bisect_left(range(len(self)), data, key=self._bytes)
            if code < len(self) and self._bytes(code) == data:
                found.append(code)
        return np.array(found, dtype=np.int64)

    def within(self, interval: Interval) -> range:
        """A range of codes, since they are in order."""
        codes = range(len(self))
        low, high = 0, len(self)
        if interval.low is not None:
            cut = bisect_right if interval.open_low else bisect_left
            low = cut(codes, str(interval.low.key).encode(), key=self._bytes)
        if interval.high is not None:
            cut = bisect_left if interval.open_high else bisect_right
            high = cut(codes, str(interval.high.key).encode(), key=self._bytes)
        return range(low, max(low, high))

    def where(self, test: Callable[[str], bool], prefix: str = "") -> Codes:
        """Only what begins with the prefix is decoded."""
        low, high = 0, len(self)
        if prefix:
            start = prefix.encode()
            codes = range(len(self))
            low = bisect_left(codes, start, key=self._bytes)
            high = bisect_right(codes, start, key=lambda code: self._bytes(code)[: len(start)])
        return low + np.flatnonzero([test(string) for string in self._decode(low, high)])

    def _bytes(self, code: int) -> bytes:
        return self._blob[self._offsets[code] : self._offsets[code + 1]].tobytes()

    def _decode(self, low: int, high: int) -> list[str]:
        if low >= high:
            return []
        cuts = self._offsets[low : high + 1].astype(np.int64)
        cuts -= cuts[0]
        data = self._blob[self._offsets[low] : self._offsets[high]].tobytes()
        try:
            return self._cut(data, cuts)
        except UnicodeDecodeError as error:
            raise CorruptionError(
                f"A string of the metadata columns is damaged: {error}. {REPAIR}"
            ) from error

    @staticmethod
    def _cut(data: bytes, cuts: NDArray[np.int64]) -> list[str]:
        if data.isascii():
            whole = data.decode("ascii")
            return [whole[start:end] for start, end in pairwise(cuts.tolist())]
        return [data[start:end].decode() for start, end in pairwise(cuts.tolist())]


class _Shared:
    """What all versions grown from each other have in common."""

    __slots__ = ("codes", "lock", "strings")

    def __init__(self, strings: list[str]) -> None:
        self.strings = strings
        self.codes = {string: code for code, string in enumerate(strings)}
        self.lock = Lock()

    def code(self, string: str) -> int:
        """The string's code, a new one if it has none."""
        code = self.codes.setdefault(string, len(self.strings))
        if code == len(self.strings):
            self.strings.append(string)
        return code


class GrowingStrings:
    """The first ``n`` strings of a list that later versions share and lengthen."""

    __slots__ = ("_n", "_shared")

    def __init__(self, shared: _Shared | None = None, n: int = 0) -> None:
        self._shared = shared if shared is not None else _Shared([])
        self._n = n

    def __len__(self) -> int:
        return self._n

    def all(self) -> list[str]:
        """Every string, oldest first."""
        return self._shared.strings[: self._n]

    def extend(self, strings: Sequence[str]) -> tuple[GrowingStrings, NDArray[np.int64]]:
        """A version that holds these strings too, and their codes in it."""
        with self._shared.lock:
            shared = self._shared
            if len(shared.strings) != self._n:
                shared = _Shared(shared.strings[: self._n])
            codes = np.fromiter(map(shared.code, strings), dtype=np.int64, count=len(strings))
            return GrowingStrings(shared, len(shared.strings)), codes

    def find(self, wanted: Sequence[str]) -> Codes:
        """One look-up each; what a later version added is not seen."""
        codes = (self._shared.codes.get(string, self._n) for string in wanted)
        return np.array([code for code in codes if code < self._n], dtype=np.int64)

    def within(self, interval: Interval) -> Codes:
        """By comparing each."""
        low, high = interval.low, interval.high
        lowest = "" if low is None else str(low.key)
        highest = "" if high is None else str(high.key)
        return self.where(
            lambda string: (
                (low is None or (string > lowest if interval.open_low else string >= lowest))
                and (
                    high is None or (string < highest if interval.open_high else string <= highest)
                )
            )
        )

    def where(self, test: Callable[[str], bool], prefix: str = "") -> Codes:  # noqa: ARG002
        """By asking of each."""
        return np.fromiter(
            map(test, self._shared.strings[: self._n]), dtype=np.bool_, count=self._n
        )
