"""Is everything as it was written? Checksums, bounds, and whether the parts agree."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cormorant.errors import CorruptionError
from cormorant.storage.codec import decode_metadata
from cormorant.storage.head import record_crc
from cormorant.storage.reader import Reader
from cormorant.storage.types import Problem

if TYPE_CHECKING:
    from cormorant.storage.ground import Ground
    from cormorant.storage.ranges import Base

__all__ = ["verify"]


def verify(ground: Ground) -> list[Problem]:
    """All damage that can be found, in one snapshot."""
    with Reader(ground) as reader:
        found = list(_sqlite(reader, ground))
        if found:
            return found  # what SQLite itself calls damaged gives no firm ground for the rest
        found += _settings(reader, ground)
        found += _records(reader, ground)
        found += reader.pin_problems()
        found += _slots(reader, ground)
        found += _log(reader, ground)
    return found


def _sqlite(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """The SQLite file's structure."""
    try:
        for says in reader.quick_check():
            yield Problem(f"SQLite's quick_check says: {says}.", ground.where, repairable=False)
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=False)


def _settings(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """The configuration."""
    try:
        reader.read_settings()
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=False)


def _records(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """Each record against its checksum; its metadata must decode."""
    try:
        for row, id, text, metadata, crc in reader.raw_records():
            says = ""
            if not isinstance(text, str) or record_crc(id, text, metadata) != crc:
                says = "it does not match its checksum"
            else:
                try:
                    decode_metadata(metadata)
                except CorruptionError as exc:
                    says = str(exc)
            if says:
                yield Problem(f"Record {id!r} (row {row}): {says}.", ground.where, repairable=False)
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=False)


def _slots(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """Do head, ranges, records and vector file agree, and do the vectors match their checksums?"""
    try:
        slots, live = reader.slot_map(), reader.live_rows()
        lost = np.setdiff1d(live, slots.rows, assume_unique=True)
        if len(lost):
            yield Problem(
                f"{len(lost)} records have no slot, the first in row {lost[0]}.",
                ground.where,
                repairable=False,
            )
        vectors = reader.vectors()
        base, ranges = reader.base(), reader.ranges()
    except CorruptionError as exc:
        yield Problem(str(exc), exc.path or ground.where, repairable=False)
        return
    if vectors is None:
        return
    path = str(ground.vault.vector_path(reader.head.generation))
    runs = [(run.lo, run.hi, run.crc, run.has_vector or b"") for run in ranges]
    for lo, hi, crc, packed in [*_base_runs(base), *runs]:
        data = vectors[lo:hi].data.cast("B")
        if crc is None and vectors[lo:hi].any():
            says = "have no vector, but are not zeros"
        elif crc is not None and zlib.crc32(data, zlib.crc32(packed)) != crc:
            count = int(np.count_nonzero(slots.has_vector[lo:hi]))
            says = f"hold {count} vectors that do not match their checksum"
        else:
            continue
        yield Problem(f"{path}: slots {lo} to {hi - 1} {says}.", path, repairable=False)


def _base_runs(base: Base) -> Iterator[tuple[int, int, int | None, bytes]]:
    lo = 0
    for hi, crc in zip(base.ends.tolist(), base.crcs.tolist(), strict=True):
        yield lo, hi, crc, b""
        lo = hi
    if lo < len(base.rows):
        yield lo, len(base.rows), None, b""


def _log(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """The changes that the checkpoint does not cover; indexes can be rebuilt without them."""
    try:
        reader.deltas(reader.head.checkpoint_lsn)
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=True)
