"""How is a store brought into step with a folder, again and again?

Each transaction holds chunks, what leaves because of them, and the record-keeping that says so.
What was committed is never embedded again, whatever interrupts.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cormorant import defaults
from cormorant.errors import ConfigError, NotFound, UsageError
from cormorant.ingest.chunkers import RecursiveChunker
from cormorant.ingest.cutting import Broken, Change, Cutter, Ended, Gone, Piece, Same
from cormorant.ingest.embedding import EmbeddingWork
from cormorant.ingest.folders import list_folder
from cormorant.ingest.ledger import Ledger
from cormorant.ingest.manifest import Manifest
from cormorant.ingest.pricing import PriceTable
from cormorant.ingest.report import Failed, Progress, SyncReport
from cormorant.ingest.sources import ChunkerLike, Source
from cormorant.ingest.tokens import token_count
from cormorant.ingest.turn import turn
from cormorant.ingest.writing import Transaction, compose
from cormorant.langchain.calls.steps import Call, Steps, arun, in_thread, run
from cormorant.langchain.embedder import Embedder, check_embedding
from cormorant.langchain.embeddings.caching import Caching
from cormorant.langchain.embeddings.naming import model_name
from cormorant.langchain.guard import Guard
from cormorant.store.door import Door

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

__all__ = ["async_sync", "sync"]

Confirm: TypeAlias = Callable[[int], bool]
"""Asked whether so many sources may go."""

_BYTES: Final = 8 * 1024 * 1024  # of texts, after which a transaction is full whatever its chunks
_CHANGES: Final = 256  # sources of a transaction


def sync(
    folder: str | os.PathLike[str] | Iterable[Source],
    store: Door,
    embedder: Embeddings | None = None,
    *,
    chunker: ChunkerLike | None = None,
    name: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    allow_empty: bool = False,
    confirm: Confirm | None = None,
    verify: bool = False,
    dry_run: bool = False,
    work: dict[str, Any] | None = None,
    prices: PriceTable | None = None,
    price_as: str | None = None,
    check_embedder: bool = True,
    lock_timeout_s: float = defaults.LOCK_TIMEOUT_S,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SyncReport:
    """Bring a store into step with a folder: what changed is embedded, what is gone goes.

    Chunks are named by their text: one that several sources hold is one record, embedded once,
    and stays until the last of them is gone. A source that cannot be read keeps what the store
    has of it. Interrupted at any point, even by ``kill -9``, the next call goes on from there.

    Args:
        folder: A folder of files; or sources of another kind, all of them.
        store: An open store, or a scoped view of one: then only that scope's records are touched.
        embedder: Makes the vectors; None for a store searched by text alone.
        chunker: Cuts; None takes :class:`RecursiveChunker` with its defaults.
        name: Of the collection: the same sources under the same name are kept in step. None takes
            the folder's absolute path, so that two folders in one store do not touch each other.
        include: Shell patterns of relative paths, such as ``guide/*``; without any, all text files.
        exclude: The same, of files to pass over.
        allow_empty: Delete everything if the folder is empty.
        confirm: Asked in that case, with how many sources would go; True lets them.
        verify: Read every source, and compare each chunk with the store: repairs what was
            deleted or changed in the store by other means.
        dry_run: Change nothing; say what would be done and what it would cost.
        work: Settings of :class:`EmbeddingWork`, such as ``{"calls_at_once": 8}``.
        prices: Prices; None takes the shipped list prices.
        price_as: The model to look up there; None takes the embedder's.
        check_embedder: Compare the embedder with the one the store was made with.
        lock_timeout_s: How long to wait for another sync of this store.
        progress: Called as the work goes on.
        stop: Asked between transactions; True ends the sync there, and the report says so.

    Returns:
        What was done.

    Raises:
        UsageError: If the folder is empty though the store has sources of it.
        NotFound: If there is no such folder.
        ScopeError: In a scope whose predicates are not all equalities.
        StoreLocked: If another sync of the store, or another writer, does not end in time.
        EmbeddingError: If the embedder fails for good; what was committed stays.
        EmbeddingMismatch: If the store's vectors are of another embedder.
    """
    given = dict(locals())
    return run(_steps(**given))


async def async_sync(
    folder: str | os.PathLike[str] | Iterable[Source],
    store: Door,
    embedder: Embeddings | None = None,
    **settings: Any,
) -> SyncReport:
    """:func:`sync`, awaiting the embedder; reading and writing is done in threads."""
    return await arun(_steps(folder, store, embedder, **settings))


def _steps(
    folder: str | os.PathLike[str] | Iterable[Source],
    store: Door,
    embedder: Embeddings | None = None,
    *,
    chunker: ChunkerLike | None = None,
    name: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    allow_empty: bool = False,
    confirm: Confirm | None = None,
    verify: bool = False,
    dry_run: bool = False,
    work: dict[str, Any] | None = None,
    prices: PriceTable | None = None,
    price_as: str | None = None,
    check_embedder: bool = True,
    lock_timeout_s: float = defaults.LOCK_TIMEOUT_S,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Steps[SyncReport]:
    if not isinstance(store, Door):
        raise UsageError(
            f"sync takes an open store, or a scoped view of one; got {type(store).__name__}. Of a "
            "vector store pass its .store."
        )
    if embedder is not None:
        check_embedding(embedder, "embedder")
    cache = embedder if isinstance(embedder, Caching) else None
    known = 0 if cache is None else cache.hits
    running = _Run(store, progress=progress, stop=stop, dry_run=dry_run)
    mine = running.started
    wrapped = None if embedder is None else wrap(embedder, store)
    held = None if dry_run else turn(store.path, lock_timeout_s)
    if held is not None:
        yield in_thread(held.__enter__)
    try:
        if wrapped is not None and not dry_run:
            guard = Guard(store, wrapped, enabled=check_embedder, accept_variant=False)
            yield in_thread(guard.register)
        sources, collection, failed = yield in_thread(
            partial(_listed, folder, name, include, exclude)
        )
        made = chunker if chunker is not None else RecursiveChunker()
        yield in_thread(
            partial(running.begin, sources, collection, failed, made, wrapped, verify=verify)
        )
        running.refuse_empty(allow_empty=allow_empty or dry_run, confirm=confirm)
        embedding = None
        if wrapped is not None and not dry_run:
            embedding = EmbeddingWork(wrapped, progress=running.embedded, **(work or {}))
        while True:
            unit = yield in_thread(running.next_unit)
            if not unit:
                break
            if dry_run:
                yield in_thread(partial(running.reckon, unit))
                continue
            transaction = yield in_thread(partial(running.compose, unit))
            vectors = yield _embed(embedding, transaction)
            yield in_thread(partial(running.commit, transaction, vectors))
        table = prices if prices is not None else PriceTable.load()
        price = table.find(price_as, None if embedder is None else model_name(embedder))
        tokens = running.tokens if embedding is None else embedding.tokens
        if cache is not None:
            tokens = running.take_off(cache.hits - known, tokens)
        usd = 0.0 if not tokens else None if price is None else price.build_usd(tokens)
        return running.report(tokens, usd, time.monotonic() - mine)
    finally:
        if held is not None:
            held.__exit__(None, None, None)


def _embed(embedding: EmbeddingWork | None, transaction: Transaction) -> Call:
    texts = [record.text for record in transaction.bare]
    if embedding is None or not texts:
        return in_thread(list)
    return Call(partial(embedding.embed, texts), partial(embedding.aembed, texts))


class _Run:
    """One sync, as it goes on."""

    def __init__(
        self,
        store: Door,
        *,
        progress: Callable[[Progress], None] | None,
        stop: Callable[[], bool] | None,
        dry_run: bool,
    ) -> None:
        self.started = time.monotonic()
        self.tokens = 0
        self._store = store
        self._progress = progress
        self._stop = stop
        self._dry_run = dry_run
        self._stopped = False
        self._counts: Counter[str] = Counter()
        self._failed: list[Failed] = []
        self._notes: list[str] = []
        self._come: Counter[str] = Counter()  # text digests of sources that are new
        self._went: Counter[str] = Counter()  # and of those that are gone
        self._reckoned: set[str] = set()
        self._done_bytes = self._total_bytes = self._sources_done = 0
        self._worked_from: float | None = None

    def begin(
        self,
        sources: list[Source],
        collection: str,
        failed: list[Failed],
        chunker: ChunkerLike,
        embedder: Embedder | None,
        *,
        verify: bool,
    ) -> None:
        """Read the record-keeping, and see what there is to do."""
        self._manifest = Manifest(self._store)
        self._ledger = Ledger(self._manifest)
        self._vectors = embedder is not None
        self._counter = token_count(None if embedder is None else embedder.embedding)
        self._cutter = Cutter(
            self._store,
            self._manifest,
            self._ledger,
            chunker,
            collection=collection,
            vectors=self._vectors,
            verify=verify,
        )
        self._sources = sources
        self._collection = collection
        self._failed += failed
        here = {self._cutter.place(source) for source in sources}
        unread = [each.source for each in failed]
        self._gone = {
            place: None
            for place in self._ledger.places(collection)
            if place not in here and not _under(place.source, unread)
        }
        self._total_bytes = sum(
            source.size_bytes for source in sources if not self._cutter.unread(source)
        )
        self._changes = self._readings()
        self._phases = [self._endings]

    def refuse_empty(self, *, allow_empty: bool, confirm: Confirm | None) -> None:
        """Nothing is deleted because a folder was not there for a moment."""
        if self._sources or not self._gone or allow_empty:
            return
        if confirm is not None and confirm(len(self._gone)):
            return
        raise UsageError(
            f"{self._collection} has no files that can be read, and the store holds "
            f"{len(self._gone):,} sources of it; nothing was deleted. If they shall go: "
            "allow_empty=True (--allow-empty)."
        )

    def _readings(self) -> Iterator[Change]:
        for source in self._sources:
            kept = self._ledger.kept.get(self._cutter.place(source))
            read = not self._cutter.unread(source)
            for change in self._cutter.changes(source):
                if isinstance(change, Broken):
                    self._failed.append(change.failed)
                yield change
                if isinstance(change, Same):
                    self._counts["skipped"] += 1
                elif isinstance(change, Piece) and change.head is not None:
                    self._counts["added" if kept is None else "updated"] += 1
                    if kept is None:
                        self._come[change.head.text_digest] += 1
            self._sources_done += 1
            if read:
                self._done_bytes += source.size_bytes

    def _endings(self) -> Iterator[Change]:
        """Last, once all else is committed: what only moved has found its chunks still there."""
        for place in self._ledger.places(self._collection):
            head = self._ledger.kept.get(place)
            if place in self._gone:
                yield Gone(place)
                self._counts["deleted"] += head is not None
                self._went.update([] if head is None else [head.text_digest])
                continue
            for version in self._ledger.versions(place):
                if head is None or version.build != head.build:
                    yield Ended(version)

    def next_unit(self) -> list[Change]:
        """What the next transaction is about; empty at the end."""
        self._worked_from = self._worked_from or time.monotonic()
        while True:
            if self._stop is not None and self._stop():
                self._stopped = True
                return []
            unit = self._gathered()
            if unit or not self._phases:
                self._tell()
                return unit
            self._changes = self._phases.pop()()

    def _gathered(self) -> list[Change]:
        unit: list[Change] = []
        chunks = size = 0
        for change in self._changes:
            if isinstance(change, Same) and change.head is None:
                continue
            unit.append(change)
            if isinstance(change, Piece):
                chunks += len(change.chunks)
                size += change.text_bytes
            elif isinstance(change, (Gone, Ended)):
                place = change.place if isinstance(change, Gone) else change.version.place
                kept = self._ledger.kept.get(place)
                chunks += 0 if kept is None else kept.chunks
            if chunks >= defaults.SYNC_CHUNKS or size >= _BYTES or len(unit) >= _CHANGES:
                break
        return unit

    def compose(self, unit: list[Change]) -> Transaction:
        """What has to be written."""
        return compose(self._store, self._manifest, self._ledger, unit, vectors=self._vectors)

    def commit(self, transaction: Transaction, vectors: Sequence[Any]) -> None:
        """Write it."""
        written = transaction.commit(self._store, self._ledger, vectors)
        self._counts["chunks_added"] += written.added
        self._counts["chunks_updated"] += written.updated
        self._counts["chunks_deleted"] += written.deleted
        self._tell()

    def reckon(self, unit: list[Change]) -> None:
        """What embedding this would take."""
        if not self._vectors:
            return
        texts: dict[str, str] = {}
        for change in unit:
            if isinstance(change, Piece):
                texts.update(change.texts)
                self._ledger.hold(change.version, list(change.chunks))
        texts = {id: text for id, text in texts.items() if id not in self._reckoned}
        self._reckoned.update(texts)
        stored = self._store.get(list(texts), with_vectors=True)
        has = {record.id for record in stored if record.vector is not None}
        for id, text in texts.items():
            if id not in has:
                self.tokens += self._counter.count(text)
                self._counts["embedded"] += 1
        self._tell()

    def embedded(self, count: int) -> None:
        """So many texts got their vectors."""
        self._counts["embedded"] += count
        self._tell()

    def take_off(self, hits: int, tokens: int) -> int:
        """Texts that a cache answered were not embedded; their tokens are taken off by share."""
        given = self._counts["embedded"]
        self._counts["embedded"] = given - hits
        if hits:
            self._notes.append(f"A cache had the vectors of {hits:,} further texts.")
        return round(tokens * (given - hits) / given) if given else 0

    def report(self, tokens: int, usd: float | None, seconds: float) -> SyncReport:
        """What was done."""
        moved = (self._come & self._went).total()
        notes = self._notes
        if self._stopped:
            notes.append("It was stopped before the end; the next sync goes on from there.")
        others = {place.collection for place in self._ledger.kept} - {self._collection}
        if others and self._counts["added"] and not self._counts["skipped"]:
            named = ", ".join(sorted(others)[:3])
            notes.append(
                f"The store holds other collections too, which stay as they are: {named}. If one "
                "of them is this folder under its former path, give both the same name."
            )
        written = {
            name: None if self._dry_run else self._counts[name]
            for name in ("chunks_added", "chunks_updated", "chunks_deleted")
        }
        return SyncReport(
            added=self._counts["added"] - moved,
            updated=self._counts["updated"],
            moved=moved,
            skipped=self._counts["skipped"],
            deleted=self._counts["deleted"] - moved,
            failed=tuple(self._failed),
            embedded=self._counts["embedded"],
            tokens=tokens,
            tokens_by=self._counter.says,
            seconds=seconds,
            usd=usd,
            dry_run=self._dry_run,
            notes=tuple(notes),
            **written,
        )

    def _tell(self) -> None:
        if self._progress is None:
            return
        left = None
        if self._worked_from is not None and self._done_bytes:
            spent = time.monotonic() - self._worked_from
            left = spent * (self._total_bytes - self._done_bytes) / self._done_bytes
        self._progress(
            Progress(
                sources=self._sources_done,
                of_sources=len(self._sources),
                done_bytes=self._done_bytes,
                total_bytes=self._total_bytes,
                embedded=self._counts["embedded"],
                seconds=time.monotonic() - self.started,
                left_s=left,
            )
        )


def wrap(embedder: Embeddings, store: Door) -> Embedder:
    """The embedder with its failures told apart; one that is wrapped already stays as it is."""
    if isinstance(embedder, Embedder):
        return embedder
    return Embedder(embedder, lambda: store.executor)


def _listed(
    folder: str | os.PathLike[str] | Iterable[Source],
    name: str | None,
    include: Sequence[str],
    exclude: Sequence[str],
) -> tuple[list[Source], str, list[Failed]]:
    """The sources, the collection's name, and what could not even be listed."""
    if isinstance(folder, (str, os.PathLike)):
        root = Path(folder)
        if not root.is_dir():
            raise NotFound(f"{root} is no folder. Name the folder whose files are to be synced.")
        listing = list_folder(root, include, exclude)
        return [*listing.sources], name or _as_text(root.resolve()), listing.failed
    if name is None:
        raise ConfigError(
            "Sources that are no folder need a name for their collection: name='wiki'."
        )
    sources = list(folder)
    twice = [source for source, n in Counter(each.source for each in sources).items() if n > 1]
    if twice:
        raise UsageError(f"The source {twice[0]!r} comes twice; each needs a name of its own.")
    return sources, name, []


def _as_text(path: Path) -> str:
    """A path as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _under(source: str, unread: Sequence[str]) -> bool:
    """Whether a source is one of those, or lies in a folder that is."""
    return any(
        each in {source, "."} or source.startswith(f"{each.rstrip('/')}/") for each in unread
    )
