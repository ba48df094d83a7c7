"""How does an immutable array grow without being copied at every append?

A :class:`Run` is a view of the first ``n`` elements of a buffer that its successors
share. Appending to the newest view writes behind it, in place; appending to an older
one copies first, so two histories never meet. :class:`Slots` says which slots a list of
values belongs to, and keeps no array while they follow each other without a gap.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask

__all__ = ["Run", "Slots"]

_SMALLEST = 16
_CLAIM = Lock()  # held for two comparisons; two threads must not claim the same room


class _Buffer:
    __slots__ = ("array", "used")

    def __init__(self, array: NDArray[Any], used: int) -> None:
        self.array = array
        self.used = used


class Run:
    """The first ``n`` elements of a shared buffer."""

    __slots__ = ("_buffer", "n")

    def __init__(self, buffer: _Buffer, n: int) -> None:
        self._buffer = buffer
        self.n = n

    @classmethod
    def of(cls, array: NDArray[Any]) -> Run:
        """Take an array as it is, mapped and read-only ones included; it is never written."""
        return cls(_Buffer(array, len(array)), len(array))

    @property
    def view(self) -> NDArray[Any]:
        """The elements, shape (n,); not to be written to."""
        return self._buffer.array[: self.n]

    def extend(self, values: NDArray[Any]) -> Run:
        """A run of these elements followed by ``values``, in this run's dtype."""
        if len(values) == 0:
            return self
        total = self.n + len(values)
        buffer = self._buffer
        with _CLAIM:
            claimed = buffer.used == self.n and total <= len(buffer.array)
            if claimed:
                buffer.used = total
        if not claimed:
            grown = np.empty(max(_SMALLEST, total + total // 2), dtype=buffer.array.dtype)
            grown[: self.n] = buffer.array[: self.n]
            buffer = _Buffer(grown, total)
        buffer.array[self.n : total] = values
        return Run(buffer, total)


class Slots:
    """The slot of each value, ascending; a record with several values occurs several times."""

    __slots__ = ("_run", "n", "start")

    def __init__(self, run: Run | None, start: int, n: int) -> None:
        self._run = run
        self.start = start
        self.n = n

    @classmethod
    def of(cls, slots: NDArray[Any]) -> Slots:
        """Slots from an ascending array, which is dropped if it holds no gap and no repeat."""
        n = len(slots)
        if n == 0:
            return cls(None, 0, 0)
        start = int(slots[0])
        if n == 1:
            return cls(None, start, 1)
        if int(slots[-1]) - start == n - 1 and bool((slots[1:] > slots[:-1]).all()):
            return cls(None, start, n)
        return cls(Run.of(slots), start, n)

    @property
    def contiguous(self) -> bool:
        """Whether they are ``start, start + 1, …`` without a gap or repeat."""
        return self._run is None

    @property
    def end(self) -> int:
        """One past the last slot."""
        if self._run is None:
            return self.start + self.n
        return int(self._run.view[-1]) + 1

    @property
    def array(self) -> NDArray[Any]:
        """The slots as an integer array, shape (n,)."""
        if self._run is None:
            return np.arange(self.start, self.start + self.n, dtype=np.int32)
        return self._run.view

    def extend(self, other: Slots, offset: int) -> Slots:
        """These slots, then the other's moved up by ``offset``."""
        if other.n == 0:
            return self
        if self.n == 0:
            start = other.start + offset
            if other.contiguous:
                return Slots(None, start, other.n)
            return Slots(Run.of(other.array.astype(np.int32) + np.int32(offset)), start, other.n)
        follows = other.start + offset == self.start + self.n
        if self._run is None and other.contiguous and follows:
            return Slots(None, self.start, self.n + other.n)
        run = self._run if self._run is not None else Run.of(self.array)
        added = other.array.astype(np.int32) + np.int32(offset)
        return Slots(run.extend(added), self.start, self.n + other.n)

    def mark(self, matched: Mask | None, out: Mask) -> None:
        """Set True in ``out`` at the slots whose value matched (None: at all of them)."""
        if self._run is None:
            part = out[self.start : self.start + self.n]
            if matched is None:
                part[:] = True
            else:
                part |= matched
        else:
            slots = self._run.view
            if matched is not None:
                slots = slots.take(np.flatnonzero(matched))  # four times faster than slots[matched]
            out[slots] = True

    def pick(self, mask: Mask) -> Mask:
        """For each value, whether its slot is set in ``mask``."""
        if self._run is None:
            return mask[self.start : self.start + self.n]
        picked: Mask = mask[self._run.view]
        return picked
