"""What does one consistent snapshot of the truth hold?"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, StoreClosed
from cormorant.storage import sql
from cormorant.storage.codec import decode_metadata
from cormorant.storage.ranges import Range, slot_map, unpack_flags
from cormorant.storage.types import Arrays, Delta, Head, SlotMap, StoredRecord

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from typing_extensions import Self

    from cormorant.storage.vault import Pin
    from cormorant.storage.storage import Storage

__all__ = ["Reader", "log_crc", "read_head", "record_crc"]

_HEAD: Final = (
    "SELECT lsn, generation, n, next_row, dim, base_n, checkpoint_lsn, checkpoint_n, checkpoint, "
    "config_lsn, files FROM head"
)
_RECORD: Final = 'SELECT "row", id, text, metadata, crc FROM records WHERE "row" '
_CHUNK: Final = 400  # parameters of one statement; SQLite may be built with a limit of 999


class Reader:
    """A snapshot: all its answers are of one moment, whatever is written meanwhile.

    A context manager, made by ``Storage.read``; not for two threads at once.

    Attributes:
        isolated: Always True: no write changes what this reader sees.
    """

    isolated = True

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._connection: sqlite3.Connection | None = None
        self._head: Head | None = None
        self._pin: Pin | None = None
        self._owner = 0

    def __enter__(self) -> Self:
        self._owner = threading.get_ident()
        self._connection, self._head, self._pin = self._storage._begin_read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._storage._end_read(connection, self._owner)

    @property
    def head(self) -> Head:
        """Where the store stands in this snapshot."""
        if self._head is None:
            raise StoreClosed("This snapshot has not begun; use it in a `with` block.")
        return self._head

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration: JSON values by name, ``dim`` included. The same object until it changes."""
        return self._storage._config(self.head, self._read_config)

    def deltas(self, after_lsn: int) -> list[Delta] | None:
        """The changes after ``after_lsn``, in order.

        Returns:
            None if they are no longer all there: begin with the checkpoint again. That
            is so after a checkpoint trimmed the log and after a compaction.

        Raises:
            CorruptionError: If changes the checkpoint does not cover are missing or damaged.
        """
        head = self.head
        if after_lsn >= head.lsn:
            return []
        found = self._rows(
            "SELECT lsn, lo, hi, first_row, dead, vectors, has_vector, postings, columns, crc "
            "FROM log WHERE lsn > ? ORDER BY lsn",
            (after_lsn,),
        )
        if len(found) != head.lsn - after_lsn:
            if after_lsn < head.checkpoint_lsn:
                return None
            raise CorruptionError(
                f"{self._where} is damaged: its log has {len(found)} of the "
                f"{head.lsn - after_lsn} changes after {after_lsn}. check(repair=True) rebuilds "
                "what is derived from the records.",
                self._where,
            )
        return [self._delta(row) for row in found]

    def checkpoint(self) -> dict[str, Arrays]:
        """The derived arrays as of ``head.checkpoint_lsn``, mapped read-only; {} if there are none.

        Raises:
            CorruptionError: If the file is missing or damaged. It can be rebuilt.
        """
        return self._pinned.checkpoint()

    def vectors(self) -> NDArray[np.float32] | None:
        """float32, shape (n, dim), read-only; None while no vector was ever stored.

        The array stays valid after the snapshot ends. A slot without a vector is zeros.

        Raises:
            CorruptionError: If the file is missing or shorter than what was committed.
        """
        head = self.head
        return None if head.dim is None else self._pinned.vectors(head.n, head.dim)

    def slot_map(self) -> SlotMap:
        """Which row each slot holds and which slots have a vector, from the truth alone."""
        head = self.head
        base = self._pinned.base(head.base_n)
        return slot_map(head, base, self.ranges(), self._where)

    def ranges(self) -> list[Range]:
        """The committed runs of slots after the base, in slot order."""
        found = self._rows(
            "SELECT first_row, lo, hi, vectors, has_vector, crc FROM ranges ORDER BY lo"
        )
        return [Range.checked(row, self._where) for row in found]

    def live_rows(self) -> NDArray[np.int64]:
        """The rows of all records, int64, ascending."""
        found = self._rows('SELECT "row" FROM records ORDER BY "row"')
        return np.fromiter((row for (row,) in found), dtype=np.int64, count=len(found))

    def rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The rows of those ids that exist."""
        found: dict[str, int] = {}
        for chunk in _chunks(ids):
            marks = ",".join("?" * len(chunk))
            found.update(self._rows(f'SELECT id, "row" FROM records WHERE id IN ({marks})', chunk))
        return found

    def records(self, rows: Iterable[int]) -> dict[int, StoredRecord]:
        """The records of those rows that exist, by row.

        Raises:
            CorruptionError: If one does not match its checksum.
        """
        found: dict[int, StoredRecord] = {}
        for chunk in _chunks([int(row) for row in rows]):
            marks = ",".join("?" * len(chunk))
            for row in self._rows(f"{_RECORD} IN ({marks})", chunk):
                record = self._record(row)
                found[record.row] = record
        return found

    def scan(self, after_row: int = -1, batch: int = 1000) -> Iterator[list[StoredRecord]]:
        """All records after ``after_row``, ascending, in lists of at most ``batch``."""
        end = self.head.next_row
        while True:
            found = self._rows(
                f'{_RECORD} > ? AND "row" < ? ORDER BY "row" LIMIT ?', (after_row, end, batch)
            )
            if not found:
                return
            yield [self._record(row) for row in found]
            after_row = found[-1][0]

    # Inside

    @property
    def _where(self) -> str:
        return str(self._storage.sqlite_path or ":memory:")

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreClosed("This snapshot has ended; read inside its `with` block.")
        return self._connection

    @property
    def _pinned(self) -> Pin:
        if self._pin is None:
            raise StoreClosed("This snapshot has not begun; use it in a `with` block.")
        return self._pin

    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return sql.rows(self._open, self._storage.sqlite_path, statement, parameters)

    def _read_config(self) -> dict[str, Any]:
        found = {}
        for name, value in self._rows("SELECT name, value FROM config ORDER BY name"):
            try:
                found[name] = json.loads(value)
            except (ValueError, TypeError, RecursionError) as exc:
                raise CorruptionError(
                    f"{self._where} is damaged: setting {name!r} is not JSON.", self._where
                ) from exc
        return found

    def _record(self, row: tuple[Any, ...]) -> StoredRecord:
        number, id, text, metadata, crc = row
        if not isinstance(text, str) or record_crc(id, text, metadata) != crc:
            raise CorruptionError(
                f"{self._where} is damaged: record {id!r} (row {number}) does not match its "
                "checksum. Add it again, or restore the store from a backup.",
                self._where,
            )
        return StoredRecord(number, id, text, decode_metadata(metadata))

    def _delta(self, row: tuple[Any, ...]) -> Delta:
        lsn, lo, hi, first_row, dead, vectors, has_vector, postings, columns, crc = row
        if log_crc(dead, has_vector, postings, columns) != crc or hi < lo or len(dead) % 8:
            raise CorruptionError(
                f"{self._where} is damaged: change {lsn} does not match its checksum. "
                "check(repair=True) rebuilds what is derived from the records.",
                self._where,
            )
        return Delta(
            lsn=lsn,
            generation=self.head.generation,
            lo=lo,
            hi=hi,
            first_row=first_row,
            dead_rows=np.frombuffer(dead, dtype="<i8"),
            has_vector=unpack_flags(vectors, has_vector, hi - lo, self._where),
            postings=postings,
            columns=columns,
        )


def read_head(connection: sqlite3.Connection, path: Path | None, known: Head | None) -> Head:
    """The head row, checked; ``known`` itself if nothing changed."""
    found = sql.rows(connection, path, _HEAD)
    if known is not None and found[0] == known:
        return known
    where = str(path or ":memory:")
    if len(found) != 1:
        raise CorruptionError(f"{where} is damaged: it has {len(found)} heads.", where)
    head = Head(*found[0])
    whole = [v for v in head if v is not head.dim and v is not head.checkpoint_name]
    if (
        any(type(v) is not int or v < 0 for v in whole)
        or not (head.dim is None or (type(head.dim) is int and head.dim > 0))
        or head.base_n > head.n
        or head.checkpoint_lsn > head.lsn
        or head.generation < 1
    ):
        raise CorruptionError(f"{where} is damaged: its head is {tuple(head)}.", where)
    return head


def record_crc(id: str, text: str, metadata: str) -> int:
    """crc32 of a record's parts, a zero byte between them (UTF-8 ids and metadata hold none)."""
    return zlib.crc32(f"{id}\0{metadata}\0{text}".encode())


def log_crc(dead: bytes, has_vector: bytes | None, postings: bytes, columns: bytes) -> int:
    """crc32 of a change's blobs."""
    crc = zlib.crc32(has_vector or b"", zlib.crc32(dead))
    return zlib.crc32(columns, zlib.crc32(postings, crc))


def _chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]
