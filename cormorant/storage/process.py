"""What happens to open stores when the process forks?

SQLite keeps, per process, a table of the files it has locked. A forked child inherits
the table but not the locks: a connection it opens to the same file believes in a lock
that the kernel does not know, and a parent that closes then removes the write-ahead log
under it; what the child commits is lost. So before a fork every idle connection is
closed, which empties the table. A file that is in use at that moment cannot be
opened in the child at all; it is refused there.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from cormorant.errors import StoreClosed, StoreError
from cormorant.storage import lock

if TYPE_CHECKING:
    import sqlite3

    from cormorant.storage.pool import Pool

__all__ = [
    "FileId",
    "check_place",
    "check_process",
    "file_id",
    "leak",
    "register",
    "unregister",
]

FileId = tuple[int, int]
"""Device and inode: what SQLite and POSIX locks go by."""

_mutex = threading.RLock()
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_unusable: set[FileId] = set()
_hooked = False


def file_id(path: Path) -> FileId:
    """Which file is this, whatever its name?"""
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def check_place(path: Path, file: FileId) -> None:
    """Refuse to go on with a file that another one, or none, has the name of.

    What was written to it would be lost with its last descriptor, or lie in another place
    than the lock that guards it.

    Raises:
        StoreError: If the name means something else now.
    """
    try:
        found = file_id(path)
    except OSError:
        found = None
    if found != file:
        raise StoreError(
            f"{path} is no longer the file that was opened: it was moved, removed or replaced. "
            "Nothing of this call was stored. Close the store, and open it where it lies now."
        )


def guard() -> threading.RLock:
    """Held while a file is looked at with plain reads: closing it would drop SQLite's locks."""
    return _mutex


def is_open(file: FileId) -> bool:
    """Does this process have a store on that file?"""
    return any(pool.file == file for pool in _pools)


def register(pool: Pool) -> None:
    """Watch over a store's connections when the process forks.

    Raises:
        StoreError: If the file was in use when this process was forked.
    """
    global _hooked  # noqa: PLW0603 - hooks cannot be taken back, so they are set once, when needed
    with _mutex:
        check_usable(pool.file, pool.path)
        if not _hooked and hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
            )
            _hooked = True
        _pools.add(pool)


def unregister(pool: Pool) -> None:
    """The store is closed."""
    with _mutex:
        _pools.discard(pool)


def check_usable(file: FileId, path: Path) -> None:
    """Refuse a file that was in use when this process was forked."""
    if file in _unusable:
        raise StoreError(
            f"{path} cannot be opened in this process: it was forked while a call on the store "
            "was running, and SQLite's locks do not survive that. Fork before the store is used "
            "or while it is idle, or start processes with multiprocessing's 'spawn' method."
        )


def check_process(pid: int, path: Path | str) -> None:
    """Refuse to go on with a store that belongs to the process this one was forked from."""
    if pid != os.getpid():
        raise StoreClosed(
            f"This store ({path}) was opened in process {pid}, and this is its forked child "
            f"{os.getpid()}. Open it again in this process."
        )


def leak(connection: sqlite3.Connection) -> None:
    """Never close it: in a forked child that would touch files and memory of the parent."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _before() -> None:
    _mutex.acquire()
    for pool in list(_pools):
        pool.pause()


def _after_in_parent() -> None:
    for pool in list(_pools):
        pool.resume()
    _mutex.release()


def _after_in_child() -> None:
    global _mutex  # noqa: PLW0603 - the old one may be held by a thread that is not here
    for pool in list(_pools):
        if pool.abandon():
            _unusable.add(pool.file)
    _pools.clear()
    _mutex = threading.RLock()
    lock.drop_inherited()
