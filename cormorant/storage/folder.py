"""Where do vectors, derived files and old generations lie on disk, and when may they go?"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import files, lock
from cormorant.storage.arrays import map_arrays, write_arrays
from cormorant.storage.mapping import map_vectors
from cormorant.storage.ranges import Base
from cormorant.storage.types import Arrays, Head

__all__ = ["Folder"]

_GENERATION = re.compile(r"([1-9][0-9]{0,17})\.(f32|rows)", re.ASCII)
_CHECKPOINT = re.compile(r"(g[1-9][0-9]{0,17}|[0-9]{1,18}-[0-9]{1,18})", re.ASCII)
_ITEM: Final = 4  # bytes of a float32
_COPY_BYTES: Final = 4 * 1024 * 1024


class FolderPin:
    """Open files of one generation and one checkpoint: unlinking does not take them away."""

    def __init__(self, folder: Folder, head: Head) -> None:
        self._named = (head.generation, head.checkpoint_name)
        self._path = folder.vector_path(head.generation)
        self._damage: dict[str, CorruptionError] = {}
        self.missing = False
        self._fd: int | None = None
        self._mapped: NDArray[np.float32] | None = None
        self._base = Base.empty()
        self._checkpoint: dict[str, Arrays] = {}
        try:
            self._fd = files.open_read(self._path)
        except FileNotFoundError:
            self._lost("vectors", self._path)
        if head.base_n:
            path = folder.rows_path(head.generation)
            try:
                self._base = read_base(path, head.base_n)
            except FileNotFoundError:
                self._lost("base", path)
            except CorruptionError as exc:
                self._damage["base"] = exc
        if head.checkpoint_name is not None:
            path = folder.checkpoint_path(head.checkpoint_name)
            try:
                self._checkpoint = dict(map_arrays(path))
            except FileNotFoundError:
                self._lost("checkpoint", path)
            except CorruptionError as exc:
                self._damage["checkpoint"] = exc

    def matches(self, head: Head) -> bool:
        return self._named == (head.generation, head.checkpoint_name)

    def vectors(self, n: int, dim: int) -> NDArray[np.float32]:
        mapped = self._mapped
        if mapped is None or len(mapped) < n or mapped.shape[1] != dim:
            self._raise("vectors")
            mapped = self._mapped = map_vectors(self._fd or 0, n, dim, self._path)
        return mapped[:n]

    def base(self, base_n: int) -> Base:
        self._raise("base")
        if len(self._base.rows) != base_n:
            raise CorruptionError(
                f"The .rows file of {self._path} describes {len(self._base.rows)} slots; the head "
                f"says {base_n}. Restore the store from a backup.",
                str(self._path),
            )
        return self._base

    def checkpoint(self) -> dict[str, Arrays]:
        self._raise("checkpoint")
        return dict(self._checkpoint)

    def _lost(self, part: str, path: Path) -> None:
        self.missing = True
        then = "check(repair=True) rebuilds it." if part == "checkpoint" else "Restore a backup."
        self._damage[part] = CorruptionError(f"{path} is missing. {then}", str(path))

    def _raise(self, part: str) -> None:
        if part in self._damage:
            raise self._damage[part]

    def __del__(self) -> None:
        if getattr(self, "_fd", None) is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd or 0)


class Folder:
    """The files of a store beside SQLite's; all changes are made under the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._open_generation = 0

    def vector_path(self, generation: int) -> Path:
        """Where a generation's vectors lie."""
        return self.path / "vectors" / f"{generation}.f32"

    def rows_path(self, generation: int) -> Path:
        """Where a compacted generation's row numbers lie."""
        return self.path / "vectors" / f"{generation}.rows"

    def checkpoint_path(self, name: str) -> Path:
        """Where a checkpoint lies.

        Raises:
            CorruptionError: If the name is not one that a store gives: it could point elsewhere.
        """
        if _CHECKPOINT.fullmatch(name) is None:
            where = str(self.path / "cormorant.sqlite")
            raise CorruptionError(f"{where} is damaged: it names a checkpoint {name!r}.", where)
        return self.path / "derived" / f"{name}.bin"

    def pin(self, head: Head) -> FolderPin:
        """Open what the head names."""
        return FolderPin(self, head)

    # Writing, under the lock

    def prepare(self, head: Head) -> None:
        """Drop what a writer that died left behind: unnamed files, bytes past the committed length."""
        self._sweep(head)
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
        path.unlink(missing_ok=True)
        write_arrays(path, arrays)
        files.sync_folder(path.parent)

    def remove_unnamed(self, head: Head) -> list[str]:
        """Remove what the head no longer names; returns what could not be removed."""
        return self._sweep(head)

    def release(self) -> None:
        """Let go of the vector file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def drop_checkpoint(self, name: str) -> None:
        """Remove a checkpoint that nothing names."""
        files.unlink(self.checkpoint_path(name))

    def claim(self, head: Head) -> FolderClaim:
        """Begin a new generation; needs no lock."""
        return FolderClaim(self, head.generation + 1)

    def total_bytes(self) -> int:
        """Size of all files of the store."""
        total = 0
        for folder in (self.path, self.path / "vectors", self.path / "derived"):
            for entry in folder.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        total += entry.stat().st_size
        return total

    def _writable(self, head: Head) -> tuple[int, Path]:
        path = self.vector_path(head.generation)
        if self._fd is None or self._open_generation != head.generation:
            self.release()
            try:
                self._fd = files.open_write(path)
            except FileNotFoundError as exc:
                raise CorruptionError(
                    f"{path} is missing. Restore the store from a backup.", str(path)
                ) from exc
            self._open_generation = head.generation
        return self._fd, path

    def _sweep(self, head: Head) -> list[str]:
        left: list[str] = []
        building = set()
        for entry in (self.path / "vectors").iterdir():
            match = _GENERATION.fullmatch(entry.name)
            if match is None or int(match[1]) == head.generation or int(match[1]) in building:
                continue
            generation = int(match[1])
            if generation > head.generation and _is_locked(self.vector_path(generation)):
                building.add(generation)
            elif not files.unlink(entry):
                left.append(str(entry))
        for entry in (self.path / "derived").iterdir():
            match = _CHECKPOINT.fullmatch(entry.stem)
            if match is None or entry.suffix != ".bin" or entry.stem == head.checkpoint_name:
                continue
            generation = int(entry.stem[1:]) if entry.stem.startswith("g") else 0
            if generation > head.generation and _is_locked(self.vector_path(generation)):
                continue
            if not files.unlink(entry):
                left.append(str(entry))
        return left


class FolderClaim:
    """A generation's files under construction.

    Its vector file is locked: the next writer, who removes what nothing names, lets it be,
    and takes it away if the builder died.
    """

    def __init__(self, folder: Folder, lowest: int) -> None:
        self._folder = folder
        self._kept = False
        self.generation = lowest
        while True:
            self.path = folder.vector_path(self.generation)
            try:
                self._fd: int | None = files.create(self.path)
            except FileExistsError:
                self.generation += 1
                continue
            if lock.hold(self._fd, self.path):
                break
            os.close(self._fd)  # a writer removed it before it was locked

    def put(self, lo: int, vectors: NDArray[np.float32]) -> None:
        data = vectors.data.cast("B")
        files.pwrite_all(self._open, data, lo * vectors.shape[1] * _ITEM, self.path)

    def copy_run(self, source: Head, lo: int, hi: int, to: int) -> int:
        width = (source.dim or 0) * _ITEM
        path = self._folder.vector_path(source.generation)
        crc = 0
        fd = files.open_read(path)
        try:
            for start in range(lo * width, hi * width, _COPY_BYTES):
                data = os.pread(fd, min(_COPY_BYTES, hi * width - start), start)
                files.pwrite_all(self._open, data, start + (to - lo) * width, self.path)
                crc = zlib.crc32(data, crc)
        finally:
            os.close(fd)
        return crc

    def seal(self, base: Base) -> None:
        path = self._folder.rows_path(self.generation)
        path.unlink(missing_ok=True)
        write_arrays(path, {"base": base._asdict()})
        files.sync(self._open, self.path)
        files.sync_folder(path.parent)

    def sync(self, n: int, dim: int | None) -> None:
        files.truncate(self._open, n * (dim or 0) * _ITEM, self.path)
        files.sync(self._open, self.path)

    def keep(self) -> None:
        self._kept = True
        self.drop()

    def drop(self) -> None:
        fd, self._fd = self._fd, None
        if fd is None:
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


def read_base(path: Path, base_n: int) -> Base:
    """What a ``.rows`` file says.

    Raises:
        FileNotFoundError: If it is missing.
        CorruptionError: If it is damaged.
    """
    damage = f"{path} is damaged: {{}}. Restore the store from a backup."
    try:
        arrays = map_arrays(path)["base"]
        base = Base(*(arrays[name] for name in ("rows", "has_vector", "ends", "crcs")))
    except KeyError as exc:
        raise CorruptionError(damage.format(f"no array {exc}"), str(path)) from exc
    kinds = [(a.dtype.str, a.ndim) for a in base]
    if (
        kinds != [("<i8", 1), ("|b1", 1), ("<i8", 1), ("<u4", 1)]
        or not len(base.rows) == len(base.has_vector) == base_n
        or len(base.ends) != len(base.crcs)
    ):
        raise CorruptionError(damage.format(f"its arrays are {kinds}"), str(path))
    return base


def _is_locked(path: Path) -> bool:
    """Is a compaction at work on this generation?"""
    try:
        fd = files.open_read(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
