"""What ran inside what, how long, and what came out?

Off until someone listens; then :func:`span` costs one attribute read and hands out a shared object
that does nothing. A span knows its parent, also across ``await`` and in the threads that work is
handed to with its context.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

if TYPE_CHECKING:
    from cormorant.model import Hit, Stage

__all__ = ["Silence", "Sink", "Span", "listen", "span"]


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Span:
    """One part of a call, from ``with`` to the end of the block.

    While it runs, :meth:`count`, :meth:`note` and :meth:`tell` add to it. What is told is kept as
    it is and not copied, so that a traced search costs little more than one that is not.

    Attributes:
        name: What was done, such as ``search.vector``.
        attributes: What it was done with; JSON values, never content.
        hits: What was found, best first; None where nothing is looked for.
        stages: What it did one after the other, where these are no spans of their own.
        parent: The span it happened inside of, if any.
        started_s: Seconds since the epoch.
        seconds: Wall time, once it ended.
        ended: Whether it did.
        counters: Work done, by name.
        error: Name of the exception class that ended it, if one did.
    """

    __slots__ = (
        "_began",
        "_children",
        "_content",
        "_id",
        "_token",
        "attributes",
        "counters",
        "ended",
        "error",
        "hits",
        "name",
        "parent",
        "seconds",
        "stages",
        "started_s",
    )

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        # As little as can be: a search makes half a dozen of these.
        self.name = name
        self.attributes = attributes
        self.hits: Sequence[Hit] | None = None
        self.stages: Sequence[Stage] = ()
        self.seconds = 0.0
        self.ended = False
        self.counters: Mapping[str, int] = _NOTHING
        self.error: str | None = None
        self._children: list[Span] | None = None
        self._content: dict[str, Any] | None = None
        self._id: str | None = None

    @property
    def children(self) -> Sequence[Span]:
        """The spans that happened inside of it, as they began."""
        return self._children or ()

    @property
    def content(self) -> Mapping[str, Any]:
        """Texts of the caller's: questions, answers. Sinks leave it out unless asked."""
        return self._content or _NOTHING

    @property
    def id(self) -> str:
        """16 hexadecimal digits, drawn."""
        if self._id is None:
            self._id = secrets.token_hex(8)
        return self._id

    @property
    def root(self) -> Span:
        """The outermost span it is in; itself, if it is in none."""
        outermost = self
        while outermost.parent is not None:
            outermost = outermost.parent
        return outermost

    def count(self, counters: Mapping[str, int]) -> None:
        """Add to the span's counters."""
        if not self.counters:
            self.counters = counters
            return
        total = dict(self.counters)
        for name, number in counters.items():
            total[name] = total.get(name, 0) + number
        self.counters = total

    def note(self, **attributes: Any) -> None:
        """Add attributes that were not known at the beginning; JSON values, no content."""
        self.attributes.update(attributes)

    def tell(
        self,
        *,
        hits: Sequence[Hit] | None = None,
        stages: Sequence[Stage] = (),
        **content: Any,
    ) -> None:
        """Add what was found, the stages it took, and texts: sinks leave these out unless asked."""
        if hits is not None:
            self.hits = hits
        if stages:
            self.stages = stages
        if content:
            self._content = {**(self._content or {}), **content}

    def adopt(self, child: Span) -> None:
        """Take a span among the children."""
        if self._children is None:
            self._children = [child]
        else:
            self._children.append(child)

    def __enter__(self) -> Self:
        parent = self.parent = _current.get()
        if parent is not None:
            parent.adopt(self)
        self._token = _current.set(self)
        self.started_s = time.time()
        self._began = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self.ended = True
        if kind is not None:
            self.error = kind.__name__
        _current.reset(self._token)
        for sink in _sinks:
            sink(self)


class Silence:
    """What nobody listens to: takes all that a span takes, and keeps nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def count(self, counters: Mapping[str, int]) -> None:
        """Nothing."""

    def note(self, **attributes: Any) -> None:
        """Nothing."""

    def tell(
        self,
        *,
        hits: Sequence[Hit] | None = None,
        stages: Sequence[Stage] = (),
        **content: Any,
    ) -> None:
        """Nothing."""


Sink: TypeAlias = Callable[[Span], None]
"""Called with each span as it ends, in the thread it ran in: inner before outer. Must not raise."""

_SILENCE = Silence()
_sinks: tuple[Sink, ...] = ()
_current: ContextVar[Span | None] = ContextVar("cormorant_span", default=None)


def span(name: str, **attributes: Any) -> Span | Silence:
    """A context manager around a part of a call."""
    return Span(name, attributes) if _sinks else _SILENCE


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
