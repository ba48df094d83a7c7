"""What passes between storage and the store: heads, deltas, records, problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Arrays",
    "Delta",
    "Head",
    "NewDocument",
    "NewRecord",
    "Problem",
    "Reclaimed",
    "SlotMap",
    "StaleGeneration",
    "StoredDocument",
    "StoredRecord",
]

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]
"""Named arrays: how an index is kept in a derived file."""


class Head(NamedTuple):
    """Where the store stands: one row, read first in every snapshot.

    Attributes:
        lsn: Number of the last committed change; 0 in a new store.
        generation: Which vector file the slots live in.
        n: Slots of that generation, dead ones included.
        next_row: The row the next record gets. Rows are never given out twice.
        dim: Length of a vector; None until the first vector arrives.
        base_n: Slots that the generation's ``.rows`` file describes (0 before any compaction).
        checkpoint_lsn: The checkpoint covers changes up to here; so far the log is trimmed.
        checkpoint_n: Slots that the checkpoint covers.
        checkpoint_name: Stem of the checkpoint's file; None if there is none.
        config_lsn: The change that last touched the configuration.
        files: How many checkpoint files were ever named.
    """

    lsn: int
    generation: int
    n: int
    next_row: int
    dim: int | None
    base_n: int
    checkpoint_lsn: int
    checkpoint_n: int
    checkpoint_name: str | None
    config_lsn: int
    files: int

    @classmethod
    def first(cls, dim: int | None) -> Self:
        """A new store's."""
        return cls(0, 1, 0, 1, dim, 0, 0, 0, None, 0, 0)


class NewRecord(NamedTuple):
    """A record to store; ``metadata_json`` comes from ``encode_metadata``."""

    id: str
    text: str
    metadata_json: str


class NewDocument(NamedTuple):
    """A document to keep; ``metadata_json`` comes from ``encode_metadata``."""

    id: str
    text: str
    metadata_json: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as kept; ``metadata`` is decoded anew for every call."""

    id: str
    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as stored; ``metadata`` is decoded anew for every call."""

    row: int
    id: str
    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Delta:
    """One committed change, as readers replay it.

    Attributes:
        lsn: Its number.
        generation: The generation whose slots it speaks of.
        lo, hi: Slots [lo, hi) were appended.
        first_row: Slot ``lo + i`` holds row ``first_row + i``.
        dead_rows: int64; rows that died, deleted or replaced.
        has_vector: bool, shape (hi - lo,).
        postings, columns: The text and metadata index's encoding of the appended records.
    """

    lsn: int
    generation: int
    lo: int
    hi: int
    first_row: int
    dead_rows: NDArray[np.int64]
    has_vector: NDArray[np.bool_]
    postings: bytes
    columns: bytes

    @property
    def rows(self) -> NDArray[np.int64]:
        """The appended slots' rows, int64, ascending."""
        return np.arange(self.first_row, self.first_row + self.hi - self.lo, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SlotMap:
    """Which row each slot holds, from the truth alone.

    Attributes:
        rows: int64, shape (n,), ascending; dead rows included.
        has_vector: bool, shape (n,).
    """

    rows: NDArray[np.int64]
    has_vector: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Problem:
    """Damage that ``verify`` found.

    Attributes:
        what: One sentence: where, what was found, what was expected.
        path: The file.
        repairable: True if what is damaged is derived and can be rebuilt from the truth.
    """

    what: str
    path: str
    repairable: bool


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """What giving deleted bytes back achieved.

    Attributes:
        before_bytes, after_bytes: Size of the store's files.
        pending_readers: True while an open reader keeps deleted bytes in the log file.
        left: Files of an earlier generation that could not be removed.
    """

    before_bytes: int
    after_bytes: int
    pending_readers: bool
    left: tuple[str, ...] = field(default=())


class StaleGeneration(Exception):
    """Another compaction switched the generation first; start again from a new snapshot."""
