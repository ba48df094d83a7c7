"""What is kept of a source inside the store, beside its chunks and in their transactions?

Documents of the package's own, so backups, compaction and dumps take them along, and a store's
format knows nothing of them. Each source has a head, which says how its file and its text were,
and parts, which list its chunks: ids, and the metadata they have because of this source. All of
``docs/FORMAT.md``, "Sync".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cormorant.errors import CorruptionError
from cormorant.model import Record
from cormorant.storage import decode_metadata, encode_metadata
from cormorant.store import OWN_DOCUMENTS, stamps_of
from cormorant.store.door import Door

__all__ = ["Kept", "Manifest", "Part", "Place"]

_PREFIX: Final = f"{OWN_DOCUMENTS}sync/"
_VERSION: Final = 1
_READ: Final = 64  # documents at once


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a source is: its collection, and its name there."""

    collection: str
    source: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A source as it was last brought into the store.

    Attributes:
        place: Which one.
        build: Number of this version; its parts carry it.
        parts: How many there are.
        chunks: Distinct chunks they list.
        digest: Of text, metadata and the way it was cut.
        text_digest: Of text alone, by which a renamed source is known again.
        settings: Digest of the way it was cut.
        size_bytes, modified: Of the file.
        read_at: When it was read, in seconds since the epoch.
        vectors: Whether its chunks were embedded.
    """

    place: Place
    build: int
    parts: int
    chunks: int
    digest: str
    text_digest: str
    settings: str
    size_bytes: int
    modified: float
    read_at: float
    vectors: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Some chunks of a version: id to metadata, in order.

    Attributes:
        place, build, number: Which.
        chunks: Every id once in a version.
    """

    place: Place
    build: int
    number: int
    chunks: Mapping[str, dict[str, Any]]


class Manifest:
    """The record-keeping of one scope of a store.

    Args:
        store: A store, or a scoped view whose predicates are equalities.

    Attributes:
        scope_key: Tells scopes apart; part of the ids of chunks.

    Raises:
        ScopeError: In a scope whose predicates are not all equalities.
    """

    def __init__(self, store: Door) -> None:
        self._store = store
        where = "A folder is synced into a store, or into a scope"
        written = stamps_of(store, where, id=_PREFIX)
        self.scope_key = hashlib.sha256(written.encode()).hexdigest()[:16]
        self._prefix = f"{_PREFIX}{self.scope_key}/"

    def chunk_id(self, text: str) -> str:
        """The id of a chunk: of its text, in this scope. 128 bits, hexadecimal."""
        return hashlib.sha256(f"{self.scope_key}\0{text}".encode()).hexdigest()[:32]

    def head_id(self, place: Place) -> str:
        """The id of a source's head."""
        written = f"{place.collection}\0{place.source}"
        return self._prefix + hashlib.sha256(written.encode()).hexdigest()[:32]

    def part_id(self, place: Place, build: int, number: int) -> str:
        """The id of one of its parts."""
        return f"{self.head_id(place)}/{build}/{number:08d}"

    def head(self, kept: Kept) -> Record:
        """A source's head, to be written."""
        fields = {name: getattr(kept, name) for name in Kept.__slots__ if name != "place"}
        return self._document(self.head_id(kept.place), kept.place, fields)

    def part(self, part: Part) -> Record:
        """A part, to be written. What all its chunks' metadata say alike is written once."""
        metadatas = [json.loads(encode_metadata(each)) for each in part.chunks.values()]
        common = _common(metadatas)
        own = [{k: v for k, v in each.items() if k not in common} for each in metadatas]
        fields = {
            "build": part.build,
            "part": part.number,
            "common": common,
            "chunks": [[id, each] for id, each in zip(part.chunks, own, strict=True)],
        }
        return self._document(self.part_id(part.place, part.build, part.number), part.place, fields)

    def read(self, ids: Sequence[str] | None = None) -> Iterator[Kept | Part]:
        """Everything that is kept, or the documents of these ids, a few at a time.

        Raises:
            CorruptionError: If one of them is not what was written.
        """
        wanted = self._store.document_ids(self._prefix) if ids is None else ids
        for first in range(0, len(wanted), _READ):
            for document in self._store.documents(wanted[first : first + _READ]):
                yield _read(document)

    def parts(self, place: Place, build: int) -> Iterator[Part]:
        """The parts of one version, in order, a few in memory at a time."""
        for each in self.read(self.part_ids(place, build)):
            if isinstance(each, Part):
                yield each

    def part_ids(self, place: Place, build: int) -> list[str]:
        """The ids of the parts of one version."""
        return self._store.document_ids(f"{self.head_id(place)}/{build}/")

    def _document(self, id: str, place: Place, fields: Mapping[str, Any]) -> Record:
        written = {
            "version": _VERSION,
            "collection": place.collection,
            "source": place.source,
            **fields,
        }
        return Record(id, json.dumps(written, ensure_ascii=False, separators=(",", ":")))


def _common(metadatas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not metadatas:
        return {}
    first, *rest = metadatas
    written = {name: json.dumps(value, sort_keys=True) for name, value in first.items()}
    return {
        name: value
        for name, value in first.items()
        if all(
            name in each and json.dumps(each[name], sort_keys=True) == written[name]
            for each in rest
        )
    }


def _read(document: Record) -> Kept | Part:
    try:
        fields = json.loads(document.text)
        if fields.pop("version") != _VERSION:
            raise ValueError("it is of a version this release does not read")
        place = Place(fields.pop("collection"), fields.pop("source"))
        if "chunks" in fields and isinstance(fields["chunks"], list):
            common = fields["common"]
            chunks = {
                id: decode_metadata(json.dumps({**common, **own})) for id, own in fields["chunks"]
            }
            return Part(place, fields["build"], fields["part"], chunks)
        return Kept(place=place, **fields)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CorruptionError(
            f"What is kept of a synced source cannot be read ({document.id}): {error!r}. Restore "
            "the store from a backup, or sync the folder into a new one."
        ) from error
