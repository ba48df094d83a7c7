"""Is everything as it was written? Checksums, bounds, and whether the parts agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cormorant.errors import CorruptionError
from cormorant.storage import documents
from cormorant.storage.codec import decode_metadata
from cormorant.storage.head import record_crc
from cormorant.storage.ranges import damaged_runs
from cormorant.storage.reader import Reader
from cormorant.storage.types import Problem

if TYPE_CHECKING:
    from cormorant.storage.ground import Ground

__all__ = ["verify"]


def verify(ground: Ground) -> list[Problem]:
    """All damage that can be found, in one snapshot."""
    with Reader(ground, checking=False) as reader:
        found = list(_sqlite(reader, ground))
        if found:
            return found  # what SQLite itself calls damaged gives no firm ground for the rest
        found += _settings(reader, ground)
        found += _records(reader, ground)
        found += _documents(reader, ground)
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


def _documents(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """Each document against its checksum; its metadata must decode."""
    try:
        for row in reader.raw_documents():
            try:
                documents.decode(row, ground.where)
            except CorruptionError as exc:
                yield Problem(str(exc), ground.where, repairable=False)
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
        flagged = int(np.count_nonzero(slots.has_vector))
        if flagged:
            yield Problem(
                f"The store has no dimension, but {flagged} slots have a vector.",
                ground.where,
                repairable=False,
            )
        return
    path = str(ground.vault.vector_path(reader.head.generation))
    for lo, hi in damaged_runs(vectors, base, ranges):
        count = int(np.count_nonzero(slots.has_vector[lo:hi]))
        yield Problem(
            f"{path}: slots {lo} to {hi - 1}, {count} of them with a vector, do not match their "
            "checksum.",
            path,
            repairable=False,
        )


def _log(reader: Reader, ground: Ground) -> Iterator[Problem]:
    """The changes that the checkpoint does not cover, against themselves and the ranges.

    Indexes can be rebuilt without them.
    """
    try:
        deltas = reader.deltas(reader.head.checkpoint_lsn) or []
    except CorruptionError as exc:
        yield Problem(str(exc), ground.where, repairable=True)
        return
    try:
        slots = reader.slot_map()
    except CorruptionError:
        return  # said above
    for delta in deltas:
        run = slice(delta.lo, delta.hi)
        same = np.array_equal(slots.rows[run], delta.rows)
        if not same or not np.array_equal(slots.has_vector[run], delta.has_vector):
            yield Problem(
                f"The log's change {delta.lsn} says otherwise than the ranges which rows slots "
                f"{delta.lo} to {delta.hi - 1} hold, or which of them have a vector.",
                ground.where,
                repairable=True,
            )
