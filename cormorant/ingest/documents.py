"""How is a store kept in step with documents, as LangChain's ``index()`` does, without its faults?

Documents are grouped by source and given to :func:`~cormorant.ingest.sync`, so all it promises
holds here: what was committed is not embedded again, what changes changes in one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from cormorant.errors import LoadError, UsageError
from cormorant.ingest.ledger import Ledger
from cormorant.ingest.manifest import Manifest, Place
from cormorant.ingest.report import SyncReport
from cormorant.ingest.sources import ReadSource, Source
from cormorant.ingest.syncing import async_sync, sync
from cormorant.langchain.documents import listed_documents
from cormorant.langchain.vectorstore import Cormorant
from cormorant.storage import encode_metadata
from cormorant.store.door import Door

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

__all__ = ["Cleanup", "async_sync_documents", "sync_documents"]

Cleanup: TypeAlias = Literal["incremental", "scoped_full", "full"]
"""What becomes of documents that are no longer given; None beside it: they stay."""

SourceId: TypeAlias = str | Callable[[Document], str]

_READ: Final = 256  # chunks at once


def sync_documents(
    documents: BaseLoader | Iterable[Document],
    store: Door | Cormorant,
    embedder: Embeddings | None = None,
    *,
    name: str = "documents",
    source_id_key: SourceId | None = None,
    cleanup: Cleanup | None = "full",
    verify: bool = False,
    allow_empty: bool = False,
    **settings: Any,
) -> SyncReport:
    """Bring a store into step with documents that were cut already.

    A document is known by its text: its record's id is made of it, and an id it brings is not
    used. One text of several sources is one record, embedded once. All documents are held in
    memory until the sync begins, since those of one source may come apart.

    Args:
        documents: Chunks, or a loader of them.
        store: An open store, a scope of one, or a Cormorant vector store.
        embedder: Makes the vectors; None takes the vector store's, or a store of text alone.
        name: Of the collection: several of them in one store do not touch each other.
        source_id_key: The metadata field that names a document's source, or a function that does.
        cleanup: ``full``: what is not given goes. ``incremental`` or ``scoped_full``: of the
            sources that are given, what is not given goes; they differ in ``index()`` by when
            that happens, and here it is in the transaction that brings the new. None: nothing goes.
        verify: Compare every chunk with the store: what was deleted there by other means is
            stored again, if it was given, and else reported in ``failed``.
        allow_empty: Under ``full``, delete everything if there are no documents.
        **settings: Further ones of :func:`~cormorant.ingest.sync`: ``work``, ``dry_run``, …

    Returns:
        What was done; sources that were not given and stay are not counted.

    Raises:
        UsageError: If sources are needed and one is missing, or ``full`` got no documents.
        EmbeddingMismatch: If the store's vectors are of another embedder.

    Example:
        >>> import cormorant
        >>> from langchain_core.documents import Document
        >>> store = cormorant.open(":memory:")
        >>> pages = [Document("a fish", metadata={"source": "fish.md"})]
        >>> sync_documents(pages, store, source_id_key="source").chunks_added
        1
        >>> sync_documents(pages, store, source_id_key="source").skipped
        1
        >>> store.close()
    """
    given = _Given(documents, name, source_id_key, cleanup, verify=verify)
    door, embedding = _target(store, embedder)
    report = sync(
        given.sources(door),
        door,
        embedding,
        chunker=_AsTheyAre(),
        name=name,
        verify=verify,
        allow_empty=allow_empty,
        **settings,
    )
    return given.counted(report)


async def async_sync_documents(
    documents: BaseLoader | Iterable[Document],
    store: Door | Cormorant,
    embedder: Embeddings | None = None,
    *,
    name: str = "documents",
    source_id_key: SourceId | None = None,
    cleanup: Cleanup | None = "full",
    verify: bool = False,
    allow_empty: bool = False,
    **settings: Any,
) -> SyncReport:
    """:func:`sync_documents`, awaiting the embedder; the rest is done in threads."""
    given = _Given(documents, name, source_id_key, cleanup, verify=verify)
    door, embedding = _target(store, embedder)
    report = await async_sync(
        given.sources(door),
        door,
        embedding,
        chunker=_AsTheyAre(),
        name=name,
        verify=verify,
        allow_empty=allow_empty,
        **settings,
    )
    return given.counted(report)


class _AsTheyAre:
    """Cuts nothing: what is given are chunks."""

    def chunk(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents."""
        yield from documents

    def settings(self) -> dict[str, Any]:
        """None."""
        return {}


