"""What every index answers: row, give me a score.

All indexes of one snapshot share one numbering: *slots*, 0 … n-1, the position of
a record in the snapshot's arrays. (A record's permanent *row* is storage's own
number; ``snapshot.rows[slot]`` gives it.) Everything here is immutable: a change
makes a new object that shares its arrays with the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "LegResult", "Mask", "VectorIndex"]

Mask: TypeAlias = NDArray[np.bool_]
Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]
"""Named arrays: how an index is kept in a derived file (see ``storage.arrays``)."""


@dataclass(frozen=True, slots=True)
class LegResult:
    """One index's ranked list.

    How scores spread over the whole collection is not in it: that does not depend on what
    was fetched. See ``search.legs``.

    Attributes:
        slots: int64, shape (m,), best first; ties by the lower slot.
        scores: float32, shape (m,), descending.
        matched: How many records scored at all (an estimate if ``exact`` is False). Where
            counting them would cost more than ranking, at least so many; more than ``k`` if
            there are more than ``k``.
        exact: True if the list is what a full scan would give.
        counters: Work done, by name.
        says: How it was run, in one sentence that begins with the leg's name.
    """

    slots: NDArray[np.int64]
    scores: NDArray[np.float32]
    matched: int
    exact: bool
    counters: Mapping[str, int]
    says: str


class VectorIndex(Protocol):
    """Nearest vectors. Scores are similarities: higher is better, never a distance."""

    def search(self, query: NDArray[np.float32], k: int, mask: Mask | None) -> LegResult:
        """The ``k`` best among the slots where ``mask`` is True (None: all that have a vector)."""
        ...

    def score(self, query: NDArray[np.float32], slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Exact scores of the given slots; -inf where a slot has no vector."""
        ...
