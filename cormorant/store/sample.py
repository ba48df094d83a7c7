"""Which vectors' scores stand for the whole collection's mean and deviation?

Those of the records with the smallest hashes of their row: a uniform sample that stays
the same while other records come and go. Twice as many as are used are kept, so that
appends and deletions rarely make it look at every record again.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults

__all__ = ["Sample"]

_ALL: Final = (1 << 64) - 1
_KEPT: Final = 2  # times what is used


class Sample:
    """Live slots with a vector, by ascending hash. Immutable, but for what it remembers.

    Args:
        slots: int64: every eligible one whose hash is at most ``bound``.
        keys: uint64, ascending: their hashes.
        bound: The largest hash that belongs here.
    """

    __slots__ = ("_bound", "_keys", "_pool", "_vectors", "slots")

    def __init__(
        self,
        slots: NDArray[np.int64],
        keys: NDArray[np.uint64],
        bound: int,
    ) -> None:
        most = _KEPT * defaults.STATISTICS_SAMPLE
        if len(slots) > most:
            slots, keys, bound = slots[:most], keys[:most], int(keys[most - 1])
        self._pool = slots
        self._keys = keys
        self._bound = bound
        self.slots = np.sort(slots[: defaults.STATISTICS_SAMPLE])
        self._vectors: NDArray[np.float32] | None = None

    @classmethod
    def draw(cls, slots: NDArray[np.int64], rows: NDArray[np.int64]) -> Sample:
        """From all eligible slots and their rows."""
        keys = _splitmix64(rows)
        most = _KEPT * defaults.STATISTICS_SAMPLE
        if len(slots) > most:
            few = np.argpartition(keys, most - 1)[:most]
            order = few[np.argsort(keys[few])]
            return cls(slots[order], keys[order], int(keys[order[-1]]))
        order = np.argsort(keys)
        return cls(slots[order], keys[order], _ALL)

    def joined(self, slots: NDArray[np.int64], rows: NDArray[np.int64]) -> Sample:
        """With further eligible slots."""
        keys = _splitmix64(rows)
        low = np.flatnonzero(keys <= np.uint64(self._bound))
        if not len(low):
            return self
        pool = np.concatenate([self._pool, slots[low]])
        keys = np.concatenate([self._keys, keys[low]])
        order = np.argsort(keys)
        return self._into(pool[order], keys[order])

    def without(self, slots: NDArray[np.int64]) -> Sample | None:
        """Without those that died; None if it must be drawn anew."""
        left = ~np.isin(self._pool, slots)
        if left.all():
            return self
        if self._bound != _ALL and np.count_nonzero(left) < defaults.STATISTICS_SAMPLE:
            return None
        return self._into(self._pool[left], self._keys[left])

    def _into(self, pool: NDArray[np.int64], keys: NDArray[np.uint64]) -> Sample:
        """Another pool; if it comes to the same slots, it shares the copy of their vectors."""
        after = Sample(pool, keys, self._bound)
        if np.array_equal(after.slots, self.slots):
            after._vectors = self._vectors
        return after

    def vectors(self, of_all: NDArray[np.float32]) -> NDArray[np.float32]:
        """Those of the sample, copied together once.

        Args:
            of_all: float32, shape (n, dim): the generation's.
        """
        if self._vectors is None:
            self._vectors = of_all[self.slots]
        return self._vectors


def _splitmix64(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, fig. 15."""
    z = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
