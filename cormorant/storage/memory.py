"""How does a store live in memory, touching no file, with the same promises?

One SQLite database in memory cannot be read in an old state while it is written, so
readers share a lock and a commit waits until they have left: each snapshot is
isolated, at the price that a commit waits for searches that are under way.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import StoreClosed
from cormorant.storage import lock, sql
from cormorant.storage.ranges import Base
from cormorant.storage.types import Arrays, Head, Problem

__all__ = ["Memory", "SharedConnection"]


class MemoryPin:
    """The arrays of one generation and one checkpoint."""

    def __init__(self, memory: Memory, head: Head) -> None:
        self.missing = False
        self._named = (head.generation, head.checkpoint_name)
        self._memory = memory
        self._checkpoint = memory.checkpoints.get(head.checkpoint_name or "", {})

    def matches(self, head: Head) -> bool:
        """Is it what the head names?"""
        return self._named == (head.generation, head.checkpoint_name)

    def vectors(self, n: int, dim: int) -> NDArray[np.float32]:
        """The first ``n`` vectors, read-only."""
        held = self._memory.arrays.get(self._named[0])
        if held is None and n:
            raise StoreClosed("This thread compacted the store inside this snapshot; it is over.")
        view = np.empty((0, dim), np.float32) if held is None else held[:n]
        view.flags.writeable = False
        return view

    def base(self, base_n: int) -> Base:
        """What compaction carried over into the generation."""
        return self._memory.bases[self._named[0]] if base_n else Base.empty()

    def checkpoint(self) -> dict[str, Arrays]:
        """The checkpoint's arrays; {} if there is none."""
        return dict(self._checkpoint)

    def check_lengths(self) -> None:
        """Nothing to do: nobody else can cut them."""

    def problems(self) -> list[Problem]:
        """None: what is in memory has no bytes of its own to check."""
        return []


