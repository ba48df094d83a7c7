"""Where does the store stand? The head row, settings, and checksums of what SQLite holds."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cormorant.errors import ConfigError, CorruptionError, StoreError
from cormorant.storage import sql
from cormorant.storage.types import Head

__all__ = [
    "LIMIT",
    "MAX_DIM",
    "decode_config",
    "encode_config",
    "head_crc",
    "log_crc",
    "read_head",
    "record_crc",
    "write_head",
]

LIMIT: Final = 1 << 62
"""No number of a store gets there; sums of two still fit into 64 bits."""
MAX_DIM: Final = (1 << 31) - 1

_READ: Final = (
    "SELECT lsn, generation, n, next_row, dim, base_n, checkpoint_lsn, checkpoint_n, checkpoint, "
    "config_lsn, files, crc FROM head"
)
_WRITE: Final = "INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def read_head(connection: sqlite3.Connection, path: Path | None, known: Head | None) -> Head:
    """The head row, checked; ``known`` itself if nothing changed.

    Raises:
        CorruptionError: If it makes no sense.
    """
    found = sql.rows(connection, path, _READ)
    if known is not None and len(found) == 1 and found[0][:-1] == known:
        return known
    where = str(path or ":memory:")
    if len(found) != 1:
        raise CorruptionError(f"{where} is damaged: it has {len(found)} heads.", where)
    head = Head(*found[0][:-1])
    if not _makes_sense(head) or found[0][-1] != head_crc(head):
        raise CorruptionError(f"{where} is damaged: its head is {found[0]}.", where)
    return head


def write_head(connection: sqlite3.Connection, head: Head) -> None:
    """Replace the head row, inside a transaction.

    Raises:
        StoreError: If nobody could read it: a number would be too large.
    """
    if not _makes_sense(head):
        raise StoreError(
            f"The store's numbers would be beyond what its format holds: {head}. Nothing of this "
            "call was stored. Is the store damaged? check() tells."
        )
    connection.execute(_WRITE, (*head, head_crc(head)))


def _makes_sense(head: Head) -> bool:
    """Can a store stand there?"""
    whole = head._replace(dim=1 if head.dim is None else head.dim, checkpoint_name="")
    return (
        all(type(value) is int and 0 <= value < LIMIT for value in whole if value != "")
        and 0 < (whole.dim or 0) <= MAX_DIM
        and isinstance(head.checkpoint_name, str | None)
        and (head.checkpoint_name is not None or head.checkpoint_lsn == head.checkpoint_n == 0)
        and head.generation >= 1
        and head.base_n <= head.checkpoint_n <= head.n < head.next_row
        and head.checkpoint_lsn <= head.lsn
    )


def head_crc(head: Head) -> int:
    """crc32 of the head's values, decimal, a comma between them, nothing for None."""
    return zlib.crc32(",".join("" if value is None else str(value) for value in head).encode())


def encode_config(settings: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Each setting's name, value as JSON, and checksum.

    Raises:
        ConfigError: If a value is not JSON.
    """
    try:
        texts = {
            name: json.dumps(value, ensure_ascii=False, allow_nan=False)
            for name, value in settings.items()
        }
        return [
            (name, text, zlib.crc32(f"{name}\0{text}".encode())) for name, text in texts.items()
        ]
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"Settings must be JSON values: {exc}.") from exc


def decode_config(rows: list[tuple[str, str, int]], where: str) -> dict[str, Any]:
    """The inverse of :func:`encode_config`.

    Raises:
        CorruptionError: If a setting is damaged.
    """
    found = {}
    for name, text, crc in rows:
        try:
            if zlib.crc32(f"{name}\0{text}".encode()) != crc:
                raise ValueError("it does not match its checksum")
            found[name] = json.loads(text)
        except (ValueError, TypeError, RecursionError) as exc:
            raise CorruptionError(f"{where} is damaged: setting {name!r}: {exc}.", where) from exc
    return found


def record_crc(id: str, text: str, metadata: str) -> int:
    """crc32 of a record's parts in UTF-8, a zero byte between them."""
    return zlib.crc32(f"{id}\0{metadata}\0{text}".encode())


def log_crc(
    first_row: int, dead: bytes, has_vector: bytes | None, postings: bytes, columns: bytes
) -> int:
    """crc32 of a change: the first row, decimal, then its blobs."""
    crc = zlib.crc32(has_vector or b"", zlib.crc32(dead, zlib.crc32(str(first_row).encode())))
    return zlib.crc32(columns, zlib.crc32(postings, crc))
