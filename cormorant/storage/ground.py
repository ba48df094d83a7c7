"""What do snapshots and writes stand on? Connections, locks, pins; and what does a failure do?"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cormorant import defaults
from cormorant.errors import StoreClosed, StoreError, StoreLocked
from cormorant.storage import files, lock, opening, process, sql
from cormorant.storage.folder import Folder
from cormorant.storage.head import read_head, write_head
from cormorant.storage.memory import Memory, SharedConnection
from cormorant.storage.pool import Pool
from cormorant.storage.types import Head

if TYPE_CHECKING:
    from cormorant.storage.generation import NewGeneration
    from cormorant.storage.vault import Connections, Pin, Vault

__all__ = ["MEMORY", "Ground"]

MEMORY: Final = ":memory:"
_CUT_WAIT_MS: Final = 200  # for readers to end, before `pending_readers` is reported
_LOG_BYTES: Final = 16 * 1024 * 1024  # SQLite's log is moved into its file beyond this


class Ground:
    """One open store's machinery; thread-safe.

    Attributes:
        path: The folder; None in memory.
        sqlite_path: SQLite's file; None in memory.
        where: A name for messages.
        read_only: Whether writes are refused.
        vault: Where vectors and derived arrays lie.
        connections: SQLite connections for reads and writes.
    """

    def __init__(
        self,
        folder: Path | None,
        opened: opening.Opened,
        config: Mapping[str, Any] | None,
        lock_timeout_s: float,
    ) -> None:
        self.path = folder
        self.sqlite_path = None if folder is None else folder / opening.DATABASE
        self.where = str(self.sqlite_path or MEMORY)
        self._log = None if folder is None else folder / f"{opening.DATABASE}-wal"
        self.read_only = opened.read_only
        self.lock_timeout_s = lock_timeout_s
        self._pid = os.getpid()
        self._closed = False
        self._poison: str | None = None
        self._cut_pending = False
        self._settled = -1
        self._file: process.FileId | None = None
        self._sides: dict[Path, process.FileId] = {}  # SQLite's log and index, once settled
        self._turn = threading.Lock()
        self._turn_of = 0
        self._head: Head | None = None
        self._pin: Pin | None = None
        self._settings: tuple[tuple[int, int | None], Mapping[str, Any]] | None = None
        self._building: weakref.WeakSet[NewGeneration] = weakref.WeakSet()
        self._lock: lock.FileLock | None = None
        self.vault: Vault
        self.connections: Connections
        if folder is None:
            shared = SharedConnection()
            opening.first_settings(shared.acquire_writer(), None, config)
            self.connections, self.vault = shared, Memory()
        else:
            pool = Pool(folder / opening.DATABASE, immutable=opened.immutable)
            self.connections, self._file = pool, pool.file
            self.vault = Folder(folder)
            self._lock = lock.FileLock(folder / opening.LOCK)
        weakref.finalize(self, _let_go, self._pid, self.connections, self.vault)

    @property
    def is_forked(self) -> bool:
        """Is this the child of the process that opened the store?"""
        return self._pid != os.getpid()

    def check_file(self) -> None:
        """Refuse a file that is not a store's.

        Raises:
            FormatError: If it is not ours, or of another format.
            CorruptionError: If it is damaged.
        """
        connection = self.connections.acquire()
        try:
            if self.sqlite_path is not None:
                sql.check_schema(connection, self.sqlite_path)
            self._head = read_head(connection, self.sqlite_path, None)
        finally:
            self.connections.release(connection, threading.get_ident())

    def close(self) -> None:
        """Let go of all files, as soon as open snapshots end. Idempotent."""
        self._closed = True
        if self.is_forked:
            return
        self._pin = None
        # A write that runs in another thread ends first; one of this thread ends later.
        mine = self._turn_of == threading.get_ident()
        with contextlib.nullcontext() if mine else self._turn:
            self.connections.close()
            self.vault.release()

    def begin_read(self, *, checking: bool = True) -> tuple[sqlite3.Connection, Head, Pin]:
        """A snapshot: its connection, head and open files."""
        self._check_open()
        absent: tuple[int, str | None] | None = None
        while True:
            connection = self.connections.acquire()
            try:
                self.connections.begin(connection)
                head = read_head(connection, self.sqlite_path, self._head)
                pin = self.pinned_for(head)
                if checking:
                    pin.check_lengths()
            except BaseException:
                self.connections.release(connection, threading.get_ident())
                raise
            named = head.generation, head.checkpoint_name
            if not pin.missing or absent == named:
                self._head = head
                return connection, head, pin
            # A compaction may have removed files between the snapshot and their opening. If
            # the next head names the same ones they are lost, which is said on their use.
            absent = named
            self.connections.release(connection, threading.get_ident())

    def end_read(self, connection: sqlite3.Connection, owner: int) -> None:
        """The snapshot that thread ``owner`` began is over."""
        try:
            self.connections.end(connection)
        finally:
            self.connections.release(connection, owner)

    def begin_write(self) -> tuple[sqlite3.Connection, Head, Pin]:
        """The only writer's connection, head and open files; waits for the lock."""
        self.check_writable()
        self._take_turn()
        try:
            connection = self.connections.acquire_writer()
            try:
                self.check_place()  # again: now nobody else writes
                with self.poisoning("prepare to write"):
                    if self._settled != self.connections.era:
                        self._settle_log(connection)
                    for path, file in self._sides.items():
                        process.check_place(path, file)
                    head = read_head(connection, self.sqlite_path, self._head)
                    self.vault.prepare(head)
                pin = self.pinned_for(head)
                pin.check_lengths()
            except BaseException:
                self.connections.release_writer(connection)
                raise
        except BaseException:
            self._end_turn()
            raise
        return connection, head, pin

    def end_write(self, connection: sqlite3.Connection) -> None:
        """Let go of the lock."""
        try:
            if not self.is_forked:
                self._move_log(connection)
        finally:
            self.connections.release_writer(connection)
            self._end_turn()

    def pinned_for(self, head: Head) -> Pin:
        """Open what the head names, or share what is open."""
        pin = self._pin
        if pin is None or not pin.matches(head):
            self.check_place()  # another store's files have the same names
            pin = self.vault.pin(head)
            if not pin.missing:
                self._pin = pin
        return pin

    def settings(self, head: Head, load: Callable[[], dict[str, Any]]) -> Mapping[str, Any]:
        """The configuration as of ``head``, loaded if it changed."""
        key = (head.config_lsn, head.dim)
        known = self._settings
        if known is None or known[0] != key:
            known = key, MappingProxyType({**load(), "dim": head.dim})
            self._settings = known
        return known[1]

    def hold(self, new: NewGeneration) -> None:
        """Keep the log that a compaction needs."""
        self._building.add(new)

    def let_go(self, new: NewGeneration) -> None:
        """A compaction ended."""
        self._building.discard(new)

    def held_lsns(self) -> list[int]:
        """Log rows after these are needed by compactions under way."""
        return [new.origin.lsn for new in list(self._building)]

    @contextlib.contextmanager
    def poisoning(self, doing: str) -> Iterator[None]:
        """A failure in here makes further writes impossible until the store is opened again."""
        try:
            yield
        except StoreLocked:
            raise
        except StoreError as exc:
            self._poison = str(exc)
            raise
        except sqlite3.Error as exc:
            error = sql.sql_error(exc, self.sqlite_path, doing)
            if not sql.is_transient(exc):
                self._poison = str(error)
            raise error from exc
        except OSError as exc:
            error = files.io_error(exc, exc.filename or self.where, doing)
            self._poison = str(error)
            raise error from exc

    @contextlib.contextmanager
    def committing(self, connection: sqlite3.Connection) -> Iterator[None]:
        """One transaction; a failure rolls it back."""
        with self.connections.alone(self.lock_timeout_s):
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield
                connection.execute("COMMIT")
            except BaseException as exc:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if not isinstance(exc, sqlite3.Error):
                    raise
                raise self._failed(connection, exc) from exc

    def reclaim(self, connection: sqlite3.Connection, head: Head) -> tuple[bool, list[str]]:
        """Make deleted bytes go.

        Returns:
            Whether a reader keeps old bytes, and files that could not be removed.
        """
        pending = False
        with self.poisoning("reclaim space"):
            with self.connections.alone(self.lock_timeout_s):
                connection.execute("VACUUM")
            if self.path is not None:
                pending = self._cut_pending = self._cut_log(connection, wait_ms=_CUT_WAIT_MS)
            return pending, self.vault.remove_unnamed(head)

    def check_process(self) -> None:
        """Refuse to go on in a forked child.

        Raises:
            StoreClosed: If this is one.
        """
        process.check_process(self._pid, self.path or MEMORY)

    def check_place(self) -> None:
        """Refuse to go on if SQLite's file was moved, removed or replaced.

        Raises:
            StoreError: If so.
        """
        if self.sqlite_path is not None and self._file is not None:
            process.check_place(self.sqlite_path, self._file)

    def check_writable(self) -> None:
        """Refuse early what a write would refuse."""
        self._check_open()
        self.check_place()
        if self.read_only:
            raise StoreError(
                f"{self.path} is open read-only, so nothing can be written. Open it without "
                "read_only=True, in a folder that this user may write."
            )
        if self._poison is not None:
            raise StoreError(
                f"{self.path or MEMORY} takes no more writes, because one failed: {self._poison} "
                "What was acknowledged is intact. Close the store and open it again."
            )

    # Inside

    def _failed(self, connection: sqlite3.Connection, exc: sqlite3.Error) -> StoreError:
        """What to raise for a transaction that SQLite could not make; undoes it in the log.

        A COMMIT whose sync failed lies whole in SQLite's log: after a crash it would come
        back, though the caller is told that it was not stored. So another change, of
        a counter that nobody misses, is put in its place.
        """
        if sql.is_transient(exc):
            return sql.sql_error(exc, self.sqlite_path, "write")
        stored = "Nothing of this call was stored."
        try:
            connection.execute("BEGIN IMMEDIATE")
            head = read_head(connection, self.sqlite_path, self._head)
            write_head(connection, head._replace(files=head.files + 1))
            connection.execute("COMMIT")
        except (sqlite3.Error, StoreError):
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            stored = "Once the store is opened again, all of this call is stored or nothing of it."
        error = sql.sql_error(exc, self.sqlite_path, "write", stored)
        self._poison = str(error)
        return error

    def _settle_log(self, connection: sqlite3.Connection) -> None:
        """Before the first write: make durable SQLite's log, its name, and what it holds already.

        SQLite does not say when the sync of the log's name fails. And if an earlier process's
        sync failed, the system may call pages of the log clean that never reached the disk:
        they can be read, and a sync passes, but a power loss takes them, and with them
        every commit that follows in the log. Only writing them again helps.
        """
        if self.path is None or self._log is None:
            return
        era = self.connections.era
        connection.execute("BEGIN IMMEDIATE")  # so that not even a foreign program writes there
        try:
            files.rewrite(self._log)
            files.sync_folder(self.path)
            # They stay while a connection is open: SQLite removes them with the last one.
            for side in (self._log, self._log.with_name(f"{opening.DATABASE}-shm")):
                self._sides[side] = process.file_id(side)
        finally:
            connection.execute("ROLLBACK")
        self._settled = era

    def _check_open(self) -> None:
        self.check_process()
        if self._closed:
            raise StoreClosed(f"The store {self.path or MEMORY} is closed. Open it again.")

    def _take_turn(self) -> None:
        me = threading.get_ident()
        if self._turn_of == me:
            raise StoreError("This thread is writing already; end that `with` block first.")
        deadline = time.monotonic() + self.lock_timeout_s
        if not self._turn.acquire(timeout=self.lock_timeout_s):
            raise lock.locked(self.path or Path(MEMORY), os.getpid(), self.lock_timeout_s)
        self._turn_of = me
        try:
            if self._lock is not None:
                self._lock.acquire(self.lock_timeout_s, deadline)
        except BaseException:
            self._turn_of = 0
            self._turn.release()
            raise

    def _end_turn(self) -> None:
        try:
            if self._lock is not None and not self.is_forked:
                self._lock.release()
        finally:
            self._turn_of = 0
            self._turn.release()

    def _move_log(self, connection: sqlite3.Connection) -> None:
        """Move SQLite's log into its file once it is big; never waits for readers."""
        if self._log is None:
            return
        try:
            if self._cut_pending:
                self._cut_pending = self._cut_log(connection, wait_ms=0)
            elif self._log.stat().st_size >= _LOG_BYTES:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except OSError:
            return  # its size is not known: the next write looks again
        except sqlite3.Error as exc:
            # What was committed is safe in the log: the call that brought it here succeeded.
            self._poison = str(sql.sql_error(exc, self.sqlite_path, "move the log of"))

    @staticmethod
    def _cut_log(connection: sqlite3.Connection, *, wait_ms: int) -> bool:
        """Move SQLite's log into its file and cut it; True if a reader keeps it in use."""
        connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
        try:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(defaults.BUSY_TIMEOUT_S * 1000)}")
        return bool(busy)


def _let_go(pid: int, connections: Connections, vault: Vault) -> None:
    """For a store that was dropped without being closed."""
    if pid == os.getpid():
        connections.close()
        vault.release()
