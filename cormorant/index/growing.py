"""How does an immutable array grow without being copied at every append?"""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Growing"]

T = TypeVar("T", bound=np.generic)

_SMALLEST = 64


class _Buffer(Generic[T]):
    """Room shared by views: ``used`` is how far any of them has written."""

    __slots__ = ("array", "lock", "used")

    def __init__(self, array: NDArray[T], used: int) -> None:
        self.array = array
        self.used = used
        self.lock = threading.Lock()


class Growing(Generic[T]):
    """The first ``n`` elements of a buffer; they never change.

    Appending to the longest view writes behind it, in place, so that a thousand appends
    cost a thousand elements; appending to an older one copies, so two histories never meet.
    """

    __slots__ = ("_buffer", "view")

    def __init__(self, values: NDArray[T], buffer: _Buffer[T] | None = None) -> None:
        self._buffer = buffer or _Buffer(values, len(values))
        self.view = values.view()
        self.view.flags.writeable = False

    def __len__(self) -> int:
        return len(self.view)

    def append(self, values: NDArray[T]) -> Growing[T]:
        """These elements followed by ``values``."""
        n, total = len(self.view), len(self.view) + len(values)
        buffer = self._buffer
        with buffer.lock:
            if buffer.used != n or total > len(buffer.array) or not buffer.array.flags.writeable:
                array = np.empty(max(_SMALLEST, total + total // 2), dtype=buffer.array.dtype)
                array[:n] = self.view
                buffer = _Buffer(array, n)
            buffer.array[n:total] = values
            buffer.used = total
        return Growing(buffer.array[:total], buffer)

    def with_values(self, at: NDArray[np.int64], value: Any) -> Growing[T]:
        """A copy with ``value`` at the given positions."""
        array = self.view.copy()
        array[at] = value
        return Growing(array)
