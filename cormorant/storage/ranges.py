"""Which row does each slot hold, and which slots have a vector? The truth of it, in SQL.

A range is a run of slots appended with ascending rows: ``lo`` holds ``first_row``, and so on.
Small runs of one kind are merged as they come, so that a million single adds do not
leave a million ranges.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.storage.head import LIMIT
from cormorant.storage.types import SlotMap

if TYPE_CHECKING:
    from typing import Self

    from cormorant.storage.types import Head

__all__ = ["Base", "Range", "damaged_runs", "pack_flags", "slot_map", "unpack_flags"]

MERGE_SLOTS = 4096


class Range(NamedTuple):
    """A run of slots.

    Attributes:
        first_row: The row of slot ``lo``.
        lo, hi: Slots [lo, hi).
        vectors: How many of them have a vector.
        has_vector: One bit a slot, least significant first; None if all or none have one.
        crc: crc32 of ``has_vector`` (if any) and the slots' bytes in the vector file, in one;
            None if none has a vector.
    """

    first_row: int
    lo: int
    hi: int
    vectors: int
    has_vector: bytes | None
    crc: int | None

    @classmethod
    def checked(cls, row: tuple[Any, ...], where: str) -> Self:
        """A range read from SQL.

        Raises:
            CorruptionError: If it makes no sense.
        """
        found = cls(*row)
        if not found._makes_sense():
            raise CorruptionError(f"{where} is damaged: a range of slots is {tuple(row)}.", where)
        return found

    def _makes_sense(self) -> bool:
        numbers = (self.first_row, self.lo, self.hi, self.vectors, self.crc or 0)
        return (
            all(type(number) is int and number < LIMIT for number in numbers)
            and isinstance(self.has_vector, bytes | None)
            and self.first_row > 0
            and 0 <= self.lo < self.hi
            and 0 <= self.vectors <= self.hi - self.lo
            and (self.has_vector is not None or self.vectors in {0, self.hi - self.lo})
            and (self.crc is None) == (self.vectors == 0)
        )

    @property
    def uniform(self) -> bool:
        """Do all of its slots have a vector, or none?"""
        return self.has_vector is None

    def matches(self, vectors: NDArray[np.float32]) -> bool:
        """Do its slots' bytes match the checksum?"""
        part = vectors[self.lo : self.hi]
        if len(part) != self.hi - self.lo:
            return False
        if self.crc is None:
            return not part.any()
        return zlib.crc32(part.data.cast("B"), zlib.crc32(self.has_vector or b"")) == self.crc

    def extended(self, count: int, vectors: int, data: memoryview | None) -> Self | None:
        """This range with ``count`` more slots of the same kind; None if they do not fit it."""
        size = self.hi - self.lo
        same = self.uniform and (vectors, self.vectors) in {(count, size), (0, 0)}
        if not same or size + count > MERGE_SLOTS:
            return None
        crc = None if data is None else zlib.crc32(data, self.crc or 0)
        return self._replace(hi=self.hi + count, vectors=self.vectors + vectors, crc=crc)


class Base(NamedTuple):
    """What a generation's ``.rows`` file says of the slots that compaction carried over.

    Attributes:
        rows: int64, ascending.
        has_vector: bool.
        ends, crcs: int64 and uint32: crc32 of the vector file's bytes, a chunk of slots each.
    """

    rows: NDArray[np.int64]
    has_vector: NDArray[np.bool_]
    ends: NDArray[np.int64]
    crcs: NDArray[np.uint32]

    @classmethod
    def empty(cls) -> Self:
        """A generation that compaction did not make."""
        return cls(
            np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.int64), np.empty(0, "<u4")
        )


def damaged_runs(
    vectors: NDArray[np.float32], base: Base, ranges: Sequence[Range]
) -> Iterator[tuple[int, int]]:
    """Runs of slots [lo, hi) whose bytes do not match their checksum, or should be zeros."""
    lo = 0
    for hi, crc in zip(base.ends.tolist(), base.crcs.tolist(), strict=True):
        if zlib.crc32(vectors[lo:hi].data.cast("B")) != crc:
            yield lo, hi
        lo = hi
    if vectors[lo : len(base.rows)].any():
        yield lo, len(base.rows)
    for run in ranges:
        if not run.matches(vectors):
            yield run.lo, run.hi


def pack_flags(flags: NDArray[np.bool_]) -> tuple[int, bytes | None]:
    """How many are set, and the bits unless all or none are."""
    vectors = int(np.count_nonzero(flags))
    if vectors in {0, len(flags)}:
        return vectors, None
    return vectors, np.packbits(flags, bitorder="little").tobytes()


def unpack_flags(vectors: int, packed: bytes | None, count: int, where: str) -> NDArray[np.bool_]:
    """The inverse of :func:`pack_flags`."""
    if packed is None:
        if vectors not in {0, count}:
            raise CorruptionError(f"{where} is damaged: {vectors} vectors in {count} slots.", where)
        return np.full(count, vectors > 0)
    if len(packed) != -(-count // 8):
        raise CorruptionError(f"{where} is damaged: {len(packed)} bytes for {count} flags.", where)
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=count, bitorder="little")
    flags = bits.astype(np.bool_)
    if np.count_nonzero(flags) != vectors:
        found = np.count_nonzero(flags)
        raise CorruptionError(f"{where} is damaged: {vectors} vectors and {found} flags.", where)
    return flags


def slot_map(head: Head, base: Base, ranges: Sequence[Range], where: str) -> SlotMap:
    """Rows and flags of all n slots.

    Raises:
        CorruptionError: If the parts do not join up to n.
    """
    at = len(base.rows)
    joined = True
    for run in ranges:  # before there is room for n slots: n may be anything
        joined = joined and run.lo == at and run.hi <= head.n
        joined = joined and run.first_row + run.hi - run.lo <= head.next_row
        at = run.hi if joined else at
    damaged = CorruptionError(
        f"{where} is damaged: its ranges account for {at} of {head.n} slots, or out of order.",
        where,
    )
    if not joined or at != head.n:
        raise damaged
    try:
        rows, has_vector = np.empty(head.n, np.int64), np.empty(head.n, np.bool_)
    except (MemoryError, ValueError) as exc:
        raise damaged from exc
    at = len(base.rows)
    rows[:at], has_vector[:at] = base.rows, base.has_vector
    for run in ranges:
        size = run.hi - run.lo
        rows[run.lo : run.hi] = np.arange(run.first_row, run.first_row + size)
        has_vector[run.lo : run.hi] = unpack_flags(run.vectors, run.has_vector, size, where)
    if len(rows) and (rows[0] < 1 or (np.diff(rows) <= 0).any() or rows[-1] >= head.next_row):
        raise damaged
    return SlotMap(rows, has_vector)
