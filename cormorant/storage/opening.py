"""Is this folder a store, may it become one, and how may it be opened?

Nothing in a folder that is something else is touched.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from cormorant.errors import ConfigError, FormatError, NotFound, StoreError, UsageError
from cormorant.storage import files, process, sql
from cormorant.storage.head import MAX_DIM, encode_config, write_head
from cormorant.storage.lock import FileLock
from cormorant.storage.pool import Pool
from cormorant.storage.types import Head

__all__ = [
    "DATABASE",
    "LOCK",
    "Opened",
    "first_settings",
    "locate",
    "make_folders",
    "name_database",
    "new_database",
    "plain_path",
    "prepare",
]

DATABASE: Final = "cormorant.sqlite"
LOCK: Final = "lock"
_NEW: Final = "cormorant.sqlite.new"  # until its rename a folder is not a store
_FOLDERS: Final = ("vectors", "derived")
_HEADER_BYTES: Final = 100
_MAGIC: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Opened:
    """How a folder may be used.

    Attributes:
        created: Whether it was made just now.
        read_only: Whether writes must be refused.
        immutable: Whether nothing at all may be written, not even SQLite's own side files.
    """

    created: bool
    read_only: bool
    immutable: bool


def locate(path: str | PathLike[str]) -> Path:
    """The folder itself: neither a later ``chdir`` nor another target of a link changes it.

    Raises:
        UsageError: If no path can be that.
        FormatError: If the path is a link to nothing.
        StoreError: If it cannot be looked for: it is too long, say.
    """
    folder = plain_path(path)
    with files.translated(folder, "look for", absence=True):
        if folder.is_symlink() and not folder.exists():
            raise FormatError(f"{folder} is a link to nothing. Choose another folder.")
        return folder.resolve()


def plain_path(path: str | PathLike[str]) -> Path:
    """The path, if the system can take it at all.

    Raises:
        UsageError: If it has a character that no path has.
    """
    found = Path(path)
    try:
        whole = b"\0" not in os.fsencode(found)
    except UnicodeEncodeError:
        whole = False
    if not whole:
        raise UsageError(
            f"{str(found)!r} has a zero byte or a lone surrogate in it; no path has that. Choose "
            "another folder."
        )
    return found


def prepare(
    folder: Path,
    *,
    config: Mapping[str, Any] | None,
    create: bool,
    read_only: bool,
    timeout_s: float,
) -> Opened:
    """Make sure that there is a store in ``folder``.

    Raises:
        NotFound: If there is none and none may be made.
        FormatError: If the folder is something else.
        StoreError: If it cannot be made or opened.
    """
    created = False
    if not _is_store(folder):
        if read_only or not create:
            why = "read_only=True makes none" if read_only else "create=False"
            raise NotFound(
                f"There is no store at {folder} ({why}). Check the path, or open it with "
                "create=True to make one."
            )
        created = _make(folder, config, timeout_s)
    database = folder / DATABASE
    _check_kinds(folder)
    _check_header(database)
    if not (folder / "vectors").is_dir():  # what else is missing the next writer makes
        raise FormatError(f"{folder} has no folder vectors. Restore the store from a backup.")
    writable = os.access(folder, os.W_OK | os.X_OK) and os.access(database, os.W_OK)
    if not writable and (folder / f"{DATABASE}-wal").exists():
        raise StoreError(
            f"{folder} is read-only for this user, and it holds {DATABASE}-wal: a writer has it "
            "open or did not close it. Open it once where it can be written and close it, or copy "
            "the folder and open the copy."
        )
    return Opened(created=created, read_only=read_only or not writable, immutable=not writable)


def first_settings(
    connection: sqlite3.Connection, path: Path | None, config: Mapping[str, Any] | None
) -> None:
    """Put the settings of a new store into its new tables."""
    settings = dict(config or {})
    dim = settings.pop("dim", None)
    if dim is not None and (type(dim) is not int or not 1 <= dim <= MAX_DIM):
        raise ConfigError(f"dim must be a whole number from 1 to {MAX_DIM}, or None; got {dim!r}.")
    encoded = encode_config(settings)
    try:
        connection.execute("BEGIN IMMEDIATE")
        sql.create(connection)
        write_head(connection, Head.first(dim))
        connection.executemany(sql.PUT_SETTING, encoded)
        connection.execute("COMMIT")
    except sqlite3.Error as exc:
        raise sql.sql_error(exc, path, "create") from exc


def make_folders(folder: Path) -> None:
    """The folders of a store; ``name_database`` syncs the folder around them."""
    for name in _FOLDERS:
        with files.translated(folder / name, "create the folder"):
            (folder / name).mkdir()


@contextlib.contextmanager
def new_database(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a SQLite file that is built under another name, durable at the end."""
    path = folder / _NEW
    os.close(files.create(path))
    # Through a pool, so that a fork meanwhile is noticed: it is the same file after its naming.
    pool = Pool(path, immutable=False)
    connection = pool.acquire()
    try:
        connection.execute("PRAGMA synchronous = OFF")  # all of it is synced below, once
        yield connection
        sql.set_journal_mode(connection, "wal")
    except sqlite3.Error as exc:
        raise sql.sql_error(exc, path, "create") from exc
    finally:
        pool.release(connection, 0)
        pool.close()
    fd = files.open_write(path)
    try:
        files.sync(fd, path)
    finally:
        os.close(fd)


