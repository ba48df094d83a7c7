"""Is everything on disk as it was written? Checksums, bounds, and whether the parts agree."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CormorantError, CorruptionError
from cormorant.storage.arrays import verify_arrays
from cormorant.storage.codec import decode_metadata
from cormorant.storage.folder import Folder
from cormorant.storage.head import record_crc
from cormorant.storage.ranges import Base, unpack_flags
from cormorant.storage.reader import Reader
from cormorant.storage.types import Problem

if TYPE_CHECKING:
    from cormorant.storage.ground import Ground

__all__ = ["verify"]

_BATCH = 1000


def verify(ground: Ground) -> list[Problem]:
    """All damage that can be found, truth first."""
    with Reader(ground) as reader:
        found = list(_sqlite(reader, ground))
        if found:
            return found  # what SQLite itself calls damaged gives no firm ground for the rest
        found += _truth(reader, ground)
        found += _derived(reader, ground)
    return found


def _sqlite(reader: Reader, ground: Ground) -> Iterator[Problem]:
    try:
        for says in reader.quick_check():
            yield Problem(f"SQLite's quick_check says: {says}", ground.where, repairable=False)
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=False)


def _truth(reader: Reader, ground: Ground) -> Iterator[Problem]:
    yield from _records(reader, ground)
    try:
        slots = reader.slot_map()
        live = reader.live_rows()
        lost = np.setdiff1d(live, slots.rows, assume_unique=True)
        if len(lost):
            yield Problem(
                f"{len(lost)} records have no slot, the first in row {lost[0]}.",
                ground.where,
                repairable=False,
            )
        vectors = reader.vectors()
    except CorruptionError as exc:
        yield Problem(str(exc), exc.path or ground.where, repairable=False)
        return
    if isinstance(ground.vault, Folder):
        head = reader.head
        path = str(ground.vault.vector_path(head.generation))
        if head.base_n:
            rows_path = str(ground.vault.rows_path(head.generation))
            for says in verify_arrays(rows_path):
                yield Problem(f"{rows_path}: {says}", rows_path, repairable=False)
        if vectors is not None:
            yield from _vectors(reader, vectors, path)


def _records(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """Each record against its checksum; its metadata must decode."""
    for row, id, text, metadata, crc in reader.raw_records(_BATCH):
        says = ""
        if not isinstance(text, str) or record_crc(id, text, metadata) != crc:
            says = "does not match its checksum"
        else:
            try:
                decode_metadata(metadata)
            except CorruptionError as exc:
                says = str(exc)
        if says:
            yield Problem(f"Record {id!r} (row {row}): {says}.", ground.where, repairable=False)


def _vectors(reader: Reader, vectors: NDArray[np.float32], path: str) -> Iterator[Problem]:
    base = reader.base()
    runs = [*_base_runs(base), *((run.lo, run.hi, run.crc) for run in reader.ranges())]
    flags = [base.has_vector]
    flags += [
        unpack_flags(run.vectors, run.has_vector, run.hi - run.lo, path)
        for run in reader.ranges()
    ]
    has_vector = np.concatenate(flags)
    for lo, hi, crc in runs:
        if crc is None:
            if vectors[lo:hi].any():
                yield Problem(
                    f"{path}: slots {lo} to {hi} have no vector, but are not zeros.",
                    path,
                    repairable=False,
                )
        elif zlib.crc32(np.ascontiguousarray(vectors[lo:hi]).data.cast("B")) != crc:
            count = int(np.count_nonzero(has_vector[lo:hi]))
            yield Problem(
                f"{path}: the {count} vectors of slots {lo} to {hi} do not match their checksum.",
                path,
                repairable=False,
            )


def _base_runs(base: Base) -> Iterator[tuple[int, int, int | None]]:
    lo = 0
    for hi, crc in zip(base.ends.tolist(), base.crcs.tolist(), strict=True):
        yield lo, hi, crc
        lo = hi
    if lo < len(base.rows):
        yield lo, len(base.rows), None


def _derived(reader: Reader, ground: Ground) -> Iterator[Problem]:
    head = reader.head
    try:
        reader.deltas(head.checkpoint_lsn)
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=True)
    if head.checkpoint_name is None or not isinstance(ground.vault, Folder):
        return
    try:
        path = str(ground.vault.checkpoint_path(head.checkpoint_name))
        for says in verify_arrays(path):
            yield Problem(f"{path}: {says}", path, repairable=True)
    except CormorantError as exc:
        yield Problem(str(exc), ground.where, repairable=True)