class Memory:
    """Vectors and derived arrays, in place of files."""

    def __init__(self) -> None:
        self.arrays: dict[int, NDArray[np.float32]] = {}
        self.bases: dict[int, Base] = {}
        self.checkpoints: dict[str, dict[str, Arrays]] = {}
        self.claimed = 1
        self.drafted = 0

    def pin(self, head: Head) -> MemoryPin:
        """Hold what the head names."""
        return MemoryPin(self, head)

    def vector_path(self, generation: int) -> Path:
        """A name for messages."""
        return Path(f":memory:/{generation}")

    def room(self, generation: int, n: int, dim: int) -> NDArray[np.float32]:
        """A generation's buffer, with room for ``n`` vectors; who views the old one keeps it."""
        held = self.arrays.get(generation)
        if held is None or held.shape[1] != dim:
            held = np.zeros((max(n, 64), dim), np.float32)
        elif len(held) < n:
            grown = np.zeros((max(n, len(held) + len(held) // 2), dim), np.float32)
            grown[: len(held)] = held
            held = grown
        self.arrays[generation] = held
        return held

    def prepare(self, head: Head) -> None:
        """Nothing to do: no writer can have died."""

    def append(self, head: Head, dim: int | None, count: int, data: memoryview | None) -> None:
        """Put the vectors of ``count`` slots behind the last."""
        if dim is None:
            return
        array = self.room(head.generation, head.n + count, dim)
        target = array[head.n : head.n + count]
        target[:] = 0 if data is None else np.frombuffer(data, "<f4").reshape(count, dim)

    def save_checkpoint(self, name: str, arrays: Mapping[str, Arrays]) -> None:
        """Hold a checkpoint's arrays."""
        self.checkpoints[name] = dict(arrays)

    def write_sheet(self, origin: Head, arrays: Mapping[str, Arrays]) -> MemorySheet:
        """The same; it is found by name once it is kept."""
        self.drafted += 1
        return MemorySheet(self, f"d{origin.lsn}-{self.drafted}", dict(arrays))

    def drop_checkpoint(self, name: str) -> None:
        """Let go of a checkpoint that nothing names."""
        self.checkpoints.pop(name, None)

    def remove_unnamed(self, head: Head) -> list[str]:
        """Let go of what the head no longer names."""
        for generation in [g for g in {*self.arrays, *self.bases} if g < head.generation]:
            self.arrays.pop(generation, None)
            self.bases.pop(generation, None)
        for name in [name for name in self.checkpoints if name != head.checkpoint_name]:
            if not name.startswith("g") or int(name[1:]) <= head.generation:
                del self.checkpoints[name]
        return []

    def claim(self, head: Head) -> MemoryClaim:
        """Begin a new generation."""
        self.claimed = max(self.claimed, head.generation) + 1
        return MemoryClaim(self, self.claimed)

    def release(self) -> None:
        """Nothing to let go of between writes."""

    def total_bytes(self) -> int:
        """Bytes of the vectors; SQLite's own are not counted."""
        return sum(array.nbytes for array in self.arrays.values())


class MemorySheet:
    """A checkpoint's arrays that nothing names yet.

    Attributes:
        name: What the head will call them.
    """

    def __init__(self, memory: Memory, name: str, arrays: dict[str, Arrays]) -> None:
        self.name = name
        self._memory = memory
        self._arrays = arrays

    def keep(self) -> None:
        """The head names it now."""
        self._memory.checkpoints[self.name] = self._arrays

    def drop(self) -> None:
        """Nothing to remove."""


class MemoryClaim:
    """A generation's arrays under construction."""

    def __init__(self, memory: Memory, generation: int) -> None:
        self.generation = generation
        self._memory = memory
        self._kept = False

    def put(self, lo: int, vectors: NDArray[np.float32]) -> None:
        """Place vectors at slots from ``lo`` on."""
        hi = lo + len(vectors)
        self._memory.room(self.generation, hi, vectors.shape[1])[lo:hi] = vectors

    def seal(self, base: Base) -> None:
        """Add the base."""
        self._memory.bases[self.generation] = base

    def sync(self, n: int, dim: int | None) -> None:
        """Make it ``n`` slots long."""
        if dim is not None:
            self._memory.room(self.generation, n, dim)

    def keep(self) -> None:
        """The head names it now."""
        self._kept = True

    def drop(self) -> None:
        """Remove it, unless it was kept."""
        if not self._kept:
            self._memory.arrays.pop(self.generation, None)
            self._memory.bases.pop(self.generation, None)


class SharedConnection:
    """One database in memory for all threads: many reads at a time, or one commit."""

    def __init__(self) -> None:
        self._connection = sql.connect(None)
        self._closed = False
        self.era = 0
        self._changed = threading.Condition()
        self._readers: dict[int, int] = {}  # thread → reads it has open
        self._committing = False

    def begin(self, connection: sqlite3.Connection) -> None:
        """Nothing to do: no commit runs while a read does."""

    def end(self, connection: sqlite3.Connection) -> None:
        """Nothing to do."""

    def acquire(self) -> sqlite3.Connection:
        """For a read: waits while a commit runs."""
        me = threading.get_ident()
        with self._changed:
            while self._committing and me not in self._readers:
                self._changed.wait()
            connection = self.writer()
            self._readers[me] = self._readers.get(me, 0) + 1
            return connection

    def release(self, _connection: sqlite3.Connection, owner: int, /) -> None:
        """A read ended that thread ``owner`` began."""
        with self._changed:
            left = self._readers[owner] - 1
            if left:
                self._readers[owner] = left
                return
            del self._readers[owner]
            self._changed.notify_all()
            if self._closed and not self._readers:
                self._connection.close()

    def writer(self) -> sqlite3.Connection:
        """For a write call: reads by the writer need no lock, since only it commits."""
        if self._closed:
            raise StoreClosed("This store in memory is closed; its records are gone.")
        return self._connection

    def acquire_writer(self) -> sqlite3.Connection:
        """For a write call; the caller holds the store's lock."""
        return self.writer()

    def release_writer(self, connection: sqlite3.Connection) -> None:
        """A write call ended."""

    @contextmanager
    def alone(self, timeout_s: float, /) -> Iterator[None]:
        """Around a commit: waits for other threads' reads to end.

        Raises:
            StoreLocked: If they do not end in time.
        """
        me = threading.get_ident()
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._committing = True
            try:
                while any(thread != me for thread in self._readers):
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise lock.reading(timeout_s)
                    self._changed.wait(left)
                yield
            finally:
                self._committing = False
                self._changed.notify_all()

    def close(self) -> None:
        """Let the records go, once the reads that run have ended. Idempotent."""
        with self._changed:
            if not self._closed and not self._readers:
                self._connection.close()
            self._closed = True
