"""What becomes of sync work that takes too long? It goes on in its thread, and is counted.

Python cannot stop a thread. So work with a limit runs in a thread of its own, no pool's, which a
few slow calls would fill, and no thread that the interpreter waits for at its end.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextvars import Context
from typing import Any, Final, Generic, TypeVar

from cormorant import defaults
from cormorant.errors import DeadlineExceeded

__all__ = ["Job"]

T = TypeVar("T")

_lock = threading.Lock()
# By the id of who was asked; its jobs hold it, so that no other can come to have that id.
_stragglers: Counter[int] = Counter()
_MOST: Final = 4 * defaults.MAX_STRAGGLERS  # of all together


class Job(Generic[T]):
    """Work begun in a thread of its own.

    Args:
        context: What it runs in; nobody else's.
        work: What is done.
        who: What is asked by it: its stragglers are counted together.
        name: Of that, for the error.

    Raises:
        DeadlineExceeded: If too many calls of it that overran are still running.
    """

    def __init__(self, context: Context, work: Callable[[], T], who: object, name: str) -> None:
        _refuse_more(who, name)
        self._who = who
        self._left = False
        self._future: Future[T] = Future()
        self._future.set_running_or_notify_cancel()  # from here on nobody can cancel it
        thread = threading.Thread(
            target=self._run, args=(context, work), daemon=True, name=f"cormorant {name}"
        )
        thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it is done by then; if not, it is left to itself."""
        try:
            wait_for([self._future], min(seconds, threading.TIMEOUT_MAX))
        finally:
            self._leave()
        return not self._left

    async def awaited(self, seconds: float) -> bool:
        """Like :meth:`wait`, without holding the event loop."""
        ended = asyncio.wrap_future(self._future)
        try:
            await asyncio.wait([ended], timeout=seconds)
        finally:
            self._leave()
            # Neither may complain later that nobody asked how it ended: result() is asked.
            if not ended.cancel():
                ended.exception()
        return not self._left

    def result(self) -> T:
        """What the work returned, or raised; only once it is done."""
        return self._future.result()

    def _run(self, context: Context, work: Callable[[], T]) -> None:
        try:
            value = context.run(work)
        except StopIteration:  # a future cannot carry it to the event loop
            self._ended(error=RuntimeError(f"StopIteration was raised by {work!r}."))
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            self._ended(error=error)
        else:
            self._ended(value)

    def _ended(self, value: Any = None, error: BaseException | None = None) -> None:
        with _lock:
            if self._left:
                _stragglers[id(self._who)] -= 1
                if not _stragglers[id(self._who)]:
                    del _stragglers[id(self._who)]
            if error is None:
                self._future.set_result(value)
            else:
                self._future.set_exception(error)

    def _leave(self) -> None:
        with _lock:
            if not self._future.done():
                self._left = True
                _stragglers[id(self._who)] += 1


def _refuse_more(who: object, name: str) -> None:
    with _lock:
        its, all_of_them = _stragglers.get(id(who), 0), sum(_stragglers.values())
    if its >= defaults.MAX_STRAGGLERS or all_of_them >= _MOST:
        whose = f"{its} calls of it" if its >= defaults.MAX_STRAGGLERS else f"{all_of_them} calls"
        raise DeadlineExceeded(
            f"{name} was not asked: {whose} that took too long are still running, each in a "
            "thread. It is asked again once some have ended.",
            stage=name,
        )
