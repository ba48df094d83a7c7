"""Which are the k best of a stream of scores, ties going to the lower slot?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["TopK"]


class TopK:
    """Keeps the k best of what it is fed, in bounded memory.

    Args:
        k: How many, at least 1.
    """

    __slots__ = ("_floor", "_held", "_k", "_scores", "_slots")

    def __init__(self, k: int) -> None:
        self._k = k
        self._scores: list[NDArray[np.float32]] = []
        self._slots: list[NDArray[np.int64]] = []
        self._held = 0
        self._floor = np.float32(-np.inf)

    def feed(self, scores: NDArray[np.float32], slots: NDArray[np.int64] | int) -> None:
        """Take in a block.

        Args:
            scores: float32, shape (m,).
            slots: int64, shape (m,), ascending, all above those fed before; or the first
                of m slots that follow each other.
        """
        # A later slot loses a tie with the floor, but before k are held there is no floor.
        keep = np.flatnonzero(scores > self._floor if self._held >= self._k else scores >= -np.inf)
        if not len(keep):
            return
        self._scores.append(scores[keep])
        self._slots.append(keep + slots if isinstance(slots, int) else slots[keep])
        self._held += len(keep)
        if self._held > self._k:
            self._shrink()

    def _shrink(self) -> None:
        """Back to k, still in slot order."""
        scores, slots = np.concatenate(self._scores), np.concatenate(self._slots)
        floor = np.partition(scores, len(scores) - self._k)[len(scores) - self._k]
        keep = scores > floor
        ties = np.flatnonzero(scores == floor)
        keep[ties[: self._k - int(np.count_nonzero(keep))]] = True
        self._scores, self._slots = [scores[keep]], [slots[keep]]
        self._held = self._k
        self._floor = floor

    def best(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The slots and their scores, best first, ties by the lower slot."""
        if not self._held:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        scores, slots = np.concatenate(self._scores), np.concatenate(self._slots)
        order = np.argsort(-scores, kind="stable")  # slots ascend, so stable means lower first
        return slots[order], scores[order]
