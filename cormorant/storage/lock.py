"""Who may write? One holder of ``lock`` at a time, across processes and threads.

``flock`` and not ``lockf``: POSIX record locks would admit two writers in one process.
The lock lives for one write call, so that processes can take turns.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from cormorant.errors import StoreLocked
from cormorant.storage import files

__all__ = [
    "FileLock",
    "drop_inherited",
    "hold",
    "is_current",
    "let_go",
    "locked",
    "reading",
    "try_lock",
]

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FIRST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.05

_held: set[int] = set()
"""Descriptors this process holds locks with: a forked child lets go of its copies."""


class FileLock:
    """An exclusive lock on a file that carries its holder's process id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self, timeout_s: float, deadline: float | None = None) -> None:
        """Take the lock, waiting at most ``timeout_s`` seconds, or until ``deadline``.

        Raises:
            StoreLocked: With the holder's pid, once the time is over.
        """
        if deadline is None:
            deadline = time.monotonic() + timeout_s
        wait = _FIRST_WAIT_S
        while True:
            fd = self._open()
            try:
                with files.translated(self._path, "lock"):
                    taken = try_lock(fd)
            except BaseException:
                os.close(fd)
                raise
            if not taken:
                os.close(fd)
                if time.monotonic() >= deadline:
                    raise locked(self._path.parent, self._holder(), timeout_s)
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_S)
            elif is_current(fd, self._path):
                break
            else:
                os.close(fd)  # somebody removed the file meanwhile: that lock guards nothing
        _held.add(fd)
        self._fd = fd
        pid = str(os.getpid()).encode().ljust(12)
        # The pid is only for the other one's message: a full disk must not stop the write here.
        with contextlib.suppress(OSError):
            os.pwrite(fd, pid, 0)

    def release(self) -> None:
        """Let go; explicitly, since a forked child may still hold a copy of the descriptor."""
        fd, self._fd = self._fd, None
        if fd is not None:
            let_go(fd)

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | _NOFOLLOW, 0o666)
        except OSError as exc:
            raise files.io_error(exc, self._path, "open the lock file") from exc

    def _holder(self) -> int | None:
        try:
            return int(self._path.read_bytes()[:12])
        except (OSError, ValueError):
            return None


def hold(fd: int, path: Path) -> bool:
    """Lock an open file that nobody else should have locked; False if it is gone or taken."""
    if not try_lock(fd) or not is_current(fd, path):
        return False
    _held.add(fd)
    return True


def try_lock(fd: int) -> bool:
    """Lock an open file, unless somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def let_go(fd: int) -> None:
    """Unlock and close; unlocking alone reaches a copy that a forked child may hold."""
    if fd not in _held:  # a forked child: drop_inherited closed it, and its number may be reused
        return
    fcntl.flock(fd, fcntl.LOCK_UN)
    _held.discard(fd)
    os.close(fd)


def is_current(fd: int, path: Path) -> bool:
    """Is the open file still the one of that name?"""
    try:
        named = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino)


def locked(folder: Path, pid: int | None, timeout_s: float) -> StoreLocked:
    """The error for a lock that did not come free."""
    who = f"process {pid}" if pid is not None else "another process"
    if pid == os.getpid():
        who = f"another thread or store object of this process ({pid})"
    return StoreLocked(
        f"{folder} is being written by {who}; waited {timeout_s:g} s. Try again later, or raise "
        "lock_timeout_s.",
        pid,
    )


def reading(timeout_s: float) -> StoreLocked:
    """The error for a store in memory whose readers do not leave."""
    return StoreLocked(
        f"A commit waited {timeout_s:g} s for reads of this store in memory to end. Close "
        "iterators that are not exhausted, or raise lock_timeout_s.",
        os.getpid(),
    )


def drop_inherited() -> None:
    """In a forked child: close the copies of the parent's lock descriptors (it keeps its locks)."""
    for fd in _held:
        with contextlib.suppress(OSError):
            os.close(fd)
    _held.clear()
