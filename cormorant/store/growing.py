"""How does an immutable array grow without being copied at every append?"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Growing"]

T = TypeVar("T", bound=np.generic)


class _Buffer(Generic[T]):
    """Shared storage: ``used`` is how far any view has written."""

    __slots__ = ("array", "used")

    def __init__(self, array: NDArray[T], used: int) -> None:
        self.array = array
        self.used = used


class Growing(Generic[T]):
    """A view of the first ``n`` elements of a shared, growing buffer.

    A view never changes. Appending to the newest view writes behind it, in place;
    appending to an older one copies first, so two histories never meet.
    """

    __slots__ = ("_buffer", "n")

    def __init__(self, values: NDArray[T], *, _buffer: _Buffer[T] | None = None) -> None:
        self._buffer = _buffer or _Buffer(values, len(values))
        self.n = len(values) if _buffer is None else _buffer.used

    @property
    def view(self) -> NDArray[T]:
        """The elements, read-only, shape (n,)."""
        array = self._buffer.array[: self.n]
        array.flags.writeable = False
        return array

    def append(self, values: NDArray[T]) -> Growing[T]:
        """A view of these elements followed by ``values``."""
        total = self.n + len(values)
        buffer = self._buffer
        if buffer.used != self.n or total > len(buffer.array) or not buffer.array.flags.writeable:
            array = np.empty(max(64, total + total // 2), dtype=buffer.array.dtype)
            array[: self.n] = buffer.array[: self.n]
            buffer = _Buffer(array, self.n)
        buffer.array[self.n : total] = values
        buffer.used = total
        return Growing(buffer.array, _buffer=buffer)

    def with_values(self, at: NDArray[np.int64], value: Any) -> Growing[T]:
        """A copy with ``value`` at the given positions."""
        array = self._buffer.array[: self.n].copy()
        array[at] = value
        return Growing(array)
