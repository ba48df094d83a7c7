"""What of the sources has to change in the store?

Reads what may have changed, cuts it, and says so piece by piece: a source of any size is never
held whole, and what did not change is not read at all.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from langchain_core.documents import Document

from cormorant import defaults
from cormorant.errors import CormorantError, EmbeddingError, RecordError
from cormorant.ingest.ledger import Ledger, Version
from cormorant.ingest.manifest import Kept, Manifest, Place
from cormorant.ingest.report import Failed
from cormorant.ingest.sources import ChunkerLike, Source
from cormorant.storage import decode_metadata, encode_metadata
from cormorant.store.door import Door

__all__ = ["Broken", "Change", "Cutter", "Ended", "Gone", "Piece", "Same", "settings_digest"]

_RACY_S: Final = 2.0  # a file may change again without its time changing, by some file systems


@dataclass(frozen=True, slots=True)
class Piece:
    """Chunks of a new version of a source.

    Attributes:
        version: Which one.
        number: Of the piece, from 0.
        chunks: Id to metadata, as stored; no id comes twice in a version.
        texts: Id to text.
        head: With the last piece: the version takes the place of every earlier one.
        text_bytes: Size of the texts.
    """

    version: Version
    number: int
    chunks: dict[str, dict[str, Any]]
    texts: dict[str, str]
    head: Kept | None
    text_bytes: int


@dataclass(frozen=True, slots=True)
class Same:
    """A source that did not change.

    Attributes:
        place: Which one.
        head: To be written again, where the file looks otherwise than it did; else None.
    """

    place: Place
    head: Kept | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """A source that is no longer there."""

    place: Place


@dataclass(frozen=True, slots=True)
class Ended:
    """A version that another took the place of, or that was never completed.

    Versions end last of all: a chunk that moved from one source to another is there until both
    are done, so that it is not embedded again.
    """

    version: Version


@dataclass(frozen=True, slots=True)
class Broken:
    """A source that cannot be read; what was begun of a new version is given up."""

    version: Version
    failed: Failed


Change: TypeAlias = Piece | Same | Gone | Ended | Broken


class Cutter:
    """Finds what changed.

    Args:
        store: The store, in its scope.
        manifest: Names chunks.
        ledger: What the store holds.
        chunker: Cuts.
        collection: Whose sources these are.
        vectors: Whether chunks are embedded.
        verify: Read everything again, and take nothing for unchanged.
    """

    def __init__(
        self,
        store: Door,
        manifest: Manifest,
        ledger: Ledger,
        chunker: ChunkerLike,
        *,
        collection: str,
        vectors: bool,
        verify: bool,
    ) -> None:
        self._store = store
        self._manifest = manifest
        self._ledger = ledger
        self._chunker = chunker
        self._collection = collection
        self._vectors = vectors
        self._verify = verify
        self._settings = settings_digest(chunker)

    def place(self, source: Source) -> Place:
        """Where a source is."""
        return Place(self._collection, source.source)

    def unread(self, source: Source) -> bool:
        """Whether the source need not be read: its file is as it was when it was last read."""
        kept = self._ledger.kept.get(self.place(source))
        return (
            kept is not None
            and not self._verify
            and kept.settings == self._settings
            and (kept.vectors or not self._vectors)
            and (kept.size_bytes, kept.modified) == (source.size_bytes, source.modified)
            and kept.read_at - kept.modified > _RACY_S
        )

    def changes(self, source: Source) -> Iterator[Change]:
        """What has to be done about one source."""
        if self.unread(source):
            yield Same(self.place(source))
            return
        place = self.place(source)
        version = Version(place, -self._ledger.next_build(place))
        read_at = time.time()
        digests = _Digests(self._settings)
        try:
            last: Piece | None = None
            for piece in self._pieces(version, source, digests):
                if last is not None:
                    yield last
                last = piece
        except EmbeddingError:
            raise  # of a chunker that embeds: the service is down, not the source
        except (CormorantError, OSError, ValueError) as error:
            yield Broken(version, Failed(source.source, str(error) or type(error).__name__))
            return
        yield self._last(version, source, digests, last, read_at)

    def _last(
        self,
        version: Version,
        source: Source,
        digests: _Digests,
        piece: Piece | None,
        read_at: float,
    ) -> Change:
        place = version.place
        parts = 0 if piece is None else piece.number + 1
        head = Kept(
            place=place,
            build=version.build,
            parts=parts,
            chunks=digests.chunks,
            digest=digests.all.hexdigest(),
            text_digest=digests.text.hexdigest(),
            settings=self._settings,
            size_bytes=source.size_bytes,
            modified=source.modified,
            read_at=read_at,
            vectors=self._vectors,
        )
        kept = self._ledger.kept.get(place)
        if (
            kept is not None
            and not self._verify
            and parts <= 1
            and kept.digest == head.digest
            and (kept.vectors or not self._vectors)
        ):
            same = replace(head, build=kept.build, parts=kept.parts, vectors=kept.vectors)
            return Same(place, same)
        if piece is None:
            return Piece(version, 0, {}, {}, head, 0)
        return replace(piece, head=head)

    def _pieces(self, version: Version, source: Source, digests: _Digests) -> Iterator[Piece]:
        before: dict[str, dict[str, Any]] = {}  # the piece that is held back, so in no ledger yet
        chunks: dict[str, dict[str, Any]] = {}
        texts: dict[str, str] = {}
        size = number = 0
        for chunk in self._chunker.chunk(digests.over(source.documents())):
            text = chunk.page_content
            if not text.strip():
                continue
            data = _utf8(text)
            if len(data) > defaults.MAX_TEXT_BYTES:
                raise RecordError(
                    f"a chunk of it has {len(data):,} bytes; at most {defaults.MAX_TEXT_BYTES:,} "
                    "are accepted. Choose a chunker that cuts smaller."
                )
            id = self._manifest.chunk_id(text)
            if id in chunks or id in before or (number > 1 and self._ledger.holds(version, id)):
                continue
            metadata = self._store.stamped(chunk.metadata, id=id)
            chunks[id] = decode_metadata(encode_metadata(metadata))
            texts[id] = text
            size += len(data)
            digests.chunks += 1
            if len(chunks) >= defaults.SYNC_CHUNKS:
                yield Piece(version, number, chunks, texts, None, size)
                before, chunks, texts, size, number = chunks, {}, {}, 0, number + 1
        if chunks:
            yield Piece(version, number, chunks, texts, None, size)


class _Digests:
    """What a source says, as two digests, taken while it streams by."""

    def __init__(self, settings: str) -> None:
        self.all = hashlib.sha256(settings.encode())
        self.text = hashlib.sha256()
        self.chunks = 0

    def over(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents, as they come."""
        for document in documents:
            data = _utf8(document.page_content)
            metadata = encode_metadata(document.metadata).encode()
            for part in (data, metadata):
                self.all.update(len(part).to_bytes(8, "little"))
                self.all.update(part)
            self.text.update(len(data).to_bytes(8, "little"))
            self.text.update(data)
            yield document


def settings_digest(chunker: ChunkerLike) -> str:
    """The way a chunker cuts, as a digest."""
    written = json.dumps(chunker.settings(), sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(f"{type(chunker).__name__}\0{written}".encode()).hexdigest()[:32]


def _utf8(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(
            f"its text holds a lone surrogate at character {error.start}, which no encoding can "
            "store: it was decoded wrongly."
        ) from error
    return data
