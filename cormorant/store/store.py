"""The one door: open a store, and look after it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Self

from cormorant import defaults
from cormorant.analysis import analyzer_for
from cormorant.errors import ConfigError
from cormorant.storage import MEMORY, Storage
from cormorant.store import indexing, learning, maintenance, settings
from cormorant.store import recall as recalling
from cormorant.store.config import StoreConfig
from cormorant.store.core import Core
from cormorant.store.door import Door
from cormorant.store.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from cormorant.index.vector import IndexKind, Progress
    from cormorant.model import FilterLike, Metric, VectorLike
    from cormorant.search import Calibration, Embed, RankingConfig, Trust
    from cormorant.store.fingerprint import Fingerprint
    from cormorant.store.indexing import OptimizeReport
    from cormorant.store.maintenance import CheckReport, CompactReport, Stats
    from cormorant.store.recall import RecallReport

__all__ = ["Store", "open"]


class Store(Door):
    """Documents, vectors, BM25 postings and metadata in one durable folder.

    Made by :func:`cormorant.open`. Thread-safe. Many processes may read one folder
    while one at a time writes. A context manager.
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        dim: int | None = None,
        metric: Metric | None = None,
        language: str | None = None,
        bm25_k1: float | None = None,
        bm25_b: float | None = None,
        require_scope: Sequence[str] | None = None,
        embedder: str | None = None,
        create: bool = True,
        read_only: bool = False,
        pool_size: int = defaults.POOL_SIZE,
        lock_timeout_s: float = defaults.LOCK_TIMEOUT_S,
        background: bool = True,
    ) -> Self:
        """Open a store, or make one.

        Args:
            path: A folder, or ``":memory:"`` for a store that touches no file.
            dim: Numbers per vector; None takes the store's, or the first vector's.
            metric: ``cosine`` (the default), ``dot`` or ``euclidean``. Fixed once made.
            language: Whose stems and stop words the text leg uses, ``english`` by default;
                Chinese and identifiers are handled whatever the language. Fixed once made.
            bm25_k1: Weight of repeated terms, Lucene's 1.2 by default.
            bm25_b: Weight of length, Lucene's .75 by default.
            require_scope: Fields that every call must be scoped by.
            embedder: Specification of the embedder to remember.
            create: Make the store if the folder is missing or empty.
            read_only: Refuse writes; works on a read-only folder.
            pool_size: Threads for async searches, at least 1.
            lock_timeout_s: How long a write waits for another writer, in seconds.
            background: After writes, see to what became due in one thread beside the callers:
                codes for many new vectors, and folding the log. Without it codes come by
                :meth:`optimize` alone, and the call that made the log long folds it.

        Raises:
            ConfigError: If a setting is out of range or differs from the store's.
            FormatError: If the folder is something else, or of a newer format.
            NotFound: If there is no store and ``create`` is False.
            CorruptionError: If the store is damaged.

        Example:
            >>> import cormorant
            >>> with cormorant.open(":memory:", dim=2) as store:
            ...     _ = store.add([{"id": "a", "text": "a fish", "vector": [1, 0]}])
            ...     [hit.id for hit in store.search(cormorant.Query(text="fish"))]
            ['a']
        """
        if isinstance(require_scope, str) or not isinstance(require_scope, (Iterable, NoneType)):
            raise ConfigError(f"require_scope takes a list of field names; got {require_scope!r}.")
        if not isinstance(embedder, (str, NoneType)):
            raise ConfigError(
                f"embedder takes a specification such as 'local'; got {type(embedder).__name__}. "
                "An Embeddings object goes to cormorant.langchain.Cormorant."
            )
        for name, flag in (
            ("create", create),
            ("read_only", read_only),
            ("background", background),
        ):
            if not isinstance(flag, bool):
                raise ConfigError(f"{name} must be True or False; got {flag!r}.")
        _check_path(path)
        if isinstance(pool_size, bool) or not isinstance(pool_size, int) or pool_size < 1:
            raise ConfigError(f"pool_size must be a whole number of at least 1; got {pool_size!r}.")
        asked: dict[str, Any] = {
            "dim": dim,
            "metric": metric,
            "analyzer": None if language is None else dict(analyzer_for(language).spec),
            "bm25_k1": bm25_k1,
            "bm25_b": bm25_b,
            "require_scope": None if require_scope is None else tuple(require_scope),
        }
        given = {name: value for name, value in asked.items() if value is not None}
        fresh = StoreConfig(**{"analyzer": dict(analyzer_for("english").spec), **given})
        storage = Storage.open(
            path if str(path) == MEMORY else Path(path),
            config=fresh.to_json(),
            create=create,
            read_only=read_only,
            lock_timeout_s=lock_timeout_s,
        )
        try:
            with storage.read() as reader:
                config = StoreConfig.from_json(reader.config)
            config.reconcile(asked)
            core = Core(storage, config, pool_size=pool_size, background=background)
            if dim is not None and config.dim is None:
                settings.set_dim(core, dim)
            if require_scope is not None and set(require_scope) - set(config.require_scope):
                settings.add_requirement(core, require_scope)
            store = cls(core, Scope())
            if embedder is not None and embedder != config.embedder:
                store.set_embedder(embedder)
        except BaseException:
            storage.close()
            raise
        return store

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._core.storage.read_only

    def set_embedder(self, spec: str | None, fingerprint: Fingerprint | None = None) -> None:
        """Remember which embedder the vectors are made with.

        Args:
            spec: Its specification, as the command line takes it; None forgets it.
            fingerprint: Its probe vectors.

        Raises:
            EmbeddingMismatch: If the store has vectors of another one.
            ConfigError: If the store has vectors and another specification comes without a
                fingerprint that shows it means the same embedder.
        """
        settings.remember_embedder(self._core, spec, fingerprint, respecify=True)

    def set_ranking(self, ranking: RankingConfig | None) -> None:
        """Rank hybrid queries so that do not say how; kept in the store.

        Args:
            ranking: What is left None in it stays as learned, or as by default. None unsets
                all of it.

        Raises:
            ConfigError: If it is no RankingConfig, or its evidence cannot be kept as JSON.

        Example:
            >>> import cormorant
            >>> from cormorant.store import RankingConfig
            >>> store = cormorant.open(":memory:")
            >>> store.set_ranking(RankingConfig(weights={"vector": 0.7, "text": 0.3}))
            >>> dict(store.ranking.weights)
            {'vector': 0.7, 'text': 0.3}
        """
        settings.set_ranking(self._core, ranking)

    def set_calibration(self, calibration: Calibration | None) -> None:
        """Make relevances, which thresholds are compared with, probabilities; kept in the store.

        Args:
            calibration: What ``cormorant.evaluate.calibrate`` made; None drops the one there
                is, and relevances are again what the indexes report.

        Raises:
            ConfigError: If it is no Calibration, or was made with another embedder's vectors.
        """
        settings.set_calibration(self._core, calibration)

    def learn_trust(self, embedder: Any = None) -> Trust:
        """Learn from the stored texts and vectors how far each leg is to be trusted.

        Needs no model and no judgements. Hybrid queries by ``z`` whose weights nobody said,
        neither in the query nor with :meth:`set_ranking`, are weighed by it; see
        ``docs/trust.md``. Takes some seconds at most, and is done by :meth:`optimize` too.

        Args:
            embedder: As questions are embedded: a function from text to vector, or an object
                with ``embed_query``. Asked at most 96 short questions, made from the records'
                own words. Where their vectors find nothing, the vector leg counts for nothing.
                None: what was found before, by an embedder with the same fingerprint.

        Returns:
            What was learned, as it is kept in the store.

        Raises:
            ConfigError: If ``embedder`` is neither.
            DimensionError: If its vectors do not fit the store.
        """
        return learning.learn_trust(self._core, _question_embedder(embedder))

    def forget_trust(self) -> None:
        """Weigh the legs alike again, until they are learned anew."""
        settings.set_trust(self._core, None)

    def stats(self) -> Stats:
        """How much is in the store, and where its bytes are."""
        return maintenance.stats(self._core)

    def check(self, *, repair: bool = False) -> CheckReport:
        """Look for damage in everything the store holds.

        Args:
            repair: Rebuild what is derived (postings, columns) from the records.

        Returns:
            A report; ``report.ok`` is True if nothing is damaged (any more).
        """
        return maintenance.check(self._core, repair=repair)

    def compact(self) -> CompactReport:
        """Make the bytes of deleted and replaced records go, from every file.

        Readers and writers go on meanwhile. Changes no score and no id.
        """
        return maintenance.compact(self._core)

    def optimize(
        self,
        *,
        recall: float | None = None,
        index: IndexKind | None = None,
        lists: int | None = None,
        embedder: Any = None,
        progress: Progress | None = None,
    ) -> OptimizeReport:
        """Make searches and the next open quick.

        Gives the vectors codes to scan in place of themselves, once there are
        ``defaults.INDEX_MIN_ROWS`` of them, and folds the log into derived files. Works on a
        snapshot: readers and writers go on. What is added later is found at once, because it is
        scanned as it is, until it gets codes in the background or by the next call. Learns anew
        how far each leg is to be trusted, if records came since: see :meth:`learn_trust`.

        What is chosen here is kept in the store and holds in the background too; what is None
        stays as it is.

        Args:
            recall: Part of the true 10 nearest that a search should find, above 0 and below 1;
                ``defaults.RECALL_TARGET`` until chosen. How much work a search does follows
                from it, as measured on the vectors themselves.
            index: ``pq``, the default: codes, compared exactly where they are near. ``exact``:
                no index, and the codes there are go.
            lists: Into how many lists codes are sorted, of which a search looks into some; 1
                until chosen, which serves filters best. See ``docs/scale.md``.
            embedder: As :meth:`learn_trust` takes it; asked once, and again if records came.
            progress: Called with what is being done and what part of it is done, from 0 to 1.

        Returns:
            What was done, and the recall that was measured.

        Raises:
            ConfigError: If a value is out of range.
        """
        asked: dict[str, Any] = {"recall": recall, "kind": index, "lists": lists}
        given = {name: value for name, value in asked.items() if value is not None}
        choice = replace(self.config.index, **given) if given else None
        embed = _question_embedder(embedder)
        return indexing.optimize(self._core, choice=choice, embed=embed, progress=progress)

    def recall_check(
        self,
        queries: Iterable[VectorLike] | None = None,
        *,
        k: int = 10,
        filter: FilterLike | None = None,
    ) -> RecallReport:
        """How many of the true nearest do searches find, now?

        Asks the index and the exact scan the same, on one snapshot. What was found without a
        filter is kept in the store and shown by :meth:`stats`. Says so if the newest vectors
        are found worse than others, or lists have become uneven; :meth:`optimize` then learns
        the index anew.

        Args:
            queries: Vectors, best of real questions; None: points half way between two
                stored vectors, which the recall of real questions follows.
            k: Hits wanted of each.
            filter: Ask among the records that satisfy it alone.

        Raises:
            QueryError: If no record has a vector, or none that satisfies the filter.
            ConfigError: If ``k`` is below 1, or there are no queries.
            DimensionError: If a query's vector does not fit.
        """
        return recalling.recall_check(self._core, queries, k=k, filter=filter)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Let the work that is due in the background end.

        Args:
            timeout_s: How long to wait; None: as long as it takes.

        Returns:
            False if it still runs.
        """
        return self._core.upkeep.wait(timeout_s)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy one consistent snapshot to a new folder, while reads and writes go on.

        Raises:
            FormatError: If the folder exists and is not empty.
        """
        maintenance.backup(self._core, Path(path))

    def close(self) -> None:
        """Let running searches end, then let go of files and threads. Idempotent.

        Work in the background is stopped at the next place where it can be; :meth:`wait` first
        to have it done.
        """
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cormorant.Store {self.path or ':memory:'}>"


def reopened(path: str, options: dict[str, Any]) -> Core:
    """What is under a store in a folder, opened again: see :meth:`Core.__reduce__`."""
    return Store.open(path, create=False, **options)._core  # noqa: SLF001 - its own


def _check_path(path: object) -> None:
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"path takes a folder or {MEMORY!r}; got {type(path).__name__}.")
    text = os.fsdecode(path)
    if not text.strip():
        raise ConfigError(
            f"The path is empty; give a folder, {MEMORY!r}, or '.' for the current one."
        )
    scheme, separator, _ = text.partition("://")
    if separator and scheme.isalnum():
        raise ConfigError(
            f"No backend is known for {scheme}://. Give a folder, or {MEMORY!r} for a store that "
            "touches no file."
        )


open = Store.open
"""The same as :meth:`Store.open`."""


def _question_embedder(embedder: Any) -> Embed | None:
    embed: Embed | None = getattr(embedder, "embed_query", embedder)
    if embed is None or callable(embed):
        return embed
    raise ConfigError(
        "embedder takes a function from text to vector, or an object with embed_query; "
        f"got {type(embedder).__name__}."
    )
