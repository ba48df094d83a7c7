"""Where does the store stand? The head row, settings, and checksums of what SQLite holds."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cormorant.errors import ConfigError, CorruptionError
from cormorant.storage import sql
from cormorant.storage.types import Head

__all__ = [
    "decode_config",
    "encode_config",
    "head_crc",
    "log_crc",
    "read_head",
    "record_crc",
    "write_head",
]

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
    whole = head._replace(dim=1 if head.dim is None else head.dim, checkpoint_name="")
    if (
        any(type(value) is not int or value < 0 for value in whole if value != "")
        or whole.dim == 0
        or not isinstance(head.checkpoint_name, str | None)
        or head.generation < 1
        or not head.base_n <= head.checkpoint_n <= head.n < head.next_row
        or head.checkpoint_lsn > head.lsn
        or found[0][-1] != head_crc(head)
    ):
        raise CorruptionError(f"{where} is damaged: its head is {found[0]}.", where)
    return head


def write_head(connection: sqlite3.Connection, head: Head) -> None:
    """Replace the head row, inside a transaction."""
    connection.execute(_WRITE, (*head, head_crc(head)))


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
