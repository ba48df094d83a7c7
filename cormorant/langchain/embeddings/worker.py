"""In whose thread does an embedder's blocking work run?

In its own: the event loop stays free, and so does the loop's default executor, which the
caller's program needs for itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """A few threads, started at first use, and again in a forked child.

    Args:
        name: Prefix of the threads' names.
        threads: How many at most.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    def call(self, function: Callable[[], T]) -> T:
        """Wait for ``function()`` in one of the threads."""
        return self._executor().submit(function).result()

    async def run(self, function: Callable[[], T]) -> T:
        """Await ``function()`` in one of the threads, with the caller's context variables."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor(), lambda: context.run(function))

    def close(self) -> None:
        """Let the threads end when their work is done."""
        with self._lock:
            if self._pool is not None and self._pid == os.getpid():
                self._pool.shutdown(wait=False)
            self._pool = None

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():  # a fork copies no threads
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
                self._pid = os.getpid()
            return self._pool
