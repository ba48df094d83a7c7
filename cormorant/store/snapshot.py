"""What one search sees: a State, and the SQL transaction that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.index.vector import Coded, ExactIndex, PqIndex
from cormorant.model import Metric, Record
from cormorant.store import settings

if TYPE_CHECKING:
    from cormorant.analysis import Analyzer
    from cormorant.filters import Filter
    from cormorant.index.contract import VectorIndex
    from cormorant.index.metadata import Columns
    from cormorant.index.text import TextIndex
    from cormorant.search import Calibration, RankingConfig, Trust
    from cormorant.storage import Reader, StoredRecord
    from cormorant.store.config import StoreConfig
    from cormorant.store.scope import Scope
    from cormorant.store.state import State

__all__ = ["Snapshot", "Vanished"]


class Vanished(Exception):
    """Rows of the snapshot are gone: it was not isolated from a write. Run again."""


class Snapshot:
    """The protocol of ``search.snapshot``, over a State and its Reader.

    Attributes:
        scope: AND-ed under every filter; None for an unscoped caller.
    """

    def __init__(
        self,
        state: State,
        reader: Reader,
        config: StoreConfig,
        analyzer: Analyzer,
        scope: Scope,
        *,
        in_memory: bool,
    ) -> None:
        self.state = state
        self.reader = reader
        self.config = config
        self.analyzer = analyzer
        self.scope: Filter | None = scope.filter
        self.metric: Metric = config.metric
        self.bm25 = (config.bm25_k1, config.bm25_b)
        self.in_memory = in_memory
        self._vector: VectorIndex | None = None

    @property
    def n(self) -> int:
        """Slots, dead ones included."""
        return self.state.n

    @property
    def dead(self) -> int:
        """How many slots are not alive."""
        return self.state.dead

    @property
    def alive(self) -> NDArray[np.bool_]:
        """bool, shape (n,): False where a record was deleted or replaced."""
        return self.state.alive.view

    @property
    def has_vector(self) -> NDArray[np.bool_]:
        """bool, shape (n,)."""
        return self.state.has_vector.view

    @property
    def without_vector(self) -> int:
        """How many live records have no vector."""
        return self.state.live - self.state.with_vector

    @property
    def columns(self) -> Columns:
        """The metadata index."""
        return self.state.columns

    @property
    def text(self) -> TextIndex:
        """The text index."""
        return self.state.text

    @property
    def dim(self) -> int | None:
        """Numbers per vector; None if the store has no vectors yet."""
        return self.config.dim

    @property
    def ranking(self) -> RankingConfig | None:
        """What somebody set for queries that do not say; None if nobody did."""
        return self.config.ranking

    @property
    def calibration(self) -> Calibration | None:
        """What makes a relevance a probability; None if the store is not calibrated."""
        return self.config.calibration

    @property
    def calibration_doubt(self) -> str | None:
        """Why the calibration no longer fits the vectors, a sentence; None if it does."""
        return settings.calibration_doubt(self.config)

    @property
    def trust(self) -> Trust | None:
        """What the store learned of its legs; None if it did not, or it no longer fits."""
        return self.config.trust if self.trust_doubt is None else None

    @property
    def trust_doubt(self) -> str | None:
        """Why what was learned no longer fits, a sentence; None if it does."""
        return settings.trust_doubt(self.config, self.state.rows.view)

    @property
    def vector(self) -> VectorIndex | None:
        """The vector index; None if no live record has a vector."""
        if self._vector is None:
            self._vector = self._index(self.state.coded)
        return self._vector

    @property
    def scan(self) -> VectorIndex | None:
        """Every vector compared, whatever index there is; None if no live record has one."""
        return self._index(None)

    def _index(self, coded: Coded | None) -> VectorIndex | None:
        vectors = self.vectors() if self.state.with_vector else None
        if vectors is None:
            return None
        # The dead are masked out, so only the living need one.
        all_have = self.state.with_vector == self.state.live
        has_vector = None if all_have else self.has_vector
        if coded is None:
            return ExactIndex(vectors, self.metric, has_vector)
        return PqIndex(coded, vectors, self.metric, has_vector)

    def vectors(self) -> NDArray[np.float32] | None:
        """float32, shape (n, dim), read-only; None if the store has no vectors yet."""
        return self.reader.vectors() if self.config.dim is not None and self.n else None

    def sample_vectors(self) -> NDArray[np.float32]:
        """The vectors whose scores stand for the whole collection's; shape (m, dim)."""
        vectors = self.vectors()
        if vectors is None:
            return np.empty((0, self.dim or 0), np.float32)
        return self.state.sample.vectors(vectors)

    def fetch(self, slots: Sequence[int] | NDArray[np.int64]) -> list[Record]:
        """The records at the given slots, in that order, metadata copied.

        Raises:
            Vanished: If one is gone because a callable filter, in memory, deleted it.
            CorruptionError: If the indexes name a record that the store does not have.
        """
        rows = self.state.rows.view[np.asarray(slots, dtype=np.int64)].tolist()
        stored = self.reader.records(rows)
        try:
            return [_record(stored[row]) for row in rows]
        except KeyError as error:
            if self.in_memory:
                raise Vanished from error
            raise CorruptionError(
                f"The indexes name a record (row {error}) that the store does not have. "
                "check(repair=True) rebuilds what is derived from the records."
            ) from error


def _record(stored: StoredRecord) -> Record:
    return Record(id=stored.id, text=stored.text, metadata=stored.metadata)
