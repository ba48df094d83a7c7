"""How long may what runs now still take, and what becomes of work that takes longer?

The end of the time is kept in a context variable, so that stages inside stages see what is left.
Async work is cancelled. Sync work cannot be: it runs in a thread of its own, which is left to
itself when the time is up (``stragglers.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

from langchain_core.runnables.config import run_in_executor

from cormorant.errors import CormorantError, DeadlineExceeded
from cormorant.langchain.calls.stragglers import Job

__all__ = ["Stage", "alimited", "limited", "limited_in_thread", "time_left", "to_thread"]

P = ParamSpec("P")
T = TypeVar("T")

_CLEANING_S: Final = 0.05  # what cancelled work gets to close what it holds, before it is left

_end: ContextVar[float | None] = ContextVar("cormorant_end", default=None)  # time.monotonic()


@dataclass(frozen=True, slots=True)
class Stage:
    """What is to be done, as far as its time is concerned.

    Attributes:
        name: Named in the error.
        who: What is asked. Calls of it that overran are counted together.
        seconds: The most it may take; None: what is left.
        share: Of what is left, the part it may take.
    """

    name: str
    who: object
    seconds: float | None = None
    share: float = 1.0


def time_left() -> float | None:
    """Seconds until the time of what runs now is up, not below 0; None if it has no end."""
    end = _end.get()
    return None if end is None else max(0.0, end - time.monotonic())


def limited(context: Context, work: Callable[[], T], stage: Stage) -> T:
    """Do the work in the context, and wait no longer than the stage may take.

    Without a limit it is done in the caller's thread.

    Raises:
        DeadlineExceeded: If it is not done by then, if no time is left to begin it, or if too
            many calls of it that overran are still running.
    """
    seconds = _allowed(stage)
    try:
        if seconds is None:
            return context.run(work)
        job = Job(_until(context, seconds), work, stage.who, stage.name)
        if not job.wait(seconds):
            raise _late(stage, seconds)
        return job.result()
    except asyncio.CancelledError as error:  # nobody cancels sync work, but itself
        raise _cancelled(stage) from error


async def alimited(context: Context, work: Callable[[], Awaitable[T]], stage: Stage) -> T:
    """Like :func:`limited`, on the event loop: what is late is cancelled."""
    seconds = _allowed(stage)
    if seconds is None:
        task = asyncio.create_task(_awaited(work), context=context)
        try:
            return await task
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            raise _cancelled(stage) from error
    inside = _until(context, seconds)
    task = asyncio.create_task(_awaited(work), context=inside)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    if not done:
        task.cancel()
        task.add_done_callback(_heard)
        await asyncio.wait([task], timeout=_CLEANING_S)
        raise _late(stage, seconds)
    if task.cancelled():
        raise _cancelled(stage)
    return task.result()


async def limited_in_thread(context: Context, work: Callable[[], T], stage: Stage) -> T:
    """Like :func:`limited`, for sync work asked for on the event loop, which is not held.

    Without a limit, a thread of LangChain's executor does it.
    """
    seconds = _allowed(stage)
    try:
        if seconds is None:
            return await run_in_executor(None, context.run, work)
        job = Job(_until(context, seconds), work, stage.who, stage.name)
        if not await job.awaited(seconds):
            raise _late(stage, seconds)
        return job.result()
    except asyncio.CancelledError as error:
        if _being_cancelled():
            raise
        raise _cancelled(stage) from error


async def to_thread(who: object, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await sync work of somebody, in a thread that has the caller's context variables.

    Under a deadline it is no thread of asyncio's: those are few, and work that overruns keeps its.

    Args:
        who: Whose work it is: a model, a store, a stage.
        work: What is done.
        *args: Of the work.
        **kwargs: Likewise.
    """
    stage = Stage(type(who).__name__, who)
    return await limited_in_thread(copy_context(), lambda: work(*args, **kwargs), stage)


def _allowed(stage: Stage) -> float | None:
    """What the stage may take now."""
    left = time_left()
    if left is None:
        return stage.seconds
    seconds = left * stage.share
    if stage.seconds is not None:
        seconds = min(seconds, stage.seconds)
    if not seconds > 0:
        raise DeadlineExceeded(
            f"{stage.name} was not asked: the stages before it took all of the time. Give the "
            "whole more time, or those stages a deadline of their own.",
            stage=stage.name,
        )
    return seconds


def _until(context: Context, seconds: float) -> Context:
    # A copy: what overruns goes on in it while the caller leaves the original.
    inside = context.copy()
    inside.run(_end.set, time.monotonic() + seconds)
    return inside


def _late(stage: Stage, seconds: float) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"{stage.name} did not answer within {seconds:.3g} s.", stage=stage.name, seconds=seconds
    )


def _cancelled(stage: Stage) -> CormorantError:
    return CormorantError(f"{stage.name} was cancelled from within, and returned nothing.")


def _being_cancelled() -> bool:
    """Whether it is the caller that somebody cancels."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _heard(task: asyncio.Task[Any]) -> None:
    """Take note of how a late task ended, or asyncio would complain that nobody did."""
    if not task.cancelled():
        task.exception()
