"""Which SQLite connection does a read use?

The one that was used last: its page cache is warm. A connection serves one read at a time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

from cormorant.errors import StoreClosed, StoreError
from cormorant.storage import process, sql

__all__ = ["Pool"]

_KEPT = 8  # idle connections; more readers at once open and close their own
_FORK_WAIT_S = 1.0  # how long a fork waits for calls that are running


class Pool:
    """Connections to one store's SQLite file.

    Attributes:
        path: The file.
        file: Its identity, whatever its name.
        era: Grows whenever the last open connection is closed: SQLite may then have removed
            its log.
    """

    def __init__(self, path: Path, *, immutable: bool) -> None:
        self.path = path
        self.file = process.file_id(path)
        self._immutable = immutable
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._used: dict[sqlite3.Connection, int] = {}  # which thread's
        self._open = 0
        self._paused = False
        self._closed = False
        self.era = 0
        process.register(self)

    def acquire(self) -> sqlite3.Connection:
        """A connection for one read or write; give it back with :meth:`release`."""
        with self._changed:
            while self._paused:
                self._changed.wait()
            if self._closed:
                raise StoreClosed(f"{self.path.parent} is closed. Open the store again.")
            connection = self._idle.pop() if self._idle else self._connect()
            self._used[connection] = threading.get_ident()
            return connection

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a snapshot."""
        try:
            connection.execute("BEGIN")
        except sqlite3.Error as exc:
            raise sql.sql_error(exc, self.path, "read") from exc

    def end(self, connection: sqlite3.Connection) -> None:
        """End a snapshot."""
        if self._pid != os.getpid():
            return
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as exc:
            raise sql.sql_error(exc, self.path, "end a snapshot of") from exc

    def acquire_writer(self) -> sqlite3.Connection:
        """A connection for a write call; the caller holds the store's lock."""
        return self.acquire()

    def release_writer(self, connection: sqlite3.Connection) -> None:
        """Give the write call's connection back."""
        self.release(connection, 0)

    def alone(self, _timeout_s: float, /) -> AbstractContextManager[None]:
        """Around a commit: readers of a file need not leave."""
        return contextlib.nullcontext()

    def release(self, connection: sqlite3.Connection, _owner: int, /) -> None:
        """Give a connection back; a transaction still open is rolled back."""
        if self._pid != os.getpid():
            process.leak(connection)
            return
        broken = False
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            broken = True
        with self._changed:
            self._used.pop(connection, None)
            if broken or self._closed or len(self._idle) >= _KEPT:
                self._discard(connection)
            else:
                self._idle.append(connection)
            self._changed.notify_all()
            over = self._closed and not self._used
        if over:
            process.unregister(self)

    def close(self) -> None:
        """Close what is idle now and the rest as it comes back. Idempotent."""
        if self._pid != os.getpid():
            return
        with self._changed:
            self._closed = True
            self._close_idle()
            over = not self._used
        if over:
            process.unregister(self)

    def pause(self) -> None:
        """Before a fork: let running calls end, for a moment, and close what is idle."""
        self._changed.acquire()
        self._paused = True
        deadline = time.monotonic() + _FORK_WAIT_S
        mine = threading.get_ident() in self._used.values()  # waiting for oneself is no use
        while self._used and not mine and time.monotonic() < deadline:
            self._changed.wait(deadline - time.monotonic())
        self._close_idle()

    def resume(self) -> None:
        """After a fork, in the parent."""
        self._paused = False
        self._changed.notify_all()
        self._changed.release()

    def abandon(self) -> bool:
        """After a fork, in the child: was a connection in use? Then the file is lost to it."""
        self._changed = threading.Condition()
        for connection in self._used:
            process.leak(connection)
        return bool(self._used)

    def _connect(self) -> sqlite3.Connection:
        connection = sql.connect(self.path, immutable=self._immutable)
        try:
            process.check_place(self.path, self.file)
        except StoreError:
            connection.close()
            raise
        self._open += 1
        return connection

    def _close_idle(self) -> None:
        while self._idle:
            self._discard(self._idle.pop())

    def _discard(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()
        self._open -= 1
        self.era += not self._open
