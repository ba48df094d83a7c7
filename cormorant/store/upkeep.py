"""When is what a store needs done, while its callers go on?

In one thread of the process that writes, which lives as long as there is something to do. It
is no daemon: what it writes it finishes, or removes, before the process ends.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cormorant.errors import StoreClosed

if TYPE_CHECKING:
    from cormorant.index.vector import Progress

__all__ = ["Upkeep"]

logger = logging.getLogger(__name__)

_NAME: Final = "cormorant-upkeep"


class _Stopped(Exception):
    """Somebody wants this work to end: the store is closed, or does it itself."""


class Upkeep:
    """Runs one piece of work at a time, in a thread of its own, when it is woken.

    Attributes:
        failure: What the last run ended with, a sentence; None if it went well.
        says: What is being done and what part of it is done; None if nothing is.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        self.says: str | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._job = threading.RLock()
        self._thread: threading.Thread | None = None
        self._work: Callable[[Progress], None] | None = None  # what is to be done next
        self._closed = False
        self._wanted = 0  # callers who wait to do the work themselves

    def wake(self, work: Callable[[Progress], None]) -> None:
        """Do this soon; once, however often it is asked for before it begins.

        Args:
            work: Looks itself whether anything is due, and tells now and then how far it is.
        """
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._work = work
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name=_NAME, daemon=False)
            try:
                thread.start()
            except RuntimeError as error:  # the interpreter is ending, or there is no thread left
                self.failure = f"No thread could be started for upkeep: {error}."
                logger.warning("%s", self.failure)
                return
            self._thread = thread

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The block does such work itself: what runs is stopped first, and nothing is begun."""
        with self._lock:
            self._wanted += 1
        try:
            with self._job:
                yield
        finally:
            with self._lock:
                self._wanted -= 1

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until nothing is left to do; False if that took too long."""
        while (thread := self._thread) is not None:
            if thread is threading.current_thread():
                return False
            thread.join(timeout_s)
            if thread.is_alive():
                return False
        return True

    def close(self) -> None:
        """Begin nothing more, and let what runs come to a place where it can stop. Idempotent."""
        if self._pid != os.getpid():
            return  # the thread is another process's
        with self._lock:
            self._closed = True
        self.wait()

    # Inside

    def _run(self) -> None:
        while (work := self._next()) is not None:
            with self._job:
                self._once(work)

    def _next(self) -> Callable[[Progress], None] | None:
        """What is there to do? If nothing, the thread ends."""
        with self._lock:
            work, self._work = self._work, None
            if work is None or self._is_over():
                self._thread = None
                return None
            return work

    def _once(self, work: Callable[[Progress], None]) -> None:
        try:
            self._tick("look", 0.0)
            work(self._tick)
        except (_Stopped, StoreClosed):
            pass
        except Exception as error:
            # Nobody waits for this thread, so this is where an error ends.
            self.failure = f"{type(error).__name__}: {error}"
            logger.exception("Upkeep of a store failed; what it holds is as it was.")
        else:
            self.failure = None
        finally:
            self.says = None

    def _tick(self, what: str, done: float) -> None:
        if self._is_over() or self._wanted:
            raise _Stopped
        self.says = f"{what}, {done:.0%} done"

    def _is_over(self) -> bool:
        # At the interpreter's end the main thread is marked as ended before others are joined.
        return self._closed or not threading.main_thread().is_alive()
