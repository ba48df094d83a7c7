"""What does a search see of a store?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask, VectorIndex
from cormorant.model import Metric, Record

if TYPE_CHECKING:
    from cormorant.analysis import Analyzer
    from cormorant.filters import Filter
    from cormorant.index.metadata import Columns
    from cormorant.index.text import TextIndex
    from cormorant.search.calibration import Calibration
    from cormorant.search.ranking import RankingConfig
    from cormorant.search.trust import Trust

__all__ = ["Snapshot"]


class Snapshot(Protocol):
    """One consistent state of a store. Everything is addressed by slot, 0 … n-1."""

    @property
    def n(self) -> int:
        """Slots, dead ones included."""
        ...

    @property
    def dead(self) -> int:
        """How many slots are not alive."""
        ...

    @property
    def alive(self) -> Mask:
        """Shape (n,): False where a record was deleted or replaced."""
        ...

    @property
    def has_vector(self) -> Mask:
        """Shape (n,): False where the record came without a vector."""
        ...

    @property
    def without_vector(self) -> int:
        """How many live records have no vector."""
        ...

    @property
    def columns(self) -> Columns:
        """The metadata index."""
        ...

    @property
    def text(self) -> TextIndex:
        """The text index."""
        ...

    @property
    def vector(self) -> VectorIndex | None:
        """The vector index; None if no live record has a vector."""
        ...

    @property
    def scan(self) -> VectorIndex | None:
        """Every vector compared, whatever index there is; None if no live record has one."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """Text → terms."""
        ...

    @property
    def metric(self) -> Metric:
        """How vectors are compared."""
        ...

    @property
    def dim(self) -> int | None:
        """Numbers per vector; None if the store has no vectors yet."""
        ...

    @property
    def bm25(self) -> tuple[float, float]:
        """(k1, b)."""
        ...

    @property
    def scope(self) -> Filter | None:
        """AND-ed under every filter; None if there is none."""
        ...

    @property
    def ranking(self) -> RankingConfig | None:
        """What somebody set for queries that do not say; None if nobody did."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """What makes a relevance a probability; None if the store is not calibrated."""
        ...

    @property
    def calibration_doubt(self) -> str | None:
        """Why the calibration no longer fits the vectors, a sentence; None if it does."""
        ...

    @property
    def trust(self) -> Trust | None:
        """What the store learned of its legs; None if it did not, or it no longer fits."""
        ...

    @property
    def trust_doubt(self) -> str | None:
        """Why what was learned no longer fits, a sentence; None if it does."""
        ...

    def vectors(self) -> NDArray[np.float32] | None:
        """float32, shape (n, dim), read-only; None if the store has no vectors yet."""
        ...

    def sample_vectors(self) -> NDArray[np.float32]:
        """The vectors whose scores stand for the whole live collection's; shape (m, dim).

        Those of the same records while others come and go, so that statistics hardly move.
        Empty if no live record has a vector.
        """
        ...

    def fetch(self, slots: Sequence[int] | NDArray[np.int64]) -> list[Record]:
        """The records at the given slots, in that order, metadata copied."""
        ...
