"""How is one procedure written once, and run both sync and async?

As a generator that yields what it wants called. One driver calls it, the other awaits it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from cormorant.langchain.calls.blocking import aside, awaited
from cormorant.langchain.calls.time_limit import to_thread

__all__ = ["Call", "Steps", "arun", "beside", "in_thread", "on", "run"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """What a procedure wants called, in both forms."""

    sync: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


Steps: TypeAlias = Generator[Call, Any, T]
"""A procedure that yields Calls, gets what they return (or raise), and returns a T."""


def on(owner: Any, method: str, *args: Any, **kwargs: Any) -> Call:
    """A method, which LangChain's ``a…`` is the async form of."""
    return Call(
        lambda: getattr(owner, method)(*args, **kwargs),
        lambda: awaited(owner, method, *args, **kwargs),
    )


def in_thread(work: Callable[[], Any]) -> Call:
    """Work that has no async form: a thread does it, so that the event loop is not held."""
    return Call(work, lambda: to_thread(work, work))


def beside(given: object, work: Callable[[], Any]) -> Call:
    """Work of our own on what is given: at once, unless its length would hold the event loop."""
    return Call(work, lambda: aside(given, work))


def run(steps: Steps[T]) -> T:
    """Run a procedure to its end."""
    try:
        call = next(steps)
        while True:
            try:
                value = call.sync()
            except BaseException as error:  # noqa: BLE001 - the procedure decides
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        returned: T = end.value
        return returned


async def arun(steps: Steps[T]) -> T:
    """Like :func:`run`, awaiting what is called."""
    try:
        call = next(steps)
        while True:
            try:
                value = await call.awaited()
            except BaseException as error:  # noqa: BLE001 - the procedure decides
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        returned: T = end.value
        return returned
