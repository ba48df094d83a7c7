"""Where does the store stand? The head row, and checksums of what SQLite holds."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from cormorant.errors import CorruptionError
from cormorant.storage import sql
from cormorant.storage.types import Head

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

__all__ = ["log_crc", "read_head", "record_crc", "write_head"]

_READ: Final = (
    "SELECT lsn, generation, n, next_row, dim, base_n, checkpoint_lsn, checkpoint_n, checkpoint, "
    "config_lsn, files FROM head"
)
_WRITE: Final = (
    "UPDATE head SET lsn = ?, generation = ?, n = ?, next_row = ?, dim = ?, base_n = ?, "
    "checkpoint_lsn = ?, checkpoint_n = ?, checkpoint = ?, config_lsn = ?, files = ?"
)


def read_head(connection: sqlite3.Connection, path: Path | None, known: Head | None) -> Head:
    """The head row, checked; ``known`` itself if nothing changed.

    Raises:
        CorruptionError: If it makes no sense.
    """
    found = sql.rows(connection, path, _READ)
    if known is not None and len(found) == 1 and found[0] == known:
        return known
    where = str(path or ":memory:")
    if len(found) != 1:
        raise CorruptionError(f"{where} is damaged: it has {len(found)} heads.", where)
    head = Head(*found[0])
    whole = head._replace(dim=1 if head.dim is None else head.dim, checkpoint_name="")
    if (
        any(type(value) is not int or value < 0 for value in whole if value != "")
        or whole.dim == 0
        or not isinstance(head.checkpoint_name, str | None)
        or head.generation < 1
        or not head.base_n <= head.checkpoint_n <= head.n < head.next_row
        or head.checkpoint_lsn > head.lsn
    ):
        raise CorruptionError(f"{where} is damaged: its head is {tuple(head)}.", where)
    return head


def write_head(connection: sqlite3.Connection, head: Head) -> None:
    """Replace the head row, inside a transaction."""
    connection.execute(_WRITE, head)


def record_crc(id: str, text: str, metadata: str) -> int:
    """crc32 of a record's parts in UTF-8, a zero byte between them."""
    return zlib.crc32(f"{id}\0{metadata}\0{text}".encode())


def log_crc(dead: bytes, has_vector: bytes | None, postings: bytes, columns: bytes) -> int:
    """crc32 of a change's blobs."""
    crc = zlib.crc32(has_vector or b"", zlib.crc32(dead))
    return zlib.crc32(columns, zlib.crc32(postings, crc))
