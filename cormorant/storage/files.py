"""How are bytes put on disk so that a failure is an error with a name, never a silence?

All writes outside SQLite go through here, so that a fault can be injected at each.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from pathlib import Path

from cormorant.errors import StoreError

__all__ = [
    "create",
    "io_error",
    "make_folder",
    "open_read",
    "open_write",
    "pwrite_all",
    "rewrite",
    "sync",
    "sync_folder",
    "truncate",
    "unlink",
]

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_CHUNK_BYTES = 4 * 1024 * 1024
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # a store's own files are never links


def io_error(exc: OSError, path: str | Path, doing: str) -> StoreError:
    """The StoreError that names the file, the failure and what to do."""
    code = errno.errorcode.get(exc.errno or 0, "unknown error")
    why = f"{exc.strerror or exc} ({code})"
    if exc.errno in _FULL:
        why = f"the disk is full ({code})"
        then = "Free some space, then open the store again."
    elif exc.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        then = "The folder is read-only for this user: open with read_only=True, or change it."
    else:
        then = "Check the disk, then open the store again."
    return StoreError(f"Could not {doing} {path}: {why}. Nothing of this call was stored. {then}")


def create(path: Path) -> int:
    """Open a file that does not exist yet, for reading and writing."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | _NOFOLLOW
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        raise
    except OSError as exc:
        raise io_error(exc, path, "create") from exc


def open_write(path: Path) -> int:
    """Open an existing file for reading and writing."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | _NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise io_error(exc, path, "open") from exc


def open_read(path: Path) -> int:
    """Open an existing file for reading."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise io_error(exc, path, "open") from exc


def pwrite_all(fd: int, data: bytes | memoryview, offset: int, path: Path) -> None:
    """Write all of ``data`` at ``offset``, however many calls it takes."""
    view = memoryview(data).cast("B")
    try:
        while view:
            written = os.pwrite(fd, view, offset)
            if written == 0:
                raise OSError(errno.EIO, "the system wrote nothing")
            view = view[written:]
            offset += written
    except OSError as exc:
        raise io_error(exc, path, "write") from exc


def truncate(fd: int, size: int, path: Path) -> None:
    """Make the file ``size`` bytes long; new bytes read as zeros."""
    try:
        os.ftruncate(fd, size)
    except OSError as exc:
        raise io_error(exc, path, "resize") from exc


def sync(fd: int, path: Path) -> None:
    """Force the file's bytes and size to the disk."""
    try:
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync there does not reach the platter
        else:
            os.fdatasync(fd)
    except OSError as exc:
        raise io_error(exc, path, "sync") from exc


def rewrite(path: Path) -> None:
    """Write a file's bytes over themselves and sync it, if there are any."""
    try:
        fd = open_write(path)
    except FileNotFoundError:
        return
    try:
        offset = 0
        while data := os.pread(fd, _CHUNK_BYTES, offset):
            pwrite_all(fd, data, offset, path)
            offset += len(data)
        if offset:
            sync(fd, path)
    finally:
        os.close(fd)


def sync_folder(path: Path) -> None:
    """Force the folder's entries (new and renamed files) to the disk."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as exc:
        raise io_error(exc, path, "sync the folder") from exc


def make_folder(path: Path) -> None:
    """Create ``path`` and its missing parents, each entry forced to the disk."""
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(exist_ok=True)
        except OSError as exc:
            raise io_error(exc, folder, "create the folder") from exc
        try:
            sync_folder(folder.parent)
        except StoreError:
            # A name whose sync failed may never become durable: it has to be made anew.
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise


def unlink(path: Path) -> bool:
    """Remove the file; False if it could not be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
