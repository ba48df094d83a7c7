"""Which vectors were bought before? The SQLite file behind ``CachedEmbeddings``.

A cache, not a store: losing the last entries in a power cut costs their embedding again, so
nothing waits for the disk. Texts are kept as SHA-256 only, vectors as little-endian
float32; nothing in the file is executed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import CorruptionError, EmbeddingError, FormatError, StoreClosed, StoreError

__all__ = ["Role", "VectorFile"]

Role: TypeAlias = Literal["document", "query"]

_APPLICATION: Final = 0x436F5643  # "CoVC", in the SQLite header: says whose file it is
_FORMAT: Final = 1
_ROLES: Final[Mapping[Role, int]] = {"document": 0, "query": 1}
_inherited: Final[list[sqlite3.Connection]] = []  # of the parent process, kept from being closed
_AT_ONCE: Final = 500  # parameters of one SELECT
_SCHEMA: Final = """
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dim INTEGER NOT NULL);
CREATE TABLE vectors (
    model INTEGER NOT NULL REFERENCES models (id),
    role INTEGER NOT NULL,
    text BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model, role, text)
);
"""


class VectorFile:
    """Vectors by (model, role, text). Safe across threads, processes and forks.

    Args:
        path: The file, made with its folder if missing; ``":memory:"`` for this object alone.

    Raises:
        FormatError: If the file is something else, or of a newer format.
        StoreError: If it cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path) if str(path) == ":memory:" else str(Path(path).expanduser())
        self._lock = threading.RLock()  # a collection in mid-session may run __del__
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._closed = False
        with self._session():
            pass

    def get(self, model: str, role: Role, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of those texts that are there, by text.

        Raises:
            CorruptionError: If a vector does not have its model's size.
        """
        by_key = {_key(text): text for text in texts}
        keys = list(by_key)
        found: dict[str, NDArray[np.float32]] = {}
        with self._session() as connection:
            row = connection.execute(
                "SELECT id, dim FROM models WHERE name = ?", (model,)
            ).fetchone()
            if row is None:
                return found
            number, dim = row
            for first in range(0, len(keys), _AT_ONCE):
                some = keys[first : first + _AT_ONCE]
                marks = ",".join("?" * len(some))
                for key, blob in connection.execute(
                    f"SELECT text, vector FROM vectors WHERE model = ? AND role = ? "  # noqa: S608
                    f"AND text IN ({marks})",
                    (number, _ROLES[role], *some),
                ):
                    if len(blob) != 4 * dim:
                        raise CorruptionError(
                            f"{self.path}: a cached vector of {model!r} has {len(blob)} bytes, not "
                            f"{4 * dim}. Delete the file; what is missing is embedded again.",
                            path=self.path,
                        )
                    found[by_key[key]] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
        return found

    def put(
        self, model: str, role: Role, texts: Sequence[str], vectors: NDArray[np.float32]
    ) -> None:
        """Keep the vectors, all or none; what is there already stays.

        Args:
            model: The name they are kept under.
            role: Which side they were embedded for.
            texts: One per row.
            vectors: float32, shape (n, dim), finite.

        Raises:
            EmbeddingError: If the model made vectors of another size before.
        """
        dim = int(vectors.shape[1])
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        with self._session() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(
                    "INSERT OR IGNORE INTO models (name, dim) VALUES (?, ?)", (model, dim)
                )
                number, kept = connection.execute(
                    "SELECT id, dim FROM models WHERE name = ?", (model,)
                ).fetchone()
                if kept != dim:
                    raise EmbeddingError(
                        f"The embedder {model!r} returned vectors of {dim} numbers; those cached "
                        f"under that name have {kept}. It is another model under the same name: "
                        f"give CachedEmbeddings another model=, or another file than {self.path}. "
                        "Nothing was cached.",
                        model=model,
                    )
                connection.executemany(
                    "INSERT OR IGNORE INTO vectors (model, role, text, vector) VALUES (?, ?, ?, ?)",
                    (
                        (number, _ROLES[role], _key(text), row.tobytes())
                        for text, row in zip(texts, rows, strict=True)
                    ),
                )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def forget(self, model: str) -> int:
        """Delete all vectors kept under a name.

        Returns:
            How many there were.
        """
        with self._session() as connection:
            connection.execute("BEGIN IMMEDIATE")
            deleted = connection.execute(
                "DELETE FROM vectors WHERE model = (SELECT id FROM models WHERE name = ?)", (model,)
            ).rowcount
            connection.execute("DELETE FROM models WHERE name = ?", (model,))
            connection.execute("COMMIT")
        return deleted

    def close(self) -> None:
        """Close the file; further use raises StoreClosed. May be called again."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                if self._pid == os.getpid():
                    self._connection.close()
                else:
                    _inherited.append(self._connection)
            self._connection = None

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    @contextmanager
    def _session(self) -> Iterator[sqlite3.Connection]:
        """This process's connection, held by one thread; SQLite's errors become ours."""
        with self._lock:
            if self._closed:
                raise StoreClosed(f"The embedding cache {self.path} was closed; open a new one.")
            try:
                if self._connection is not None and self._pid != os.getpid():
                    # Forked: the parent's connection must neither be used nor closed here.
                    _inherited.append(self._connection)
                    self._connection = None
                if self._connection is None:
                    self._connection = _open(self.path)
                    self._pid = os.getpid()
                yield self._connection
            except sqlite3.OperationalError as error:
                raise StoreError(
                    f"The embedding cache {self.path} cannot be used: {error}. Check that its "
                    "folder is writable, the disk is not full, and no other process holds it."
                ) from error
            except sqlite3.DatabaseError as error:
                raise CorruptionError(
                    f"The embedding cache {self.path} is damaged: {error}. Delete the file; what "
                    "is missing is embedded again.",
                    path=self.path,
                ) from error


def _open(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The folder of the embedding cache {path} cannot be made: {error}."
            ) from error
    connection = sqlite3.connect(
        path, timeout=defaults.BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Check whose file it is before anything in it is changed, then make the tables."""
    try:
        connection.execute("BEGIN")  # one snapshot, or another process's half-done work is seen
        ours = _is_ours(connection, path)
        connection.execute("COMMIT")
        if not ours:
            _switch_to_wal(connection)
            connection.execute("BEGIN IMMEDIATE")
            if not _is_ours(connection, path):  # another process may have been faster
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise FormatError(_foreign(path)) from error
        raise
    connection.execute("PRAGMA synchronous = NORMAL")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """SQLite's own time-out does not cover this switch while others open the same new file."""
    deadline = time.monotonic() + defaults.BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _is_ours(connection: sqlite3.Connection, path: str) -> bool:
    """True for a cache, False for an empty file; anything else is refused."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return False
    if application != _APPLICATION:
        raise FormatError(_foreign(path))
    if version != _FORMAT:
        raise FormatError(
            f"The embedding cache {path} has format {version}; this release reads {_FORMAT}. "
            "Name another file, or upgrade: pip install -U cormorant"
        )
    return True


def _foreign(path: str) -> str:
    return f"{path} exists and is no embedding cache. Name another file; this one was not changed."


def _key(text: str) -> bytes:
    # Lone surrogates are the embedder's to refuse; here any two texts only need two keys.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
