"""Whose turn is it? One sync of a store at a time, so that nobody's books are changed under them.

Other writers go on meanwhile: what is locked is the folder itself, and only syncs look at that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cormorant.errors import StoreLocked
from cormorant.storage.lock import try_lock

__all__ = ["turn"]

_WAIT_S: Final = 0.05
_in_memory = threading.Lock()


@contextmanager
def turn(path: Path | None, timeout_s: float) -> Iterator[None]:
    """Hold the turn; it ends with the process too, however that ends.

    Args:
        path: The store's folder; None for a store in memory, all of which take turns.
        timeout_s: How long to wait for another sync.

    Raises:
        StoreLocked: If another sync is still at work.
    """
    if path is None:
        if not _in_memory.acquire(timeout=timeout_s):
            raise _busy("a store in memory", timeout_s)
        try:
            yield
        finally:
            _in_memory.release()
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + timeout_s
        while not try_lock(fd):
            if time.monotonic() >= deadline:
                raise _busy(str(path), timeout_s)
            time.sleep(_WAIT_S)
        yield
    finally:
        os.close(fd)


def _busy(where: str, timeout_s: float) -> StoreLocked:
    return StoreLocked(
        f"Another sync into {where} is at work; waited {timeout_s:g} s. Wait until it ends, or "
        "stop it: the next one goes on where it stopped."
    )
