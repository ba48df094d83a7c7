"""Which bytes are durable? The one object through which a store's files are touched."""

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

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import CorruptionError, NotFound, StoreClosed, StoreError
from cormorant.storage import lock, opening, process, sql
from cormorant.storage.folder import Folder
from cormorant.storage.generation import NewGeneration
from cormorant.storage.memory import Memory, SharedConnection
from cormorant.storage.pool import Pool
from cormorant.storage.reader import Reader, read_head
from cormorant.storage.types import Head, Reclaimed
from cormorant.storage.writer import Writer

if TYPE_CHECKING:
    from cormorant.storage.ranges import Range
    from cormorant.storage.vault import Pin, Vault

__all__ = ["MEMORY", "Storage"]

MEMORY: Final = ":memory:"
_CUT_WAIT_MS: Final = 200  # for readers to end, before `pending_readers` is reported
_LOG_BYTES: Final = 16 * 1024 * 1024  # SQLite's log is moved into its file beyond this


class Storage:
    """A store's files, open; thread-safe. Made by :meth:`open`.

    Attributes:
        path: The folder; None in memory.
        sqlite_path: SQLite's file; None in memory.
        in_memory: Whether no file is touched.
        read_only: Whether :meth:`write` refuses.
        created: Whether opening made the store.
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        config: Mapping[str, Any] | None = None,
        create: bool = True,
        read_only: bool = False,
        lock_timeout_s: float = defaults.LOCK_TIMEOUT_S,
    ) -> Storage:
        """Open a folder, or make a store there.

        Args:
            path: A folder, or ``":memory:"``.
            config: Settings of a new store, JSON values by name; ``dim`` may be None. Not
                looked at if there is a store already.
            create: Make a store if the folder is missing or empty.
            read_only: Refuse writes. A folder that cannot be written is always so.
            lock_timeout_s: How long :meth:`write` waits for another writer.

        Raises:
            NotFound: If there is no store and none may be made.
            FormatError: If the folder is something else, or of a format not supported.
            StoreError: If it cannot be opened.
        """
        if str(path) == MEMORY:
            if read_only or not create:
                raise NotFound("A store in memory is always new: it needs create=True.")
            made = opening.Opened(created=True, read_only=False, immutable=False)
            return cls(None, made, config, lock_timeout_s)
        folder = Path(path)
        found = opening.prepare(
            folder, config=config, create=create, read_only=read_only, timeout_s=lock_timeout_s
        )
        return cls(folder, found, config, lock_timeout_s)

    def __init__(
        self,
        folder: Path | None,
        opened: opening.Opened,
        config: Mapping[str, Any] | None,
        lock_timeout_s: float,
    ) -> None:
        self.path = folder
        self.sqlite_path = None if folder is None else folder / opening.DATABASE
        self.in_memory = folder is None
        self.read_only = opened.read_only
        self.created = opened.created
        self.lock_timeout_s = lock_timeout_s
        self._pid = os.getpid()
        self._closed = False
        self._poison: str | None = None
        self._turn = threading.Lock()
        self._turn_of = 0
        self._head: Head | None = None
        self._pin: Pin | None = None
        self._settings: tuple[tuple[int, int | None], Mapping[str, Any]] | None = None
        self._building: set[NewGeneration] = set()
        self._vault: Vault
        self._connections: Pool | SharedConnection
        self._lock: lock.FileLock | None = None
        if folder is None:
            self._connections = SharedConnection()
            self._vault = Memory()
            opening.first_settings(self._connections.writer(), config)
        else:
            self._connections = Pool(folder / opening.DATABASE, immutable=opened.immutable)
            self._vault = Folder(folder)
            self._lock = lock.FileLock(folder / opening.LOCK)
        weakref.finalize(self, self._connections.close)
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def read(self) -> Reader:
        """One consistent snapshot, for a ``with`` block."""
        return Reader(self)

    def write(self) -> Writer:
        """The only writer, for a ``with`` block.

        Entering raises StoreLocked (with the holder's pid) if the lock does not come free
        within ``lock_timeout_s``, and StoreError if the store is read-only or a write failed before.
        """
        return Writer(self)

    def new_generation(self, reader: Reader, keep: NDArray[np.int64]) -> NewGeneration:
        """Copy the slots ``keep`` (ascending) of a snapshot into a new generation, without the lock.

        Then ``seal`` it with derived arrays and ``Writer.switch_generation`` to it.
        """
        self._check_writable()
        new = NewGeneration(
            self._vault,
            reader.head,
            reader.slot_map(),
            reader.vectors(),
            keep,
            on_close=self._building.discard,
        )
        self._building.add(new)
        return new

    def size_bytes(self) -> int:
        """Size of all files; in memory, of the vectors."""
        return self._vault.total_bytes()

    def close(self) -> None:
        """Let go of all files. Snapshots that are open stay valid until their end. Idempotent."""
        self._closed = True
        if self._pid != os.getpid():
            return
        self._connections.close()
        self._pin = None
        with self._turn:
            self._vault.release()

    # For Reader and Writer

    def _begin_read(self) -> tuple[sqlite3.Connection, Head, Pin]:
        self._check_open()
        absent: Head | None = None
        while True:
            connection = self._connections.acquire()
            try:
                self._connections.begin(connection)
                head = read_head(connection, self.sqlite_path, self._head)
                pin = self._pinned_for(head)
            except BaseException:
                self._connections.release(connection, threading.get_ident())
                raise
            same = absent is not None and absent[1:] == head[1:]
            if not pin.missing or same:
                self._head = head
                return connection, head, pin
            # A compaction may have removed files between the snapshot and their opening.
            absent = head
            self._connections.release(connection, threading.get_ident())

    def _end_read(self, connection: sqlite3.Connection, owner: int) -> None:
        self._connections.end(connection)
        self._connections.release(connection, owner)

    def _begin_write(self) -> tuple[sqlite3.Connection, Head, Pin]:
        self._check_writable()
        self._take_turn()
        try:
            connection = self._connections.acquire_writer()
            try:
                with self._poisoning("prepare to write"):
                    head = read_head(connection, self.sqlite_path, self._head)
                    self._vault.prepare(head)
                    pin = self._pinned_for(head)
            except BaseException:
                self._connections.release_writer(connection)
                raise
        except BaseException:
            self._end_turn()
            raise
        return connection, head, pin

    def _end_write(self, connection: sqlite3.Connection) -> None:
        try:
            if self._pid == os.getpid():
                self._move_log(connection)
        finally:
            self._connections.release_writer(connection)
            self._end_turn()

    def _pinned_for(self, head: Head) -> Pin:
        pin = self._pin
        if pin is None or not pin.matches(head):
            pin = self._vault.pin(head)
            if not pin.missing:
                self._pin = pin
        return pin

    def _config(self, head: Head, load: Callable[[], dict[str, Any]]) -> Mapping[str, Any]:
        key = (head.config_lsn, head.dim)
        known = self._settings
        if known is None or known[0] != key:
            known = key, MappingProxyType({**load(), "dim": head.dim})
            self._settings = known
        return known[1]

    def _held_lsns(self) -> list[int]:
        """Log rows after these are needed by compactions under way."""
        return [new.origin.lsn for new in list(self._building)]

    @contextlib.contextmanager
    def _poisoning(self, doing: str) -> Iterator[None]:
        """A failure in here makes further writes impossible until the store is opened again."""
        try:
            yield
        except StoreError as exc:
            self._poison = f"{doing}: {exc}"
            raise
        except OSError as exc:
            self._poison = f"{doing}: {exc}"
            raise StoreError(
                f"Could not {doing} in {self.path}: {exc}. Nothing of this call was stored. Open "
                "the store again."
            ) from exc

    @contextlib.contextmanager
    def _committing(self, connection: sqlite3.Connection) -> Iterator[None]:
        """One transaction; a failure rolls it back."""
        with self._connections.alone(self.lock_timeout_s):
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield
                connection.execute("COMMIT")
            except BaseException as exc:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                if not isinstance(exc, sqlite3.Error):
                    raise
                error = sql.sql_error(exc, self.sqlite_path, "write")
                self._poison = str(error)
                raise error from exc

    def _vector_damage(self, run: Range) -> CorruptionError:
        """The error for vectors that do not match their checksum."""
        return CorruptionError(
            f"{self.path} is damaged: the vectors of slots {run.lo} to {run.hi} do not match "
            "their checksum. Restore the store from a backup.",
            str(self.path),
        )

    def _reclaim(self, connection: sqlite3.Connection, head: Head) -> Reclaimed:
        before = self.size_bytes()
        pending = False
        with self._poisoning("reclaim space"):
            try:
                with self._connections.alone(self.lock_timeout_s):
                    connection.execute("VACUUM")
                if not self.in_memory:
                    pending = self._cut_log(connection)
            except sqlite3.Error as exc:
                raise sql.sql_error(exc, self.sqlite_path, "reclaim space of") from exc
            left = self._vault.remove_unnamed(head)
        return Reclaimed(before, self.size_bytes(), pending, tuple(left))

    # Inside

    def _check(self) -> None:
        connection = self._connections.acquire()
        try:
            if self.sqlite_path is not None:
                sql.check_schema(connection, self.sqlite_path)
            self._head = read_head(connection, self.sqlite_path, None)
        finally:
            self._connections.release(connection, threading.get_ident())

    def _check_open(self) -> None:
        process.check_process(self._pid, self.path)
        if self._closed:
            raise StoreClosed(f"The store {self.path or MEMORY} is closed. Open it again.")

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise StoreError(
                f"{self.path} is open read-only, so nothing can be written. Open it without "
                "read_only=True, in a folder that this user may write."
            )
        if self._poison is not None:
            raise StoreError(
                f"{self.path or MEMORY} takes no more writes since one failed ({self._poison}) "
                "Open the store again; what was acknowledged is intact."
            )

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
                self._lock.acquire(max(0.0, deadline - time.monotonic()))
        except BaseException:
            self._turn_of = 0
            self._turn.release()
            raise

    def _end_turn(self) -> None:
        try:
            if self._lock is not None and self._pid == os.getpid():
                self._lock.release()
        finally:
            self._turn_of = 0
            self._turn.release()

    def _move_log(self, connection: sqlite3.Connection) -> None:
        """Move SQLite's log into its file once it is big; never waits for readers."""
        if self.sqlite_path is None:
            return
        try:
            size = os.stat(f"{self.sqlite_path}-wal").st_size
            if size >= _LOG_BYTES:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except FileNotFoundError:
            return
        except sqlite3.Error as exc:
            # What was committed is safe in the log: the call that brought it here succeeded.
            self._poison = str(sql.sql_error(exc, self.sqlite_path, "move the log of"))

    def _cut_log(self, connection: sqlite3.Connection) -> bool:
        """Move SQLite's log into its file and cut it; True if a reader keeps it in use."""
        connection.execute(f"PRAGMA busy_timeout = {_CUT_WAIT_MS}")
        try:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(defaults.BUSY_TIMEOUT_S * 1000)}")
        return bool(busy)
