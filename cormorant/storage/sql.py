"""What is in the SQLite file, and how is it opened?

The one place that knows table definitions, pragmas and SQLite's error codes.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any, Final

from cormorant import defaults
from cormorant.errors import CorruptionError, FormatError, StoreError, StoreLocked

__all__ = [
    "APPLICATION_ID",
    "FORMAT",
    "check_format",
    "check_schema",
    "connect",
    "create",
    "is_damage",
    "is_transient",
    "rows",
    "set_journal_mode",
    "sql_error",
]

FORMAT: Final = 1
"""What this release writes; it is SQLite's ``user_version``."""
APPLICATION_ID: Final = 0x436F726D  # "Corm"

SCHEMA: Final = (
    """CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        lsn INTEGER NOT NULL, generation INTEGER NOT NULL, n INTEGER NOT NULL,
        next_row INTEGER NOT NULL, dim INTEGER, base_n INTEGER NOT NULL,
        checkpoint_lsn INTEGER NOT NULL, checkpoint_n INTEGER NOT NULL, checkpoint TEXT,
        config_lsn INTEGER NOT NULL, files INTEGER NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE config (
        name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE records (
        "row" INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
        metadata TEXT NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE documents (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
        metadata TEXT NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE ranges (
        first_row INTEGER PRIMARY KEY, lo INTEGER NOT NULL, hi INTEGER NOT NULL,
        vectors INTEGER NOT NULL, has_vector BLOB, crc INTEGER)""",
    """CREATE TABLE log (
        lsn INTEGER PRIMARY KEY, lo INTEGER NOT NULL, hi INTEGER NOT NULL,
        first_row INTEGER NOT NULL, dead BLOB NOT NULL, vectors INTEGER NOT NULL, has_vector BLOB,
        postings BLOB NOT NULL, columns BLOB NOT NULL, crc INTEGER NOT NULL)""",
)

PUT_SETTING: Final = "INSERT OR REPLACE INTO config VALUES (?, ?, ?)"

_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS only: fsync there does not reach the platter
    "PRAGMA wal_autocheckpoint = 0",  # only the lock's holder moves the log into the file
    "PRAGMA journal_size_limit = 0",  # old bytes do not outlive the log's next start
    f"PRAGMA cache_size = {-(defaults.CACHE_BYTES // 1024)}",
    "PRAGMA secure_delete = ON",  # measured: it costs nothing here
    "PRAGMA trusted_schema = OFF",  # a store is data: nothing in it is executed
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",  # a truncated mapping would be SIGBUS
)

_OBJECTS: Final = (
    # SQLite's own (its statistics, say) can neither run nor hide anything.
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)
_TRANSIENT: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_TOOBIG}
_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_ROOM_BYTES: Final = 64 * 1024
_PRIMARY = 0xFF  # extended codes carry the primary one in the low byte


