"""Where does the blocking part of an async call run?

In the store's own threads, so that a busy store does not starve whatever else the
program runs in asyncio's default executor, and so that the event loop is never held.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["in_one_thread", "in_pool"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_pool(
    executor: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run ``work`` in a thread of ``executor``, with the caller's context variables.

    Cancelling the awaiting task gives the wait up. Work that had not begun then never
    does; work that had begun runs to its end in its thread, so that a transaction is
    committed whole or not at all.
    """
    context = contextvars.copy_context()

    def job() -> T:
        try:
            return context.run(work, *args, **kwargs)
        except StopIteration as error:
            # A future cannot carry StopIteration; a user's filter or generator may raise it.
            raise RuntimeError(f"StopIteration was raised by {work!r}.") from error

    return await asyncio.get_running_loop().run_in_executor(executor, job)


async def in_one_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work`` in a thread of its own: for opening a store, which has no pool yet."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="cormorant-open")
    try:
        return await in_pool(executor, work, *args, **kwargs)
    finally:
        executor.shutdown(wait=False)
