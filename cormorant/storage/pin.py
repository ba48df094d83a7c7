"""How do files stay readable for a snapshot while compaction removes their names?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, FormatError, StoreError
from cormorant.storage import files
from cormorant.storage.arrays import ArrayFile
from cormorant.storage.ranges import Base
from cormorant.storage.types import Arrays, Head, Problem

__all__ = ["FolderPin"]

_RESTORE = "Restore the store from a backup."
_REBUILD = "check(repair=True) rebuilds what is derived."


class FolderPin:
    """Open files of one generation and one checkpoint.

    What is missing or damaged is not said before it is asked for: records can be read
    without vectors, and vectors without a checkpoint.

    Attributes:
        missing: Whether a file was not there: a compaction may have overtaken the snapshot.
    """

    def __init__(
        self, head: Head, *, vectors: Path, rows: Path | None, checkpoint: Path | None
    ) -> None:
        self.missing = False
        self._named = (head.generation, head.checkpoint_name)
        self._damage: dict[str, StoreError] = {}
        self._path = vectors
        self._fd: int | None = None
        self._mapped: NDArray[np.float32] | None = None
        try:
            self._fd = files.open_read(vectors)
        except FileNotFoundError:
            self._lost("vectors", vectors, _RESTORE)
        self._rows = self._arrays("rows", rows, _RESTORE)
        self._checkpoint = self._arrays("checkpoint", checkpoint, _REBUILD)
        self._handed_out = False

    def matches(self, head: Head) -> bool:
        """Is it what the head names?"""
        return self._named == (head.generation, head.checkpoint_name)

    def vectors(self, n: int, dim: int) -> NDArray[np.float32]:
        """The first ``n`` vectors, mapped read-only."""
        mapped = self._mapped
        if mapped is None or len(mapped) < n or mapped.shape[1] != dim:
            self._raise("vectors")
            mapped = self._mapped = _map_vectors(self._fd or 0, n, dim, self._path)
        elif n:
            _check_length(self._fd or 0, n * dim * 4, self._path)
        return mapped[:n]

    def base(self, base_n: int) -> Base:
        """What compaction carried over into the generation."""
        self._raise("rows")
        if self._rows is None:
            return Base.empty()
        with _advising(_RESTORE):
            self._rows.check()
        return _base(self._rows, base_n)

    def checkpoint(self) -> dict[str, Arrays]:
        """The checkpoint's arrays; {} if there is none."""
        self._raise("checkpoint")
        if self._checkpoint is None:
            return {}
        with _advising(_REBUILD):
            self._checkpoint.check()
        self._handed_out = True
        return dict(self._checkpoint.groups)

    def check_lengths(self) -> None:
        """Are the checkpoint's arrays, if somebody may hold them, still whole?

        Raises:
            CorruptionError: If the file was cut short: touching them would kill the process.
        """
        if self._handed_out and self._checkpoint is not None:
            with _advising(_REBUILD):
                self._checkpoint.check_length()

    def problems(self) -> list[Problem]:
        """What is missing, or does not match its checksum; vectors are not looked at.

        It says so of a file that was cut short, too.
        """
        found = []
        for part, file in (("rows", self._rows), ("checkpoint", self._checkpoint)):
            derived = part == "checkpoint"
            if part in self._damage:
                error = self._damage[part]
                where = getattr(error, "path", None) or str(self._path)
                found.append(Problem(str(error), where, derived))
            elif file is not None:
                found += [
                    Problem(f"{file.path}: {says}.", str(file.path), derived)
                    for says in file.damage()
                ]
        return found

    def _arrays(self, part: str, path: Path | None, then: str) -> ArrayFile | None:
        if path is None:
            return None
        try:
            return ArrayFile(path)
        except FileNotFoundError:
            self._lost(part, path, then)
        except CorruptionError as exc:
            self._damage[part] = CorruptionError(f"{exc} {then}", exc.path)
        except FormatError as exc:
            self._damage[part] = exc
        return None

    def _lost(self, part: str, path: Path, then: str) -> None:
        self.missing = True
        self._damage[part] = CorruptionError(f"{path} is missing. {then}", str(path))

    def _raise(self, part: str) -> None:
        if part in self._damage:
            raise self._damage[part]

    def __del__(self) -> None:
        fd = getattr(self, "_fd", None)
        if fd is not None:
            with contextlib.suppress(OSError):
                os.close(fd)


def _map_vectors(fd: int, n: int, dim: int, path: Path) -> NDArray[np.float32]:
    """The first ``n`` vectors of an open file, read-only.

    Only the committed length is mapped: what lies behind it may be cut off by the next
    writer, and touching it then would kill the process.

    Raises:
        CorruptionError: If the file is shorter than that.
    """
    length = n * dim * 4
    if length == 0:
        empty = np.empty((0, dim), np.float32)
        empty.flags.writeable = False
        return empty
    _check_length(fd, length, path)
    mapped = files.map_read(fd, length, path)
    return np.frombuffer(mapped, dtype="<f4").reshape(n, dim)


def _check_length(fd: int, length: int, path: Path) -> None:
    """Touching a mapping behind the file's end would kill the process.

    Raises:
        CorruptionError: If the file is shorter than ``length``.
    """
    size = os.fstat(fd).st_size
    if size < length:
        raise CorruptionError(
            f"{path} is damaged: it is {size} bytes long; {length} were committed. {_RESTORE}",
            str(path),
        )


@contextlib.contextmanager
def _advising(then: str) -> Iterator[None]:
    """Damage found in here is said with what helps."""
    try:
        yield
    except CorruptionError as exc:
        raise CorruptionError(f"{exc} {then}", exc.path) from None


def _base(file: ArrayFile, base_n: int) -> Base:
    """What a ``.rows`` file says.

    Raises:
        CorruptionError: If it does not fit the head.
    """
    group = file.groups.get("base", {})
    kinds = {name: (array.dtype.str, array.shape) for name, array in group.items()}
    ends = group["ends"] if "ends" in group else np.empty(0, np.int64)
    wanted = {
        "rows": ("<i8", (base_n,)),
        "has_vector": ("|b1", (base_n,)),
        "ends": ("<i8", (len(ends),)),
        "crcs": ("<u4", (len(ends),)),
    }
    in_order = ends.size == 0 or (ends[0] > 0 and (np.diff(ends) > 0).all() and ends[-1] <= base_n)
    if kinds != wanted or not in_order:
        raise CorruptionError(
            f"{file.path} is damaged: it holds {kinds} for {base_n} slots. {_RESTORE}",
            str(file.path),
        )
    return Base(group["rows"], group["has_vector"], ends, group["crcs"])
