"""How does a vector store become one file, and the file a vector store again?

JSON lines: a header, one line per document, and a last line that says how many there
were, so that a file cut short is noticed. Reading it executes nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import ConfigError, CorruptionError, FormatError, RecordError
from cormorant.langchain.dump_file import reading, replacing
from cormorant.model import Record
from cormorant.storage import decode_metadata, encode_metadata
from cormorant.store.door import Door
from cormorant.store.fingerprint import Fingerprint

__all__ = ["Content", "read", "write"]

MAGIC: Final = "cormorant-dump"
VERSION: Final = 1
_HEADER_BYTES: Final = 1024 * 1024  # a header holds eight vectors at most


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, checked, before any of it is stored.

    Attributes:
        path: The file.
        options: The settings of ``Store.open`` it was made with.
        fingerprint: Of the embedder its vectors are from.
        records: With their vectors.
        documents: What records were cut from, as ``Store.documents`` gives it.
    """

    path: Path
    options: dict[str, Any]
    fingerprint: Fingerprint | None
    records: list[Record]
    documents: list[Record]

    def pour_into(self, door: Door) -> None:
        """Add everything, in one transaction.

        Raises:
            ConfigError: If the store's metric is another than the file's.
            EmbeddingMismatch: If the store holds vectors of another embedder.
        """
        metric = self.options["metric"]
        if door.metric != metric:
            raise ConfigError(
                f"{self.path} holds vectors for metric={metric!r}; the store has "
                f"metric={door.metric!r}. Load it into a store of the same metric."
            )
        if self.fingerprint is not None:
            door.remember_fingerprint(self.fingerprint)
        door.add(self.records, documents=self.documents)


def write(door: Door, path: str | os.PathLike[str]) -> None:
    """Write every record and document of the store, or of the scope, to ``path``, atomically.

    One snapshot is written; what was at ``path`` stays until the new file is whole and on
    disk. Missing folders are made.

    Raises:
        UsageError: If no file can have that path, or something else than a file has it.
        StoreError: If the system refuses to write there.
    """
    config = door.config
    fingerprint = door.fingerprint
    with replacing(path) as file:
        lines = _Lines(file)
        lines.write(
            {
                "format": MAGIC,
                "version": VERSION,
                "options": {
                    "dim": config.dim,
                    "metric": config.metric,
                    "language": (config.analyzer or {}).get("language"),
                    "bm25_k1": config.bm25_k1,
                    "bm25_b": config.bm25_b,
                },
                "fingerprint": None if fingerprint is None else fingerprint.to_json(),
            }
        )
        count = 0
        for is_document, record in door.everything():
            count += 1
            entry = {
                "document" if is_document else "id": record.id,
                "text": record.text,
                "metadata": json.loads(encode_metadata(record.metadata)),
            }
            if not is_document:
                entry["vector"] = _packed(record.vector)
            lines.write(entry)
        lines.write({"end": count, "crc32": lines.checksum})


def read(path: str | os.PathLike[str]) -> Content:
    """Read and check a file that :func:`write` wrote.

    Raises:
        NotFound: If there is no such file.
        FormatError: If it is something else, or of a newer version.
        CorruptionError: If it is cut short or damaged.
        UsageError: If no file can have that path.
        StoreError: If the system refuses to read it.
    """
    with reading(path) as file:
        source = Path(path)
        first = file.readline(_HEADER_BYTES)
        header = _header(first, source)
        checksum = zlib.crc32(first)
        records: list[Record] = []
        documents: list[Record] = []
        for number, line in enumerate(file, start=2):
            entry = _entry(line, source, number)
            if "end" in entry:
                count = len(records) + len(documents)
                _check_end(entry, count, checksum, file.read(1), source)
                return Content(
                    path=source,
                    options=header["options"],
                    fingerprint=_fingerprint(header),
                    records=records,
                    documents=documents,
                )
            checksum = zlib.crc32(line, checksum)
            record = _record(entry, header["options"]["dim"], source, number)
            (documents if "document" in entry else records).append(record)
    count = len(records) + len(documents)
    raise _damaged(source, f"it ends after {count} documents without its last line")


class _Lines:
    """Writes lines, and sums them up."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = 0

    def write(self, entry: dict[str, Any]) -> None:
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        line = text.encode() + b"\n"
        self.checksum = zlib.crc32(line, self.checksum)
        self._file.write(line)


def _header(line: bytes, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != MAGIC:
        raise FormatError(
            f"{path} is not a file that Cormorant.dump() wrote; it begins with {line[:40]!r}. "
            "Nothing was loaded. Documents of another vector store must be added again."
        )
    version = header.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise FormatError(
            f"{path} is a dump of version {version!r}; this release reads versions 1 to {VERSION}. "
            "Read it with the release that wrote it."
        )
    options = header.get("options")
    if not isinstance(options, dict) or set(options) != {
        "dim",
        "metric",
        "language",
        "bm25_k1",
        "bm25_b",
    }:
        raise _damaged(path, f"its header's options are {options!r}")
    return header


def _fingerprint(header: dict[str, Any]) -> Fingerprint | None:
    stored = header.get("fingerprint")
    return None if stored is None else Fingerprint.from_json(stored)


def _entry(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"line {number} is no JSON") from error
    if not isinstance(entry, dict):
        raise _damaged(path, f"line {number} is no document")
    return entry


def _record(entry: dict[str, Any], dim: int | None, path: Path, number: int) -> Record:
    try:
        is_document = "document" in entry
        id_, text = entry["document" if is_document else "id"], entry["text"]
        vector = None if is_document else entry["vector"]
        metadata = decode_metadata(json.dumps(entry["metadata"]))
        return Record(id=id_, text=text, metadata=metadata, vector=_unpacked(vector, dim))
    except (KeyError, TypeError, ValueError, binascii.Error, RecordError) as error:
        raise _damaged(path, f"line {number} is no document ({error})") from error


def _check_end(entry: dict[str, Any], count: int, checksum: int, rest: bytes, path: Path) -> None:
    if entry["end"] != count:
        raise _damaged(path, f"it holds {count} documents, and its last line says {entry['end']!r}")
    if entry.get("crc32") != checksum:
        raise _damaged(
            path, f"its checksum is {checksum}, its last line says {entry.get('crc32')!r}"
        )
    if rest:
        raise _damaged(path, "something follows its last line")


def _damaged(path: Path, what: str) -> CorruptionError:
    return CorruptionError(f"{path} is damaged: {what}. Nothing was loaded.", path=str(path))


def _packed(vector: Any) -> str | None:
    if vector is None:
        return None
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _unpacked(text: str | None, dim: int | None) -> NDArray[np.float32] | None:
    if text is None:
        return None
    vector = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4")
    if vector.size != dim:
        raise ValueError(f"a vector of {vector.size} numbers, where {dim} are due")
    return vector.astype(np.float32)
