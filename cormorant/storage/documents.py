"""What is kept beside the records, by id, and never searched? Documents that records were cut from.

They live in the same SQLite file and change in the same transactions. No index knows them.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from cormorant.errors import CorruptionError, RecordError
from cormorant.storage.codec import decode_metadata
from cormorant.storage.types import NewDocument, StoredDocument

__all__ = ["decode", "document_crc", "drop", "put"]

_PUT: Final = (
    "INSERT INTO documents (id, text, metadata, crc) VALUES (?, ?, ?, ?) ON CONFLICT (id) "
    "DO UPDATE SET text = excluded.text, metadata = excluded.metadata, crc = excluded.crc"
)


def put(connection: sqlite3.Connection, documents: Sequence[NewDocument]) -> None:
    """Store documents, or replace those whose id exists, inside a transaction.

    Raises:
        RecordError: If a text is not valid Unicode.
    """
    connection.executemany(_PUT, _encoded(documents))


def drop(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Take documents out; unknown ids are skipped."""
    connection.executemany("DELETE FROM documents WHERE id = ?", [(id,) for id in ids])


def decode(row: tuple[Any, ...], where: str) -> StoredDocument:
    """A row of id, text, metadata and checksum, checked.

    Raises:
        CorruptionError: If it does not match its checksum.
    """
    id, text, metadata, crc = row
    texts = all(isinstance(value, str) for value in (id, text, metadata))
    if not texts or document_crc(id, text, metadata) != crc:
        raise CorruptionError(
            f"{where} is damaged: document {id!r} does not match its checksum. Add it again, or "
            "restore the store from a backup.",
            where,
        )
    return StoredDocument(id, text, decode_metadata(metadata))


def document_crc(id: str, text: str, metadata: str) -> int:
    """crc32 of a document's parts in UTF-8: the word document, id, metadata, text, by zero bytes.

    The word keeps a document from passing for a record with the same parts.
    """
    return zlib.crc32(f"document\0{id}\0{metadata}\0{text}".encode())


def _encoded(documents: Sequence[NewDocument]) -> Iterator[tuple[str, str, str, int]]:
    for id, text, metadata in documents:
        try:
            crc = document_crc(id, text, metadata)
        except UnicodeEncodeError as exc:
            raise RecordError(
                f"Document {id!r} has a lone surrogate ({exc.object[exc.start]!r}), which is no "
                "character; nothing was stored. Clean the text first."
            ) from None
        yield id, text, metadata, crc
