"""Which versions of which sources hold a chunk?

Millions of pairs of chunk and version, so they lie in arrays: 12 bytes each. A chunk stands there
by the first 64 bits of its id; who needs to be sure compares the whole id with the version's list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Members", "key_of"]

_FRESH: Final = 200_000  # pairs kept in dicts before they are sorted in


def key_of(id: str) -> int:
    """The number a chunk's id stands by."""
    return int(id[:16], 16)


class Members:
    """Pairs of chunk and owner; an owner is a whole number, one for each version of a source."""

    def __init__(self) -> None:
        self._keys = np.empty(0, np.uint64)  # ascending
        self._owners = np.empty(0, np.int32)
        self._fresh: dict[int, list[int]] = {}
        self._waiting = 0
        self._dropped: set[int] = set()  # owners

    def __len__(self) -> int:
        """How many pairs there are."""
        self._merge()
        return len(self._keys)

    def add(self, owner: int, keys: Iterable[int]) -> None:
        """The owner holds these chunks, each named once."""
        for key in keys:
            self._fresh.setdefault(key, []).append(owner)
            self._waiting += 1
        if self._waiting > _FRESH:
            self._merge()

    def drop(self, owner: int) -> None:
        """The owner is gone, with all it held."""
        self._dropped.add(owner)

    def of(self, key: int) -> list[int]:
        """The owners that hold a chunk, ascending."""
        wanted = np.uint64(key)
        lo = int(np.searchsorted(self._keys, wanted, side="left"))
        hi = lo
        while hi < len(self._keys) and self._keys[hi] == wanted:
            hi += 1
        found = {*self._owners[lo:hi].tolist(), *self._fresh.get(key, ())}
        return sorted(found - self._dropped)

    def _merge(self) -> None:
        if not self._waiting and not self._dropped:
            return
        keys = np.fromiter(
            (key for key, owners in self._fresh.items() for _ in owners), np.uint64, self._waiting
        )
        owners = np.fromiter(
            (owner for owners in self._fresh.values() for owner in owners), np.int32, self._waiting
        )
        keys, owners = np.concatenate([self._keys, keys]), np.concatenate([self._owners, owners])
        if self._dropped:
            gone: NDArray[np.int32] = np.fromiter(self._dropped, np.int32, len(self._dropped))
            stays = ~np.isin(owners, gone)
            keys, owners = keys[stays], owners[stays]
        order = np.argsort(keys, kind="stable")
        self._keys, self._owners = keys[order], owners[order]
        self._fresh, self._waiting = {}, 0
        self._dropped = set()
