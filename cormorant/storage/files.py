"""How are bytes put on disk so that a failure is an error with a name, never a silence?

All writes outside SQLite go through here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cormorant.errors import StoreError

__all__ = [
    "create",
    "create_new",
    "io_error",
    "make_folder",
    "map_read",
    "open_read",
    "open_write",
    "pwrite_all",
    "remove_folders",
    "rewrite",
    "sync",
    "sync_folder",
    "translated",
    "truncate",
    "unlink",
]

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_CHUNK_BYTES = 4 * 1024 * 1024
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # a store's own files are never links


def io_error(exc: OSError, path: str | Path, doing: str) -> StoreError:
    """The StoreError that names the file, the failure and what to do."""
    code = errno.errorcode.get(exc.errno or 0, "no error number")
    why = f"{exc.strerror or exc} ({code})"
    then = "Check the disk, then open the store again."
    if exc.errno in _FULL:
        why = f"the disk is full ({code})"
        then = "Free some space, then open the store again."
    elif exc.errno in _FORBIDDEN:
        then = "This user may not do that there: open with read_only=True, or change permissions."
    elif exc.errno == errno.ELOOP:
        then = "It is a link; a store's own files never are. Restore the store from a backup."
    return StoreError(f"Could not {doing} {path}: {why}. Nothing of this call was stored. {then}")


@contextlib.contextmanager
def translated(path: str | Path, doing: str, *, absence: bool = False) -> Iterator[None]:
    """What the system refuses in here becomes a StoreError.

    Args:
        path: The file, for the message.
        doing: What was tried.
        absence: Whether a missing file does, too; else it stays FileNotFoundError, for
            who knows what that means.
    """
    try:
        yield
    except OSError as exc:
        if isinstance(exc, FileNotFoundError) and not absence:
            raise
        raise io_error(exc, path, doing) from exc


def create(path: Path) -> int:
    """Open a file that does not exist yet, for reading and writing."""
    fd = create_new(path)
    if fd is None:
        raise io_error(FileExistsError(errno.EEXIST, "it exists already"), path, "create")
    return fd


def create_new(path: Path) -> int | None:
    """The same; None if it exists."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | _NOFOLLOW
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        return None
    except OSError as exc:
        raise io_error(exc, path, "create") from exc


def open_write(path: Path) -> int:
    """Open an existing file for reading and writing."""
    with translated(path, "open"):
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | _NOFOLLOW)


def open_read(path: Path) -> int:
    """Open an existing file for reading."""
    with translated(path, "open"):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NOFOLLOW)


def map_read(fd: int, length: int, path: Path) -> mmap.mmap:
    """Map the first ``length`` bytes of an open file, read-only."""
    with translated(path, "map"):
        return mmap.mmap(fd, length, access=mmap.ACCESS_READ)


def pwrite_all(fd: int, data: bytes | memoryview, offset: int, path: Path) -> None:
    """Write all of ``data`` at ``offset``, however many calls it takes."""
    view = memoryview(data).cast("B")
    with translated(path, "write"):
        while view:
            written = os.pwrite(fd, view, offset)
            if written == 0:
                raise OSError(errno.EIO, "the system wrote nothing")
            view = view[written:]
            offset += written


def truncate(fd: int, size: int, path: Path) -> None:
    """Make the file ``size`` bytes long; new bytes read as zeros."""
    with translated(path, "resize"):
        os.ftruncate(fd, size)


def sync(fd: int, path: Path) -> None:
    """Force the file's bytes and size to the disk."""
    with translated(path, "sync"):
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync there does not reach the platter
        else:
            os.fdatasync(fd)


def sync_folder(path: Path) -> None:
    """Force the folder's entries (new and renamed files) to the disk."""
    with translated(path, "sync the folder"):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def rewrite(path: Path) -> None:
    """Write a file's bytes over themselves and sync it, if there are any."""
    try:
        fd = open_write(path)
    except FileNotFoundError:
        return
    try:
        offset = 0
        while data := _pread(fd, offset, path):
            pwrite_all(fd, data, offset, path)
            offset += len(data)
        if offset:
            sync(fd, path)
    finally:
        os.close(fd)


def make_folder(path: Path) -> list[Path]:
    """Create ``path`` and its missing parents, each entry forced to the disk.

    Returns:
        What was made, the deepest last, for :func:`remove_folders`. If it fails, nothing
        that was made stays.
    """
    missing = []
    folder = path
    with translated(path, "look for"):
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
    # The deepest one that is there may be the work of a process that was killed before it
    # synced the name. Where the folder above may not be read, somebody else made it.
    if os.access(folder.parent, os.R_OK):
        sync_folder(folder.parent)
    made: list[Path] = []
    try:
        for folder in reversed(missing):
            with translated(folder, "create the folder", absence=True):
                folder.mkdir(exist_ok=True)
            made.append(folder)
            # A name whose sync fails may never become durable: it has to be made anew.
            sync_folder(folder.parent)
    except BaseException:
        remove_folders(made)
        raise
    return made


def remove_folders(made: Sequence[Path]) -> None:
    """Take folders away that were made in this order, as far as they are empty."""
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            folder.rmdir()


def unlink(path: Path) -> bool:
    """Remove the file; False if it could not be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _pread(fd: int, offset: int, path: Path) -> bytes:
    with translated(path, "read"):
        return os.pread(fd, _CHUNK_BYTES, offset)
