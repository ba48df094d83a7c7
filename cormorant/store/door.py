"""What may a caller do with records, inside its scope?

A Store and its scoped views share these methods, so that no path exists on which a
scope is not applied: the unscoped Store is the view whose scope is empty.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cormorant import search as searching
from cormorant.errors import ConfigError, QueryError, RecordError
from cormorant.model import (
    AddResult,
    Explanation,
    FilterLike,
    Metric,
    Query,
    Record,
    Result,
    WhyNot,
)
from cormorant.ranges import check_whole
from cormorant.store import misses, settings
from cormorant.store.family import Family
from cormorant.store.intake import check_ids, take_in, take_in_documents
from cormorant.store.own import OWN_DOCUMENTS
from cormorant.store.pages import (
    document_pages,
    documents_of,
    record_pages,
    relatives,
    with_their_vectors,
)
from cormorant.store.scope import Scope

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from cormorant.search import Calibration, RankingConfig, Trust
    from cormorant.storage import Writer
    from cormorant.store.config import StoreConfig
    from cormorant.store.core import Core
    from cormorant.store.fingerprint import Fingerprint
    from cormorant.store.snapshot import Snapshot

__all__ = ["Door", "ScopedStore"]

T = TypeVar("T")


class Door:
    """Add, delete, get, count, search and explain, inside one scope."""

    def __init__(self, core: Core, scope: Scope) -> None:
        self._core = core
        self._scope = scope

    # What it is

    @property
    def path(self) -> Path | None:
        """The folder; None for a store in memory."""
        return self._core.storage.path

    @property
    def dim(self) -> int | None:
        """Numbers per vector; None until the first vector arrives."""
        return self._core.config.dim

    @property
    def metric(self) -> Metric:
        """``cosine``, ``dot`` or ``euclidean``."""
        return self._core.config.metric

    @property
    def config(self) -> StoreConfig:
        """The settings the store was made with."""
        return self._core.config

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The store's own threads (``pool_size``), which async searches run in."""
        return self._core.executor

    @property
    def embedder(self) -> str | None:
        """The embedder's specification the store remembers."""
        return self._core.config.embedder

    @property
    def fingerprint(self) -> Fingerprint | None:
        """The embedder's probe vectors the store remembers."""
        return settings.fingerprint(self._core.config)

    @property
    def ranking(self) -> RankingConfig | None:
        """How hybrid queries are ranked that do not say; None if nobody set it."""
        return self._core.config.ranking

    @property
    def trust(self) -> Trust | None:
        """What the store learned of its legs; None if it did not. See ``docs/trust.md``."""
        return self._core.config.trust

    @property
    def calibration(self) -> Calibration | None:
        """What makes relevances probabilities; None if the store is not calibrated."""
        return self._core.config.calibration

    @property
    def within(self) -> Scope:
        """The scope this view is confined to; empty, and false, for a whole store."""
        return self._scope

    def remember_fingerprint(self, fresh: Fingerprint) -> None:
        """Remember the probe vectors of the embedder that made, or will make, the vectors.

        Raises:
            EmbeddingMismatch: If the store has vectors of another one.
        """
        settings.remember_embedder(self._core, None, fresh, respecify=False)

    def scope(self, /, **predicates: Any) -> ScopedStore:
        """A view that reads and writes only records satisfying ``predicates``.

        Predicates are AND-ed with the scope this view already has: a scope can only narrow.

        Args:
            predicates: Field name to a value (stamped on what is added) or to an operator
                dict (checked). Nested fields: ``scope(**{"acl.team": "blue"})``.

        Raises:
            ScopeError: On a predicate that is None, or a field that is not a name.
            FilterError: On an operator or operand that is not valid.

        Example:
            >>> import cormorant
            >>> store = cormorant.open(":memory:")
            >>> acme = store.scope(tenant="acme")
            >>> acme.add([{"id": "a", "text": "fish"}]).added
            1
            >>> store.get(["a"])[0].metadata
            {'tenant': 'acme'}
            >>> store.scope(tenant="other").get(["a"])
            []
        """
        return ScopedStore(self._core, self._scope.narrowed(predicates))

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether something with this metadata is inside the scope."""
        return self._scope.admits(metadata)

    def stamped(self, metadata: Mapping[str, Any], *, id: str) -> dict[str, Any]:
        """A copy of metadata as this scope would store it.

        Raises:
            ScopeError: If it says otherwise than the scope.
        """
        return self._scope.stamp(copy.deepcopy(dict(metadata)), id=id)

    # Writing

    def add(
        self,
        records: Iterable[Record | Mapping[str, Any]],
        *,
        documents: Iterable[Record | Mapping[str, Any]] = (),
        family: Family | None = None,
        gone: Iterable[str] = (),
    ) -> AddResult:
        """Add records, or replace those whose id exists: all of them, in one transaction.

        When it returns, the records survive a crash and a power loss.

        Args:
            records: Records, or dicts with ``id``, ``text``, ``vector``, ``metadata``; a dict
                without id gets a random one. Read once, so a generator is fine.
            documents: What the records were cut from, kept in the same transaction: like
                records without vectors, but only :meth:`documents` finds them. One whose id
                exists is replaced; documents and records do not share their ids.
            family: Its records and documents, as far as they are in the scope, make way for
                these in the same transaction.
            gone: Ids of further records that make way in the same transaction; unknown ids, and
                ids outside the scope, are skipped. One that is also among ``records`` is replaced.

        Returns:
            The records' ids in input order, and how many were added and updated.

        Raises:
            RecordError: On a record that cannot be stored; nothing is.
            DimensionError: On a vector of the wrong size or with bad values; nothing is stored.
            ScopeError: On a record outside the scope, or an id taken outside it.
            StoreLocked: If another process is writing for longer than the time-out.
        """
        core = self._core
        core.check_writable(self._scope)
        batch = take_in(records, dim=core.config.dim, metric=core.config.metric, scope=self._scope)
        kept = take_in_documents(documents, self._scope)
        ids = tuple(record.id for record in batch.records)
        leaving = check_ids(gone)
        if not ids and not kept and family is None and not leaving:
            return AddResult(ids=(), added=0, updated=0)
        # Outside the lock: analysis is most of the work, and depends on nothing in the store.
        terms = [core.analyzer.terms(record.text) for record in batch.records]

        def commit(writer: Writer, snapshot: Snapshot) -> AddResult:
            config = None
            if batch.vectors is not None:
                config = settings.with_dim(snapshot.config, batch.vectors.shape[1])
            known = writer.rows_of(ids)
            dead = _sorted_rows(known.values())
            core.refuse_foreign(self._scope, snapshot, dead)
            core.refuse_foreign_documents(self._scope, writer, [each.id for each in kept])
            replaced = relatives(snapshot, self._scope, family)
            dead = np.union1d(dead, replaced.rows)
            if leaving:
                dead = np.union1d(dead, self._chosen(snapshot, leaving, None))
            core.commit(
                writer,
                batch if ids else None,
                terms=terms,
                dead=dead,
                config=config,
                documents=kept,
                dead_documents=replaced.documents,
            )
            return AddResult(ids=ids, added=len(ids) - len(known), updated=len(known))

        return core.write(commit, self._scope)

    def delete(
        self,
        ids: Iterable[str] | None = None,
        *,
        filter: FilterLike | None = None,
        family: Family | None = None,
    ) -> int:
        """Delete by ids, by filter, or those of the ids that satisfy the filter.

        Args:
            ids: Unknown ids, and ids outside the scope, are skipped.
            filter: A dict or a predicate; ``{}`` matches every record, and no document.
            family: Its records and documents go too, in the same transaction.

        Returns:
            How many records were deleted; documents are not counted.

        Raises:
            RecordError: If neither is given; to delete everything say ``filter={}``.
        """
        if ids is None and filter is None and family is None:
            raise RecordError(
                "delete needs ids or a filter; got neither. "
                "To delete every record (of the scope) say delete(filter={})."
            )
        wanted = None if ids is None else check_ids(ids)
        core = self._core

        def commit(writer: Writer, snapshot: Snapshot) -> int:
            gone = relatives(snapshot, self._scope, family)
            dead = gone.rows
            if wanted is not None or filter is not None:
                dead = np.union1d(dead, self._chosen(snapshot, wanted, filter))
            if len(dead) or gone.documents:
                core.commit(writer, None, terms=[], dead=dead, dead_documents=gone.documents)
            return len(dead)

        return core.write(commit, self._scope)

    def _chosen(
        self, snapshot: Snapshot, ids: list[str] | None, filter: FilterLike | None
    ) -> NDArray[np.int64]:
        mask = searching.matching(snapshot, filter)
        rows = snapshot.state.rows.view
        if ids is None:
            return rows[np.flatnonzero(mask)]
        known = _sorted_rows(snapshot.reader.rows_of(ids).values())
        slots = snapshot.state.slots_of(known)
        slots = slots[slots >= 0]
        return rows[slots[mask[slots]]]

    # Reading

    def get(self, ids: Iterable[str], *, with_vectors: bool = False) -> list[Record]:
        """The records with the given ids, in the order asked, without repeats.

        Ids that are unknown, or outside the scope, are skipped. Under the cosine metric
        vectors come back normalised, as they are stored.
        """
        wanted = check_ids(ids)

        def work(snapshot: Snapshot) -> list[Record]:
            known = snapshot.reader.rows_of(wanted)
            rows = np.fromiter((known[id] for id in wanted if id in known), dtype=np.int64)
            slots = snapshot.state.slots_of(rows)
            records = snapshot.fetch(slots[slots >= 0])
            kept = [
                (record, slot)
                for record, slot in zip(records, slots[slots >= 0].tolist(), strict=True)
                if self._scope.admits(record.metadata)
            ]
            return with_their_vectors(snapshot, kept) if with_vectors else [r for r, _ in kept]

        return self._core.read(self._scope, work)

    def documents(self, ids: Iterable[str]) -> list[Record]:
        """The documents with the given ids, in the order asked, without repeats.

        Ids that are unknown, or outside the scope, are skipped.
        """
        wanted = check_ids(ids)

        def work(snapshot: Snapshot) -> list[Record]:
            found = {each.id: each for each in documents_of(snapshot, self._scope, wanted)}
            return [found[id] for id in wanted if id in found]

        return self._core.read(self._scope, work)

    def revise_documents(
        self, ids: Iterable[str], change: Callable[[list[Record]], Iterable[Record]]
    ) -> None:
        """Put what a function makes of some documents in their place, in one transaction.

        Nobody else writes between the reading and the writing, so nothing another writer added
        is lost. Durable on return.

        Args:
            ids: Of the documents; unknown ids, and ids outside the scope, are skipped.
            change: Given those found, in the order asked; returns what is there from then on.
                One of the ids that it does not return is gone.

        Raises:
            RecordError: On a document that cannot be stored; nothing is changed.
            ScopeError: On a document outside the scope, or an id taken outside it.
            StoreLocked: If another process is writing for longer than the time-out.
        """
        wanted = check_ids(ids)
        core = self._core

        def commit(writer: Writer, snapshot: Snapshot) -> None:
            found = {each.id: each for each in documents_of(snapshot, self._scope, wanted)}
            kept = take_in_documents(
                change([found[id] for id in wanted if id in found]), self._scope
            )
            staying = {each.id for each in kept}
            core.refuse_foreign_documents(self._scope, writer, [each.id for each in kept])
            gone = [id for id in found if id not in staying]
            if kept or gone:
                dead = np.empty(0, np.int64)
                core.commit(writer, None, terms=[], dead=dead, documents=kept, dead_documents=gone)

        core.write(commit, self._scope)

    def document_ids(self, prefix: str = "") -> list[str]:
        """The ids of all documents of the scope, or of those that begin with ``prefix``, sorted.

        What the package keeps for itself (``$cormorant/…``) is left out, unless the prefix
        asks for it.
        """

        def work(snapshot: Snapshot) -> list[str]:
            if not self._scope:
                return snapshot.reader.document_ids(prefix)
            return [
                document.id
                for page in document_pages(snapshot, self._scope, prefix)
                for document in page
            ]

        found = self._core.read(self._scope, work)
        if prefix.startswith(OWN_DOCUMENTS):
            return found
        return [id for id in found if not id.startswith(OWN_DOCUMENTS)]

    def records(
        self, filter: FilterLike | None = None, *, with_vectors: bool = False, batch: int = 1000
    ) -> Iterator[Record]:
        """Every record that satisfies the filter, oldest first, from one snapshot.

        The snapshot is held while the iterator is alive: writes go on, but the space of
        what they replace is not given back until it is closed or exhausted.
        """
        check_whole("batch", batch, error=ConfigError)
        self._core.check_readable(self._scope)
        return self._iterate(
            lambda snapshot: record_pages(snapshot, filter, with_vectors=with_vectors, batch=batch)
        )

    def everything(self, *, batch: int = 1000) -> Iterator[tuple[bool, Record]]:
        """All records of the scope with their vectors, then all its documents, from one snapshot.

        Returns:
            (whether it is a document, the record or document). The snapshot is held as that
            of :meth:`records` is.
        """
        self._core.check_readable(self._scope)

        def pages(snapshot: Snapshot) -> Iterator[list[tuple[bool, Record]]]:
            for page in record_pages(snapshot, None, with_vectors=True, batch=batch):
                yield [(False, record) for record in page]
            for page in document_pages(snapshot, self._scope):
                yield [(True, document) for document in page]

        return self._iterate(pages)

    def _iterate(self, pages: Callable[[Snapshot], Iterator[list[T]]]) -> Iterator[T]:
        if self._core.storage.in_memory:
            # A snapshot in memory holds writers up, so none is held while the caller thinks.
            for page in self._core.read(self._scope, lambda snapshot: list(pages(snapshot))):
                yield from page
            return
        with self._core.pinned(self._scope) as snapshot:
            for page in pages(snapshot):
                yield from page

    def count(self, filter: FilterLike | None = None) -> int:
        """How many records satisfy the filter (all of the scope's, if None)."""

        def work(snapshot: Snapshot) -> int:
            return int(np.count_nonzero(searching.matching(snapshot, filter)))

        return self._core.read(self._scope, work)

    def search(self, query: Query) -> Result:
        """The best hits for a query, best first, and how each got there.

        Raises:
            QueryError: If it is no Query, or cannot be run on this store.
            DimensionError: If the query's vector does not fit.
            FilterError: On a filter that does not parse.
        """
        _check_query(query)
        return self._core.read(self._scope, lambda snapshot: searching.run(snapshot, query))

    def candidates(
        self, query: Query, *, fetch_k: int | None = None, with_vectors: bool = False
    ) -> searching.Candidates:
        """What each leg makes of a query's candidates, to be ranked under many settings.

        A search asks its legs and ranks once; this asks them once, and
        :meth:`~cormorant.search.Candidates.rank` gives the hits of as many searches as wanted.

        Args:
            query: What is asked; ``min_score`` is not applied.
            fetch_k: Candidates to ask each leg for; a search's own, if that is more.
            with_vectors: Keep the candidates' vectors, which MMR reads.

        Raises:
            QueryError: If it is no Query, or cannot be run on this store.
            DimensionError: If the query's vector does not fit.
            FilterError: On a filter that does not parse.

        Example:
            >>> import cormorant
            >>> from dataclasses import replace
            >>> store = cormorant.open(":memory:")
            >>> _ = store.add([{"id": "a", "text": "a fish"}, {"id": "b", "text": "fish, fish"}])
            >>> found = store.candidates(cormorant.Query(text="fish"))
            >>> [found.records[i].id for i in found.rank(found.settled, top_k=1)]
            ['b']
        """
        _check_query(query)
        return self._core.read(
            self._scope,
            lambda snapshot: searching.gather(
                snapshot, query, fetch_k=fetch_k, with_vectors=with_vectors
            ),
        )

    def explain(self, query: Query, id: str) -> Explanation:
        """Why is, or isn't, this record among the hits of this query?

        Raises:
            NotFound: If no record of the scope has this id.
        """
        _check_query(query)
        return misses.explain(self._core, self._scope, query, id)

    def why_not(
        self,
        query: Query,
        id: str | None = None,
        *,
        text: str | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> WhyNot:
        """Which stage lost a record, and the nearest change that would have kept it?

        The search is run again with each change before it is proposed, so this costs several
        searches.

        Args:
            query: As it was, or would be, searched.
            id: The record asked about.
            text: Instead of an id: the record's text, or a passage of it.
            scope: Searched inside it too, as through ``store.scope(**scope)``, while the record
                is looked up here: tells whether a tenant's scope is what hides it.

        Raises:
            QueryError: If neither or both of ``id`` and ``text`` are given, or the query is wrong.

        Example:
            >>> import cormorant
            >>> store = cormorant.open(":memory:")
            >>> _ = store.add({"id": f"{n}", "text": "fish " * n} for n in range(1, 9))
            >>> why = store.why_not(cormorant.Query(text="fish", top_k=3), "2")
            >>> why.cause, why.changes[0].query
            ('top_k', {'top_k': 7})
        """
        _check_query(query)
        return misses.why_not(self._core, self._scope, query, id=id, text=text, narrower=scope)


class ScopedStore(Door):
    """A view of a store that can neither read nor write outside its scope.

    Closing it closes nothing: the store it was made from stays open.
    """

    def close(self) -> None:
        """Nothing to do; the store itself is closed by whoever opened it."""

    def __repr__(self) -> str:
        return f"<cormorant.ScopedStore {self._scope}>"


def _check_query(query: object) -> None:
    if not isinstance(query, Query):
        raise QueryError(
            f"search and explain take a cormorant.Query; got {type(query).__name__}. "
            "For a question in words: Query(text=…)."
        )


def _sorted_rows(rows: Iterable[int]) -> NDArray[np.int64]:
    return np.sort(np.fromiter(rows, dtype=np.int64))
