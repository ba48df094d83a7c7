"""Where do vectors, derived files and old generations lie on disk, and when may they go?"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import files, lock
from cormorant.storage.arrays import fill_arrays, write_arrays
from cormorant.storage.pin import FolderPin
from cormorant.storage.ranges import Base
from cormorant.storage.types import Arrays, Head

__all__ = ["Folder"]

_GENERATION: Final = re.compile(r"([1-9][0-9]{0,17})\.(f32|rows)", re.ASCII)
_CHECKPOINT: Final = re.compile(r"(g[1-9][0-9]{0,17}|d?[0-9]{1,18}-[0-9]{1,18})", re.ASCII)
_UNFINISHED: Final = "cormorant.sqlite.new"
_ITEM: Final = 4  # bytes of a float32


class Folder:
    """The files of a store beside SQLite's; all changes are made under the lock.

    Attributes:
        path: The store's folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._vectors = path / "vectors"
        self._derived = path / "derived"
        self._fd: int | None = None
        self._fd_path = path
        self._fd_generation = 0
        self._swept = False

    def vector_path(self, generation: int) -> Path:
        """Where a generation's vectors lie."""
        return self._vectors / f"{generation}.f32"

    def rows_path(self, generation: int) -> Path:
        """Where a compacted generation's row numbers lie."""
        return self._vectors / f"{generation}.rows"

    def checkpoint_path(self, name: str) -> Path:
        """Where a checkpoint lies.

        Raises:
            CorruptionError: If no store gives such a name: it could point anywhere.
        """
        if _CHECKPOINT.fullmatch(name) is None:
            where = str(self.path / "cormorant.sqlite")
            raise CorruptionError(f"{where} is damaged: it names a checkpoint {name!r}.", where)
        return self._derived / f"{name}.bin"

    def pin(self, head: Head) -> FolderPin:
        """Open what the head names."""
        name = head.checkpoint_name
        return FolderPin(
            head,
            vectors=self.vector_path(head.generation),
            rows=self.rows_path(head.generation) if head.base_n else None,
            checkpoint=None if name is None else self.checkpoint_path(name),
        )

    def prepare(self, head: Head) -> None:
        """Drop what a writer that died left: unnamed files, bytes past the committed length."""
        if not self._derived.is_dir():
            files.make_folder(self._derived)
        if not self._swept:
            self._sweep_creation()
            self._swept = True
        self.remove_unnamed(head)
        if self._fd is not None and not lock.is_current(self._fd, self._fd_path):
            self.release()  # what is written to a file without a name is lost
        fd, path = self._writable(head)
        committed = head.n * (head.dim or 0) * _ITEM
        size = os.fstat(fd).st_size
        if size < committed:
            raise CorruptionError(
                f"{path} is damaged: it is {size} bytes long; {committed} were committed. Restore "
                "the store from a backup; nothing is written to it.",
                str(path),
            )
        if size > committed:
            files.truncate(fd, committed, path)

    def append(self, head: Head, dim: int | None, count: int, data: memoryview | None) -> None:
        """Make room for ``count`` slots and put their vectors there, durable on return."""
        if dim is None:
            return
        fd, path = self._writable(head)
        start = head.n * dim * _ITEM
        if data is None or head.dim is None:
            # What a failed call left here must not be taken for the zeros of a hole.
            files.truncate(fd, start if head.dim is not None else 0, path)
            files.truncate(fd, start + count * dim * _ITEM, path)
        if data is not None:
            files.pwrite_all(fd, data, start, path)
        files.sync(fd, path)

    def save_checkpoint(self, name: str, arrays: Mapping[str, Arrays]) -> None:
        """Write a checkpoint's file, durable on return; nothing names it yet."""
        path = self.checkpoint_path(name)
        files.unlink(path)  # an attempt of this name that was never committed
        write_arrays(path, arrays)
        files.sync_folder(self._derived)

    def write_sheet(self, origin: Head, arrays: Mapping[str, Arrays]) -> FolderSheet:
        """The same without the store's lock; the next writer lets it be."""
        return FolderSheet(self, origin, arrays)

    def drop_checkpoint(self, name: str) -> None:
        """Remove a checkpoint that nothing names."""
        files.unlink(self.checkpoint_path(name))

    def remove_unnamed(self, head: Head) -> list[str]:
        """Remove what the head does not name; returns what could not be removed.

        A generation that a compaction is building is locked by it, and stays. Names that no
        store gives are nobody's business.
        """
        gone = []
        building = set()
        for name in os.listdir(self._vectors):  # noqa: PTH208 - names are enough, at every write
            match = _GENERATION.fullmatch(name)
            if match is None or int(match[1]) == head.generation:
                continue
            if int(match[1]) not in building:
                if self._is_building(int(match[1]), head):
                    building.add(int(match[1]))
                else:
                    gone.append(self._vectors / name)
        for name in os.listdir(self._derived):  # noqa: PTH208 - the same
            stem = name.removesuffix(".bin")
            if stem in {name, head.checkpoint_name} or _CHECKPOINT.fullmatch(stem) is None:
                continue
            if stem.startswith("g") and self._is_building(int(stem[1:]), head):
                continue
            if not (stem.startswith("d") and _is_held(self._derived / name)):
                gone.append(self._derived / name)
        return [str(path) for path in gone if not files.unlink(path)]

    def claim(self, head: Head) -> FolderClaim:
        """Begin a new generation; needs no lock."""
        return FolderClaim(self, head.generation + 1)

    def release(self) -> None:
        """Let go of the vector file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def total_bytes(self) -> int:
        """Size of all files of the store."""
        total = 0
        for folder in (self.path, self._vectors, self._derived):
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        if entry.is_file(follow_symlinks=False):
                            total += entry.stat(follow_symlinks=False).st_size
        return total

    def _writable(self, head: Head) -> tuple[int, Path]:
        """The current generation's vector file, open for writing."""
        if self._fd is None or self._fd_generation != head.generation:
            self.release()
            self._fd_path = self.vector_path(head.generation)
            try:
                self._fd = files.open_write(self._fd_path)
            except FileNotFoundError as exc:
                raise CorruptionError(
                    f"{self._fd_path} is missing. Restore the store from a backup.",
                    str(self._fd_path),
                ) from exc
            self._fd_generation = head.generation
        return self._fd, self._fd_path

    def _is_building(self, generation: int, head: Head) -> bool:
        """Is a compaction at work on this generation?"""
        return generation > head.generation and _is_held(self.vector_path(generation))

    def _sweep_creation(self) -> None:
        """Remove what SQLite left beside its file when the store's making was cut short."""
        for name in os.listdir(self.path):  # noqa: PTH208 - the same
            if name.startswith(_UNFINISHED):
                files.unlink(self.path / name)