def name_database(folder: Path) -> None:
    """Give the finished SQLite file its name: from now on the folder is a store.

    What is beside the file is made durable first: names may reach the disk in any order.
    """
    new, database = folder / _NEW, folder / DATABASE
    files.sync_folder(folder)
    try:
        new.rename(database)
    except OSError as exc:
        raise files.io_error(exc, database, "name") from exc
    try:
        files.sync_folder(folder)
    except StoreError:
        # A name whose sync failed may never become durable: nobody shall take it for a store.
        files.unlink(database)
        raise


def _is_store(folder: Path) -> bool:
    """Is there a store; False if there could be one."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise FormatError(
            f"{folder} is a file, not a store's folder; nothing was touched. Choose another path."
        ) from None
    except OSError as exc:
        raise files.io_error(exc, folder, "look into") from exc
    if DATABASE in names:
        return True
    if _is_unfinished(folder, names):
        return False
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise FormatError(
        f"{folder} is not empty and is not a store: it holds {some}, and no {DATABASE}. Nothing "
        "was touched. Choose an empty or a new folder."
    )


def _is_unfinished(folder: Path, names: Iterable[str]) -> bool:
    """Is it empty, or what an interrupted creation leaves: nothing that anybody stored?"""
    for name in names:
        if name == LOCK or name.startswith(_NEW):
            continue
        if name not in _FOLDERS or (folder / name).is_symlink() or not (folder / name).is_dir():
            return False
        for entry in (folder / name).iterdir():
            if entry.name != "1.f32" or entry.stat().st_size:
                return False
    return True


def _make(folder: Path, config: Mapping[str, Any] | None, timeout_s: float) -> bool:
    """Make a store; False if another process made one meanwhile."""
    made = files.make_folder(folder)
    guard = FileLock(folder / LOCK)
    try:
        guard.acquire(timeout_s)
    except BaseException:
        files.remove_folders(made)
        raise
    try:
        if (folder / DATABASE).exists():
            return False
        # What an earlier attempt left may hang on names whose sync failed: all is made anew.
        _unmake(folder)
        _fill(folder, config)
    except BaseException:
        _unmake(folder)
        if made:
            files.unlink(folder / LOCK)
            files.remove_folders(made)
        raise
    finally:
        guard.release()
    return True


def _fill(folder: Path, config: Mapping[str, Any] | None) -> None:
    make_folders(folder)
    first = folder / "vectors" / "1.f32"
    os.close(files.create(first))
    files.sync_folder(first.parent)
    with new_database(folder) as connection:
        first_settings(connection, folder / _NEW, config)
    name_database(folder)


def _unmake(folder: Path) -> None:
    """Remove what an unfinished creation left; nothing that holds anything."""
    try:
        if (folder / DATABASE).exists():
            return  # it could not be taken away: then it shall be whole
    except OSError:
        return  # not even that is known: the name is too long, say
    for entry in folder.iterdir():
        if entry.name.startswith(_NEW):
            files.unlink(entry)
    for name in _FOLDERS:
        with contextlib.suppress(OSError):
            (folder / name / "1.f32").unlink(missing_ok=True)
            (folder / name).rmdir()


def _check_kinds(folder: Path) -> None:
    """Refuse links in place of a store's own files: they could point anywhere."""
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK, *_FOLDERS):
        try:
            mode = (folder / name).lstat().st_mode
        except FileNotFoundError:
            continue
        if not (stat.S_ISDIR(mode) if name in _FOLDERS else stat.S_ISREG(mode)):
            raise FormatError(
                f"{folder / name} is not a plain {'folder' if name in _FOLDERS else 'file'}; a "
                "store's parts are never links. Nothing was touched."
            )


def _check_header(database: Path) -> None:
    """Refuse another program's file before SQLite touches it.

    Closing a plain descriptor drops the locks of all of this process's connections to the
    file, so it is only looked at while there are none.
    """
    with process.guard():
        if process.is_open(process.file_id(database)):
            return
        fd = files.open_read(database)
        try:
            header = os.read(fd, _HEADER_BYTES)
        finally:
            os.close(fd)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise FormatError(
            f"{database} is not a SQLite file (it begins with {header[:16]!r}). Nothing was "
            "touched. Choose another folder, or restore the store from a backup."
        )
    application = int.from_bytes(header[68:72], "big")
    sql.check_format(database, application, int.from_bytes(header[60:64], "big"))
