"""What happened? Spans around the parts of a call, handed to whoever listens.

Off until someone listens; then :func:`span` costs one attribute read and hands out a
shared object that does nothing. A span knows its parent, also across ``await``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

__all__ = ["Sink", "Span", "listen", "span"]


@dataclass(slots=True, eq=False)
class Span:
    """One part of a call.

    Attributes:
        name: What was done, such as ``search.vector``.
        attributes: What it was done with; JSON values, no content unless the caller put it in.
        parent: The span it happened inside of, if any.
        started_s: Seconds since the epoch.
        seconds: Wall time, once it ended.
        counters: Work done, by name.
        error: Name of the exception class that ended it, if one did.
    """

    name: str
    attributes: Mapping[str, Any]
    parent: Span | None = None
    started_s: float = field(default_factory=time.time)
    seconds: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    error: str | None = None

    def count(self, counters: Mapping[str, int]) -> None:
        """Add to the span's counters."""
        for name, number in counters.items():
            self.counters[name] = self.counters.get(name, 0) + number


Sink: TypeAlias = Callable[[Span], None]
"""Called with each span as it ends, in the thread it ran in: inner before outer."""

_sinks: tuple[Sink, ...] = ()
_current: ContextVar[Span | None] = ContextVar("cormorant_span", default=None)


class _Silence:
    """What nobody listens to."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def count(self, counters: Mapping[str, int]) -> None: ...


_SILENCE = _Silence()


def span(name: str, **attributes: Any) -> AbstractContextManager[Span | _Silence]:
    """A context manager around a part of a call; its value takes ``count({...})``."""
    return _spoken(name, attributes) if _sinks else _SILENCE


@contextmanager
def _spoken(name: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
    this = Span(name, attributes, parent=_current.get())
    token = _current.set(this)
    began = time.perf_counter()
    try:
        yield this
    except BaseException as error:
        this.error = type(error).__name__
        raise
    finally:
        this.seconds = time.perf_counter() - began
        _current.reset(token)
        for sink in _sinks:
            sink(this)


@contextmanager
def listen(sink: Sink) -> Iterator[None]:
    """Hand every span, of every thread, to ``sink`` while the context is open."""
    global _sinks  # noqa: PLW0603 - one switch for the process, read without a lock
    _sinks = (*_sinks, sink)
    try:
        yield
    finally:
        position = max(i for i, held in enumerate(_sinks) if held is sink)
        _sinks = _sinks[:position] + _sinks[position + 1 :]
