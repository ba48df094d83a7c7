"""How do reads and writes meet?

One Core is shared by a Store and all its scoped views. A read takes an SQL snapshot
and brings the in-memory State to exactly that point of the log; a write commits a
log row and applies it through the same :meth:`State.apply`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from cormorant.analysis import analyzer_from_spec
from cormorant.errors import CorruptionError, ScopeError, StoreClosed, StoreError, UsageError
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex
from cormorant.store import indexing
from cormorant.store.config import StoreConfig
from cormorant.store.give_back import give_back
from cormorant.store.scope import Scope
from cormorant.store.snapshot import Snapshot, Vanished
from cormorant.store.state import State
from cormorant.store.upkeep import Upkeep

if TYPE_CHECKING:
    from cormorant.index.vector import Coded
    from cormorant.storage import Draft, NewDocument, Reader, Storage, Writer
    from cormorant.store.intake import Batch

__all__ = ["Core"]

T = TypeVar("T")

_TRIES: Final = 8


class Core:
    """The shared machinery under the doors; thread-safe.

    Args:
        storage: Open storage; closed with this object.
        config: The store's settings as this process uses them.
        pool_size: Threads of :attr:`executor`.
        background: Do what is due in a thread beside the callers; else only fold the log, in
            the call that made it long.

    Attributes:
        upkeep: What does so.
    """

    def __init__(
        self, storage: Storage, config: StoreConfig, *, pool_size: int, background: bool
    ) -> None:
        self.storage = storage
        self.background = background
        self.upkeep = Upkeep()
        self.hopeless_n = 0  # how many vectors there were when no codes could be found for them
        self.analyzer = analyzer_from_spec(config.analyzer or {})
        self._config = config
        self._config_raw: object = None
        self._pool_size = pool_size
        self._state: State | None = None
        self._seen = -1  # how many checkpoints there had been when codes were last looked for
        self._state_lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False

    @property
    def config(self) -> StoreConfig:
        """The settings as last seen in the store."""
        return self._config

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The store's own threads, for callers that must not block an event loop."""
        self._check_open()
        with self._state_lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    self._pool_size, thread_name_prefix="cormorant-store"
                )
            return self._executor

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, a store in a folder is its path: it is opened again where it arrives.

        Raises:
            UsageError: If it is in memory: its records would be left behind.
        """
        from cormorant.store.store import reopened  # it imports this module

        storage = self.storage
        if storage.path is None:
            raise UsageError(
                "A store in memory cannot be pickled: its records would be left behind. Keep it in "
                "a folder, which is opened again where the pickle arrives, or send the records."
            )
        options = {
            "read_only": storage.read_only,
            "lock_timeout_s": storage.lock_timeout_s,
            "pool_size": self._pool_size,
            "background": self.background,
        }
        return reopened, (str(storage.path), options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Core:
        """A copy of whatever asks this store asks the same open store."""
        return self

    def close(self) -> None:
        """Let running work end, then let go of files and threads. Idempotent."""
        self.upkeep.close()
        with self._state_lock:
            self._closed = True
            executor, self._executor = self._executor, None
            self._state = None
        if executor is not None:
            executor.shutdown(wait=True)
        self.storage.close()

    # Reading

    def read(self, scope: Scope, work: Callable[[Snapshot], T]) -> T:
        """Run ``work`` on one consistent snapshot.

        ``work`` may run again, if a write in this process overtook a snapshot that could
        not be isolated from it (a store in memory), so it must not have side effects.
        """
        return self._read(scope, work)

    def read_unscoped(self, work: Callable[[Snapshot], T]) -> T:
        """The same for maintenance, which sees every record whatever scope is required."""
        return self._read(None, work)

    def _read(self, scope: Scope | None, work: Callable[[Snapshot], T]) -> T:
        for _ in range(_TRIES):
            try:
                with self.pinned(scope) as snapshot:
                    return work(snapshot)
            except Vanished:
                # In memory a callable filter that writes is seen by its own search.
                continue
        raise StoreError(
            f"A search began {_TRIES} times, and each time records vanished under it. Does its "
            "filter callable change the store?"
        )

    @contextmanager
    def pinned(self, scope: Scope | None) -> Iterator[Snapshot]:
        """A snapshot, held for as long as the block runs; None: maintenance, not scoped."""
        self._check_open()
        while True:
            with self.storage.read() as reader:
                state = self._advance(reader)
                if state is not None:
                    yield self._snapshot(state, reader, scope)
                    return

    def _snapshot(self, state: State, reader: Reader, scope: Scope | None) -> Snapshot:
        config = self._read_config(reader)
        if scope is not None:
            # As the store says now, not as it said when this process opened it.
            scope.require(config.require_scope)
        return Snapshot(
            state,
            reader,
            config,
            self.analyzer,
            scope or Scope(),
            in_memory=self.storage.in_memory,
        )

    def _advance(self, reader: Reader) -> State | None:
        """The State at the reader's point of the log; None if memory is already past it."""
        head = reader.head
        state = self._state
        if (
            state is not None
            and state.lsn == head.lsn
            and state.generation == head.generation
            and self._seen >= head.files
        ):
            return state
        with self._state_lock:
            state = self._state
            if state is not None and (state.generation, state.lsn) > (head.generation, head.lsn):
                return None
            self._state = self._caught_up(state, reader)
            self._seen = max(self._seen, head.files)
            return self._state

    def _caught_up(self, state: State | None, reader: Reader) -> State:
        head = reader.head
        if state is not None and state.generation == head.generation:
            deltas = reader.deltas(state.lsn)
            if deltas is not None:
                for delta in deltas:
                    state = state.apply(delta)
                if head.files > self._seen:  # another process may have made codes
                    state = state.recoded(reader.checkpoint())
                return replace(state, lsn=head.lsn)
        return self._load(reader)

    def _load(self, reader: Reader) -> State:
        head = reader.head
        arrays = reader.checkpoint()
        if arrays:
            state = State.from_arrays(head.generation, head.checkpoint_lsn, arrays)
        else:
            state = State.empty(head.generation)
        deltas = reader.deltas(state.lsn)
        if deltas is None:
            where = str(self.storage.path or ":memory:")
            raise CorruptionError(
                f"{where} is damaged: changes since its derived files are missing. "
                "check(repair=True) rebuilds what is derived from the records.",
                where,
            )
        for delta in deltas:
            state = state.apply(delta)
        return replace(state, lsn=head.lsn)

    def _read_config(self, reader: Reader) -> StoreConfig:
        raw = reader.config
        if raw is not self._config_raw:
            self._config = StoreConfig.from_json(raw)
            self._config_raw = raw
        return self._config

    # Writing

    def write(self, work: Callable[[Writer, Snapshot], T], scope: Scope) -> T:
        """Run ``work`` as the only writer, on the newest state."""
        self.check_writable(scope)
        return self._write(scope, work)

    def write_unscoped(self, work: Callable[[Writer, Snapshot], T]) -> T:
        """The same for settings, which belong to no scope."""
        self.check_writable(None)
        return self._write(None, work)

    def maintain(self, work: Callable[[Writer], T]) -> T:
        """Run ``work`` as the only writer, without a State: what memory holds may be damaged."""
        self.check_writable(None)
        with self.storage.write() as writer:
            return work(writer)

    def _write(self, scope: Scope | None, work: Callable[[Writer, Snapshot], T]) -> T:
        with self.storage.write() as writer:
            done = work(writer, self._snapshot(self._newest(writer), writer, scope))
            head, state = writer.head, self._state
        if state is not None and indexing.is_due(self, state, head):
            if self.background:
                self.upkeep.wake(partial(indexing.tend, self))
            else:
                indexing.fold(self)
        return done

    def _newest(self, writer: Writer) -> State:
        state = self._advance(writer)
        if state is None:
            raise StoreError(
                "Memory is ahead of the store under the writer's lock, which only another writer "
                "without the lock explains. Open the store again."
            )
        return state

    def forget(self) -> None:
        """Drop what memory holds; the next read loads it from the store."""
        with self._state_lock:
            self._state = None

    def remap(self) -> None:
        """Let memory hold what lies in files: the newest checkpoint in place of what was built.

        Left undone if writes overtake it again and again; the next checkpoint does it.
        """
        with self.storage.read() as reader:
            mapped = self._load(reader)
        for _ in range(_TRIES):
            with self.storage.read() as reader, self._state_lock:
                state = self._state
                if state is None or state.generation != reader.head.generation:
                    break
                if state.lsn <= reader.head.lsn and mapped.generation == state.generation:
                    self._state = self._caught_up(mapped, reader)
                    break
        give_back()

    def adopt(self, draft: Draft, coded: Coded | None) -> bool:
        """Let a checkpoint be the store's, and search with the codes it holds from now on.

        Returns:
            False, and nothing changed, if a later checkpoint or another generation is there.
        """
        self.check_writable(None)
        with self.storage.write() as writer:
            if not writer.adopt(draft):
                return False
            with self._state_lock:
                state = self._state
                if state is not None and state.generation == draft.origin.generation:
                    self._state = replace(state, coded=coded)
                    self._seen = writer.head.files
            return True

    def commit(
        self,
        writer: Writer,
        batch: Batch | None,
        *,
        terms: list[list[str]],
        dead: NDArray[np.int64],
        config: StoreConfig | None = None,
        documents: Sequence[NewDocument] = (),
        dead_documents: Sequence[str] = (),
    ) -> None:
        """Commit one transaction and make it visible in this process."""
        metadatas = batch.metadatas if batch else []
        delta = writer.commit(
            records=batch.records if batch else [],
            vectors=batch.vectors if batch else None,
            has_vector=batch.has_vector if batch else np.empty(0, np.bool_),
            dead_rows=dead,
            postings=TextIndex.encode(terms) if batch else b"",
            columns=Columns.encode(metadatas) if batch else b"",
            config=config.to_json() if config else None,
            documents=documents,
            dead_documents=dead_documents,
        )
        with self._state_lock:
            state = self._state
            # A reader may have seen the commit, and applied it, before this line.
            if state is not None and state.lsn == delta.lsn - 1:
                self._state = state.apply(delta)
        if config is not None:
            self._config = config

    # Guards

    def check_writable(self, scope: Scope | None) -> None:
        """Refuse early, before any work is done for a write; None: maintenance, not scoped."""
        self._check_open()
        if scope is not None:
            scope.require(self._config.require_scope)
        if self.storage.read_only:
            raise StoreError(
                "The store is open read-only, so nothing can be written. Open it without "
                "read_only=True, in a folder that this user may write."
            )

    def check_readable(self, scope: Scope) -> None:
        """Refuse at the call what an iterator would refuse only at its first step."""
        self._check_open()
        scope.require(self._config.require_scope)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("The store is closed. Open it again with cormorant.open(…).")

    def refuse_foreign_documents(self, scope: Scope, reader: Reader, ids: Sequence[str]) -> None:
        """Refuse to replace documents outside the scope.

        Raises:
            ScopeError: If one of ``ids`` is a document that is not the scope's own.
        """
        if not scope:
            return
        for document in reader.documents(ids).values():
            if not scope.admits(document.metadata):
                raise ScopeError(
                    f"The document id {document.id!r} is taken outside the scope {scope}. "
                    "Use ids that are unique across scopes, such as 'acme:…'."
                )

    def refuse_foreign(self, scope: Scope, snapshot: Snapshot, rows: NDArray[np.int64]) -> None:
        """Refuse to replace records outside the scope.

        Raises:
            ScopeError: If one of ``rows`` is not the scope's own.
        """
        if not scope or not len(rows):
            return
        for record in snapshot.fetch(snapshot.state.slots_of(rows)):
            if not scope.admits(record.metadata):
                raise ScopeError(
                    f"The id {record.id!r} is taken outside the scope {scope}. "
                    "Use ids that are unique across scopes, such as 'acme:…'."
                )