def _is_held(path: Path) -> bool:
    """Does somebody who is alive hold the lock of this file?"""
    try:
        fd = files.open_read(path)
    except FileNotFoundError:
        return False
    try:
        return not lock.try_lock(fd)
    finally:
        os.close(fd)


class FolderSheet:
    """A checkpoint's file that nothing names yet, locked by who wrote it.

    Attributes:
        name: What the head will call it.
    """

    def __init__(self, folder: Folder, origin: Head, arrays: Mapping[str, Arrays]) -> None:
        self._kept = False
        self._pid = os.getpid()
        while True:
            # Drawn, not counted: without the lock nobody knows what the next number is.
            self.name = f"d{origin.lsn}-{int.from_bytes(os.urandom(7), 'big')}"
            self._path = folder.checkpoint_path(self.name)
            self._fd: int | None = files.create(self._path)
            if lock.hold(self._fd, self._path):
                break
            os.close(self._fd)  # a writer removed it before it was locked
        try:
            fill_arrays(self._fd, self._path, arrays)
            files.sync_folder(self._path.parent)
        except BaseException:
            self.drop()
            raise

    def keep(self) -> None:
        """The head names it now; let go of it."""
        self._kept = True
        self.drop()

    def drop(self) -> None:
        """Remove it, unless it was kept. Idempotent."""
        fd, self._fd = self._fd, None
        if fd is None or self._pid != os.getpid():
            return
        if not self._kept:
            files.unlink(self._path)
        lock.let_go(fd)


class FolderClaim:
    """A generation's files under construction.

    Its vector file is locked by its builder: the next writer, who removes what nothing
    names, lets it be, and takes it away if the builder died.

    Attributes:
        generation: Its number, which nobody else has.
        path: Its vector file.
    """

    def __init__(self, folder: Folder, lowest: int) -> None:
        self._folder = folder
        self._kept = False
        self._pid = os.getpid()
        self.generation = lowest
        while True:
            self.path = folder.vector_path(self.generation)
            self._fd = files.create_new(self.path)
            if self._fd is None:
                self.generation += 1
            elif lock.hold(self._fd, self.path):
                break
            else:
                os.close(self._fd)  # a writer removed it before it was locked

    def put(self, lo: int, vectors: NDArray[np.float32]) -> None:
        """Place vectors at slots from ``lo`` on."""
        data = vectors.data.cast("B")
        files.pwrite_all(self._open, data, lo * vectors.shape[1] * _ITEM, self.path)

    def seal(self, base: Base) -> None:
        """Add the base; all is durable on return."""
        path = self._folder.rows_path(self.generation)
        files.unlink(path)
        write_arrays(path, {"base": base._asdict()})
        files.sync(self._open, self.path)
        files.sync_folder(path.parent)

    def sync(self, n: int, dim: int | None) -> None:
        """Make it ``n`` slots long and durable."""
        files.truncate(self._open, n * (dim or 0) * _ITEM, self.path)
        files.sync(self._open, self.path)

    def keep(self) -> None:
        """The head names it now; let go of it."""
        self._kept = True
        self.drop()

    def drop(self) -> None:
        """Remove it, unless it was kept. Idempotent."""
        fd, self._fd = self._fd, None
        if fd is None or self._pid != os.getpid():
            return
        if not self._kept:
            files.unlink(self._folder.rows_path(self.generation))
            files.unlink(self.path)
        lock.let_go(fd)

    @property
    def _open(self) -> int:
        if self._fd is None:
            raise StoreError(f"The new generation {self.path} was let go of already.")
        return self._fd
