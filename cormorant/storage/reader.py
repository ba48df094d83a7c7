"""What does one consistent snapshot of the truth hold?"""

from __future__ import annotations

import itertools
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, StoreClosed, StoreError
from cormorant.storage import documents, sql
from cormorant.storage.codec import decode_metadata
from cormorant.storage.head import decode_config, log_crc, record_crc
from cormorant.storage.ranges import Base, Range, slot_map, unpack_flags
from cormorant.storage.types import (
    Arrays,
    Delta,
    Head,
    Problem,
    SlotMap,
    StoredDocument,
    StoredRecord,
)

if TYPE_CHECKING:
    from typing import Self

    from cormorant.storage.ground import Ground
    from cormorant.storage.vault import Pin

__all__ = ["Reader"]

_IDS: Final = 'SELECT id, "row" FROM records WHERE id '
_RECORD: Final = 'SELECT "row", id, text, metadata, crc FROM records WHERE "row" '
_DOCUMENT: Final = "SELECT id, text, metadata, crc FROM documents WHERE id "
_DOCUMENTS: Final = 64  # read at once: each may be large
_REBUILD: Final = "check(repair=True) rebuilds what is derived from the records."
_CHUNK: Final = 400  # parameters of one statement; SQLite may be built with a limit of 999


class Reader:
    """A snapshot: all its answers are of one moment, whatever is written meanwhile.

    A context manager, made by ``Storage.read``; not for two threads at once.

    Args:
        ground: What it stands on.
        checking: Refuse to begin if arrays that were handed out lie in a file cut short
            since; False for who does not touch them.

    Attributes:
        isolated: Always True: no write changes what this reader sees.
    """

    isolated = True

    def __init__(self, ground: Ground, *, checking: bool = True) -> None:
        self._ground = ground
        self._checking = checking
        self._connection: sqlite3.Connection | None = None
        self._head: Head | None = None
        self._pin: Pin | None = None
        self._owner = 0

    def __enter__(self) -> Self:
        self._owner = threading.get_ident()
        self._connection, self._head, self._pin = self._ground.begin_read(checking=self._checking)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            self._ground.end_read(connection, self._owner)
        except StoreError:
            if error is None:  # otherwise what was found first says more
                raise

    @property
    def head(self) -> Head:
        """Where the store stands in this snapshot."""
        if self._head is None:
            raise StoreClosed("This snapshot has not begun; use it in a `with` block.")
        return self._head

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration: JSON values by name, ``dim`` included.

        The same object until something changes in it.
        """
        return self._ground.settings(self.head, self.read_settings)

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
        if len(found) != head.lsn - after_lsn and after_lsn < head.checkpoint_lsn:
            return None
        if len(found) != head.lsn - after_lsn or not self._joins_up(found, after_lsn):
            raise CorruptionError(
                f"{self._where} is damaged: its log has {len(found)} of the "
                f"{head.lsn - after_lsn} changes after {after_lsn}, or they do not join up to "
                f"{head.n} slots. {_REBUILD}",
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
        return slot_map(self.head, self.base(), self.ranges(), self._where)

    def base(self) -> Base:
        """What compaction carried over into this generation."""
        return self._pinned.base(self.head.base_n)

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
            found.update(self._rows(f"{_IDS} IN ({marks})", chunk))
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
        while found := self._after(after_row, batch):
            yield [self._record(row) for row in found]
            after_row = found[-1][0]

    def raw_records(self, batch: int = 1000) -> Iterator[tuple[Any, ...]]:
        """Row, id, text, metadata and checksum of all records, as they lie there."""
        after_row = -1
        while found := self._after(after_row, batch):
            yield from found
            after_row = found[-1][0]

    def documents(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The documents of those ids that exist, by id.

        Raises:
            CorruptionError: If one does not match its checksum.
        """
        found: dict[str, StoredDocument] = {}
        for chunk in _chunks(ids):
            marks = ",".join("?" * len(chunk))
            for row in self._rows(f"{_DOCUMENT} IN ({marks})", chunk):
                document = documents.decode(row, self._where)
                found[document.id] = document
        return found

    def document_ids(self, prefix: str = "") -> list[str]:
        """The ids of all documents, or of those that begin with ``prefix``, by code point."""
        statement, bounds = "SELECT id FROM documents WHERE id >= ?", [prefix]
        beyond = _after_prefix(prefix)
        if beyond is not None:
            statement += " AND id < ?"
            bounds.append(beyond)
        return [id for (id,) in self._rows(f"{statement} ORDER BY id", bounds)]

    def raw_documents(self) -> Iterator[tuple[Any, ...]]:
        """Id, text, metadata and checksum of all documents, as they lie there."""
        after = -1
        while found := self._rows(
            "SELECT number, id, text, metadata, crc FROM documents WHERE number > ? "
            "ORDER BY number LIMIT ?",
            (after, _DOCUMENTS),
        ):
            yield from (row[1:] for row in found)
            after = found[-1][0]

    def quick_check(self) -> list[str]:
        """What SQLite finds wrong with its own file."""
        says = [text for (text,) in self._rows("PRAGMA quick_check")]
        return [] if says == ["ok"] else says

    def read_settings(self) -> dict[str, Any]:
        """The configuration as it lies there, but for the dimension, which is in the head."""
        found = self._rows("SELECT name, value, crc FROM config ORDER BY name")
        return decode_config(found, self._where)

    def pin_problems(self) -> list[Problem]:
        """What of the generation's and the checkpoint's files is missing or damaged."""
        return self._pinned.problems()

    def copy_into(self, target: sqlite3.Connection) -> None:
        """Copy this snapshot's SQLite pages into another database."""
        try:
            self._open.backup(target)
        except sqlite3.Error as exc:
            if sql.is_damage(exc):  # of this file, not of the other
                raise sql.sql_error(exc, self._ground.sqlite_path, "copy") from exc
            raise

    # Inside

    @property
    def _where(self) -> str:
        return self._ground.where

    @property
    def _open(self) -> sqlite3.Connection:
        self._ground.check_process()
        if self._connection is None:
            raise StoreClosed("This snapshot has ended; read inside its `with` block.")
        return self._connection

    @property
    def _pinned(self) -> Pin:
        self._ground.check_process()
        if self._pin is None:
            raise StoreClosed("This snapshot has not begun; use it in a `with` block.")
        return self._pin

    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return sql.rows(self._open, self._ground.sqlite_path, statement, parameters)

    def _after(self, row: int, batch: int) -> list[Any]:
        return self._rows(
            f'{_RECORD} > ? AND "row" < ? ORDER BY "row" LIMIT ?',
            (row, self.head.next_row, batch),
        )

    def _record(self, row: tuple[Any, ...]) -> StoredRecord:
        number, id, text, metadata, crc = row
        if not isinstance(text, str) or record_crc(id, text, metadata) != crc:
            raise CorruptionError(
                f"{self._where} is damaged: record {id!r} (row {number}) does not match its "
                "checksum. Add it again, or restore the store from a backup.",
                self._where,
            )
        return StoredRecord(number, id, text, decode_metadata(metadata))

    def _joins_up(self, found: Sequence[tuple[Any, ...]], after_lsn: int) -> bool:
        """Do the changes' slots follow each other up to n?"""
        head = self.head
        spans = [(lo, hi) for _, lo, hi, *_ in found]
        return (
            all(type(lo) is type(hi) is int and 0 <= lo <= hi for lo, hi in spans)
            and all(one[1] == two[0] for one, two in itertools.pairwise(spans))
            and (after_lsn != head.checkpoint_lsn or spans[0][0] == head.checkpoint_n)
            and spans[-1][1] == head.n
        )

    def _delta(self, row: tuple[Any, ...]) -> Delta:
        lsn, lo, hi, first_row, dead, vectors, packed, postings, columns, crc = row
        try:
            if log_crc(first_row, dead, packed, postings, columns) != crc:
                raise ValueError("it does not match its checksum")
            if not 0 < first_row <= self.head.next_row - (hi - lo):
                raise ValueError(f"its rows begin at {first_row}")
            return Delta(
                lsn=lsn,
                generation=self.head.generation,
                lo=lo,
                hi=hi,
                first_row=first_row,
                dead_rows=np.frombuffer(dead, dtype="<i8"),
                has_vector=unpack_flags(vectors, packed, hi - lo, self._where),
                postings=postings,
                columns=columns,
            )
        except (TypeError, ValueError, MemoryError) as exc:
            raise CorruptionError(
                f"{self._where} is damaged: change {lsn}: {exc}. {_REBUILD}", self._where
            ) from exc


def _after_prefix(prefix: str) -> str | None:
    """The first text, by code point, behind all that begin with ``prefix``; None if there is none.

    SQLite compares UTF-8 bytes, which is the order of code points.
    """
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return None
    last = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if last == 0xD800 else last)  # surrogates are no characters


def _chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]