def connect(path: Path | None, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection to the file; to a new database in memory if ``path`` is None."""
    target = ":memory:"
    if path is not None:
        target = path.absolute().as_uri() + ("?immutable=1" if immutable else "?mode=rw")
    try:
        connection = sqlite3.connect(
            target,
            uri=True,
            timeout=defaults.BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    except sqlite3.Error as exc:
        raise sql_error(exc, path, "open") from exc
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma).fetchall()
    except sqlite3.Error as exc:
        connection.close()
        raise sql_error(exc, path, "open") from exc
    return connection


def set_journal_mode(connection: sqlite3.Connection, mode: str) -> None:
    """Change the journal mode, and be sure of it.

    All rows are fetched: SQLite commits the change at the end of the statement, and an
    error there would otherwise go unseen.
    """
    found = connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()
    if found != [(mode,)]:
        raise sqlite3.OperationalError(f"journal mode is {found} and not {mode}")


def create(connection: sqlite3.Connection) -> None:
    """Make the tables, in a transaction, in a database that is empty."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not ours, of another format, or that carries foreign objects.

    Raises:
        FormatError: Says what was found and what is supported.
        CorruptionError: If the file is not readable as SQLite.
    """
    application = rows(connection, path, "PRAGMA application_id")[0][0]
    version = rows(connection, path, "PRAGMA user_version")[0][0]
    check_format(path, application, version)
    found = {_plain(text) for (text,) in rows(connection, path, _OBJECTS)}
    expected = {_plain(text) for text in SCHEMA}
    if found != expected:
        odd = sorted(text[:80] for text in found ^ expected)
        raise FormatError(
            f"{path} does not have the tables of format {FORMAT}; at odds: {'; '.join(odd)}. "
            "It was changed by something else and is not opened; restore it from a backup."
        )


def check_format(path: Path, application: int, version: int) -> None:
    """Refuse another program's file and another format's."""
    if application != APPLICATION_ID:
        raise FormatError(
            f"{path} is a SQLite file, but not a Cormorant store (application id "
            f"{application:#x}, expected {APPLICATION_ID:#x}). Choose another folder."
        )
    if version != FORMAT:
        newer = "Use a newer release of cormorant." if version > FORMAT else "It is damaged."
        raise FormatError(
            f"{path} has format {version}; this release reads and writes format {FORMAT}. {newer}"
        )


def rows(
    connection: sqlite3.Connection, path: Path | None, sql: str, parameters: Any = ()
) -> list[Any]:
    """All rows of a query, SQLite's errors translated."""
    try:
        return connection.execute(sql, parameters).fetchall()
    except (sqlite3.Error, UnicodeError, OverflowError) as exc:
        raise sql_error(exc, path, "read") from exc


def sql_error(
    exc: Exception,
    path: Path | None,
    doing: str,
    stored: str = "Nothing of this call was stored.",
) -> StoreError:
    """The StoreError that says what SQLite's failure means and what to do."""
    where = str(path) if path is not None else ":memory:"
    name = getattr(exc, "sqlite_errorname", type(exc).__name__)
    code = (getattr(exc, "sqlite_errorcode", None) or 0) & _PRIMARY
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(path)):
        return StoreError(
            f"Could not {doing} {where}: the disk is full ({name}). {stored} Free some space, "
            "then open the store again."
        )
    if code in _DAMAGE or "decode to UTF-8" in str(exc):
        return CorruptionError(
            f"{where} is damaged: SQLite says {exc} ({name}). Restore it from a backup, or run "
            "check() to see how far the damage goes.",
            where,
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreLocked(
            f"Could not {doing} {where}: something else holds its SQLite lock for more than "
            f"{defaults.BUSY_TIMEOUT_S:g} s ({name}). Close other programs that opened the file."
        )
    if code == sqlite3.SQLITE_TOOBIG:
        return StoreError(
            f"Could not {doing} {where}: the call is too big for one transaction ({name}). "
            f"{stored} Add fewer records at once."
        )
    if code == sqlite3.SQLITE_READONLY:
        return StoreError(
            f"Could not {doing} {where}: it is read-only for this user ({name}). Open it with "
            "read_only=True, or change its permissions."
        )
    return StoreError(
        f"Could not {doing} {where}: SQLite says {exc} ({name}). {stored} Check the disk, then "
        "open the store again."
    )


def _is_full(path: Path | None) -> bool:
    """Is there no room left? SQLite does not say so for its shared memory."""
    if path is None:
        return False
    try:
        return shutil.disk_usage(path.parent).free < _ROOM_BYTES
    except OSError:
        return False


def is_damage(exc: sqlite3.Error) -> bool:
    """Does SQLite say that its file is damaged?"""
    return (getattr(exc, "sqlite_errorcode", None) or 0) & _PRIMARY in _DAMAGE


def is_transient(exc: sqlite3.Error) -> bool:
    """Is this failure about others at work, or the call, and not about the file or the disk?"""
    code = getattr(exc, "sqlite_errorcode", None)
    return code is None or code & _PRIMARY in _TRANSIENT


def _plain(text: str) -> str:
    return " ".join(text.split())