class _Given:
    """The documents of one call, and the sources of earlier calls that stay beside them."""

    def __init__(
        self,
        documents: BaseLoader | Iterable[Document],
        name: str,
        source_id_key: SourceId | None,
        cleanup: Cleanup | None,
        *,
        verify: bool,
    ) -> None:
        if cleanup is not None and cleanup not in get_args(Cleanup):
            raise UsageError(
                f"cleanup takes {', '.join(map(repr, get_args(Cleanup)))} or None; got {cleanup!r}."
            )
        if cleanup in {"incremental", "scoped_full"} and source_id_key is None:
            raise UsageError(
                f"cleanup={cleanup!r} needs source_id_key: the metadata field that names a "
                "document's source, such as 'source'."
            )
        self._documents = documents
        self._name = name
        self._key = source_id_key
        self._cleanup = cleanup
        self._verify = verify
        self._kept: list[str] = []
        self._read: set[str] = set()

    def sources(self, store: Door) -> Iterator[Source]:
        """All sources there are to be; read when asked, so in the turn of the sync that asks."""
        grouped: dict[str, list[Document]] = {}
        loaded = self._documents
        for document in listed_documents(
            loaded.lazy_load() if isinstance(loaded, BaseLoader) else loaded
        ):
            grouped.setdefault(self._source(document), []).append(document)
        manifest = Manifest(store)
        ledger = Ledger(manifest)
        for source, given in grouped.items():
            place = Place(self._name, source)
            kept = ledger.kept.get(place)
            if self._cleanup is not None or kept is None:
                yield _source(source, given)
                continue
            held = list(_stored(store, manifest, ledger, place, complete=False))
            known = {each.page_content: encode_metadata(each.metadata) for each in held}
            if not self._verify and all(
                known.get(each.page_content) == _encoded(store, each) for each in given
            ):
                yield ReadSource(source, kept.size_bytes, kept.modified, partial(iter, held))
                continue
            fresh = {each.page_content for each in given}
            yield _source(source, [*given, *(e for e in held if e.page_content not in fresh)])
        if self._cleanup == "full":
            return
        for place in ledger.places(self._name):
            kept = ledger.kept.get(place)
            if place.source in grouped or kept is None:
                continue
            self._kept.append(place.source)
            stored = partial(_stored, store, manifest, ledger, place, complete=True)
            read = partial(self._noted, place.source, stored)
            yield ReadSource(place.source, kept.size_bytes, kept.modified, read)

    def _noted(self, source: str, read: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        self._read.add(source)
        yield from read()

    def counted(self, report: SyncReport) -> SyncReport:
        """The report, without the sources that were not given and stay."""
        unread = {each.source for each in report.failed}
        stayed = {source for source in self._kept if source not in unread}
        read = len(stayed & self._read)  # because of verify, or for vectors they lacked
        return replace(
            report, updated=report.updated - read, skipped=report.skipped - (len(stayed) - read)
        )

    def _source(self, document: Document) -> str:
        if self._key is None:
            # A part of all documents: so that one that changes does not make all be written.
            digest = hashlib.sha256(document.page_content.encode(errors="surrogatepass"))
            return f"part {digest.hexdigest()[:2]}"
        given: object = (
            self._key(document) if callable(self._key) else document.metadata.get(self._key)
        )
        if not isinstance(given, str) or not given:
            raise UsageError(
                f"Each document needs a source, a text; source_id_key={self._key!r} gives "
                f"{given!r} for the one that begins {document.page_content[:80]!r}. Nothing was "
                "changed."
            )
        return given


def _source(name: str, documents: list[Document]) -> Source:
    return ReadSource(name, _stamp(documents), 0.0, partial(iter, documents))


def _encoded(store: Door, document: Document) -> str:
    return encode_metadata(store.stamped(document.metadata, id=""))


def _stored(
    store: Door, manifest: Manifest, ledger: Ledger, place: Place, *, complete: bool
) -> Iterator[Document]:
    """A source's chunks as the store has them."""
    head = ledger.kept.get(place)
    if head is None:
        return
    for part in manifest.parts(place, head.build):
        ids = list(part.chunks)
        for first in range(0, len(ids), _READ):
            some = ids[first : first + _READ]
            records = {record.id: record for record in store.get(some)}
            if complete and len(records) < len(some):
                raise LoadError(
                    f"{len(some) - len(records):,} of its chunks were deleted from the store by "
                    "other means, and it is not among the documents given. Give its documents, "
                    "and they are stored again.",
                    path=place.source,
                )
            for id, record in records.items():
                yield Document(record.text, metadata=part.chunks[id])


def _stamp(documents: list[Document]) -> int:
    """Stands for a source's size, which together with its time tells whether it changed.

    Documents have neither; with this in their place equal ones are not read again.
    """
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.page_content, encode_metadata(document.metadata)):
            data = part.encode(errors="surrogatepass")
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return int.from_bytes(digest.digest()[:16], "little")


def _target(store: Door | Cormorant, embedder: Embeddings | None) -> tuple[Door, Embeddings | None]:
    if isinstance(store, Cormorant):
        return store.store, embedder if embedder is not None else store.embeddings
    return store, embedder
