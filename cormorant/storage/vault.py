"""What do a folder and memory both do with vectors, derived arrays and generations?"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cormorant.storage.ranges import Base
from cormorant.storage.types import Arrays, Head, Problem

__all__ = ["Claim", "Connections", "Pin", "Sheet", "Vault"]


class Pin(Protocol):
    """A generation and a checkpoint, held for as long as a snapshot needs them.

    Attributes:
        missing: Whether a file was not there: a compaction may have overtaken the snapshot.
    """

    missing: bool

    def matches(self, head: Head) -> bool:
        """Is it what the head names?"""

    def vectors(self, n: int, dim: int) -> NDArray[np.float32]:
        """The first ``n`` vectors, read-only."""

    def base(self, base_n: int) -> Base:
        """What compaction carried over into the generation."""

    def checkpoint(self) -> dict[str, Arrays]:
        """The checkpoint's arrays; {} if there is none."""

    def check_lengths(self) -> None:
        """Are the checkpoint's arrays, if somebody may hold them, still whole?"""

    def problems(self) -> list[Problem]:
        """What of it is missing, or does not match its checksum; vectors are not looked at."""


class Connections(Protocol):
    """SQLite connections of one store.

    Attributes:
        era: Grows whenever SQLite may have removed its log.
    """

    era: int

    def acquire(self) -> sqlite3.Connection:
        """For one read."""

    def release(self, connection: sqlite3.Connection, owner: int, /) -> None:
        """A read ended that thread ``owner`` began."""

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a snapshot."""

    def end(self, connection: sqlite3.Connection) -> None:
        """End a snapshot."""

    def acquire_writer(self) -> sqlite3.Connection:
        """For a write call; the caller holds the store's lock."""

    def release_writer(self, connection: sqlite3.Connection) -> None:
        """A write call ended."""

    def alone(self, timeout_s: float, /) -> AbstractContextManager[None]:
        """Around a commit: without readers, where they could not be isolated from it."""

    def close(self) -> None:
        """Close what is idle now and the rest as it comes back. Idempotent."""


class Claim(Protocol):
    """A generation under construction.

    Attributes:
        generation: Its number, which nobody else has.
    """

    generation: int

    def put(self, lo: int, vectors: NDArray[np.float32]) -> None:
        """Place vectors at slots from ``lo`` on; float32, C order."""

    def seal(self, base: Base) -> None:
        """Add the base; all is durable on return."""

    def sync(self, n: int, dim: int | None) -> None:
        """Make it ``n`` slots long and durable."""

    def keep(self) -> None:
        """The head names it now; let go of it."""

    def drop(self) -> None:
        """Remove it, unless it was kept."""


class Sheet(Protocol):
    """A checkpoint's arrays, kept; nothing names them yet.

    Attributes:
        name: What the head will call them.
    """

    name: str

    def keep(self) -> None:
        """The head names it now; let go of it."""

    def drop(self) -> None:
        """Remove it, unless it was kept."""


class Vault(Protocol):
    """Where vectors and derived arrays lie. All changes are made under the store's lock."""

    def pin(self, head: Head) -> Pin:
        """Hold what the head names."""

    def prepare(self, head: Head) -> None:
        """Drop what a writer that died left behind."""

    def append(self, head: Head, dim: int | None, count: int, data: memoryview | None) -> None:
        """Make room for ``count`` slots and put their vectors there, durable on return."""

    def save_checkpoint(self, name: str, arrays: Mapping[str, Arrays]) -> None:
        """Keep a checkpoint's arrays, durable on return; nothing names it yet."""

    def write_sheet(self, origin: Head, arrays: Mapping[str, Arrays]) -> Sheet:
        """The same without the store's lock; the next writer lets it be."""

    def drop_checkpoint(self, name: str) -> None:
        """Remove a checkpoint that nothing names."""

    def remove_unnamed(self, head: Head) -> list[str]:
        """Remove what the head does not name; returns what could not be removed."""

    def claim(self, head: Head) -> Claim:
        """Begin a new generation; needs no lock."""

    def release(self) -> None:
        """Let go of what writing holds open."""

    def vector_path(self, generation: int) -> Path:
        """A generation's vectors, for messages."""

    def total_bytes(self) -> int:
        """Size of everything it holds."""
