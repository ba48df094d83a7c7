"""Which segments should become one, and when?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final

from cormorant.index.text.merge import merge
from cormorant.index.text.segment import Segment
from cormorant.index.text.tail import TAIL_POSTINGS

__all__ = ["AT_ONCE", "FAN_OUT", "OVERDUE", "Merge", "Merged", "due", "settle"]

FAN_OUT: Final = 4
"""This many neighbouring segments of one size become one."""

AT_ONCE: Final = 600_000
"""More postings than this are merged in the background: they take some 40 ms."""

OVERDUE: Final = 3 * FAN_OUT
"""Unless there are this many segments of one size, and so no background at work."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Neighbouring segments, and the one that holds what they do."""

    parts: tuple[Segment, ...]
    whole: Segment

    def put_into(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """The segments with ``whole`` in the place of ``parts``; as they are if one has gone."""
        count = len(self.parts)
        for at in range(len(segments) - count + 1):
            if all(map(is_, segments[at : at + count], self.parts)):
                return (*segments[:at], self.whole, *segments[at + count :])
        return segments


@dataclass(frozen=True, slots=True)
class Merge:
    """Neighbouring segments that should become one, when there is time for it."""

    parts: tuple[Segment, ...]
    n: int

    @property
    def postings(self) -> int:
        """How many are copied: what it costs."""
        return _size(self.parts)

    def run(self) -> Merged:
        """Merge them; in any thread, since nothing that anybody reads changes.

        Raises:
            CorruptionError: If a segment is damaged.
        """
        return Merged(self.parts, merge(self.parts, self.n))


def settle(segments: tuple[Segment, ...], n: int) -> tuple[Segment, ...]:
    """Merge neighbours until no :data:`FAN_OUT` at the end are of one size or smaller.

    What would take long is left for :func:`due`, but not for ever: :data:`OVERDUE` of one size
    are merged all the same, since each costs every search some microseconds.
    """
    while True:
        run = _run(segments, len(segments))
        if len(run) < FAN_OUT or (_size(run) > AT_ONCE and len(run) < OVERDUE):
            return segments
        segments = (*segments[: -len(run)], merge(run, n))


def due(segments: tuple[Segment, ...], n: int) -> Merge | None:
    """The merge that :func:`settle` left, the cheapest of several; None if there is none."""
    runs = [_run(segments, end) for end in range(1, len(segments) + 1)]
    long = [run for run in runs if len(run) >= FAN_OUT]
    if not long:
        return None
    return Merge(min(long, key=lambda run: (_level(run[-1]), -len(run))), n)


def _run(segments: tuple[Segment, ...], end: int) -> tuple[Segment, ...]:
    """The last of the first ``end`` segments, with those before it of its size or smaller."""
    level = _level(segments[end - 1])
    start = end
    while start and _level(segments[start - 1]) <= level:
        start -= 1
    return segments[start:end]


def _size(segments: Sequence[Segment]) -> int:
    return sum(len(segment.slots) for segment in segments)


def _level(segment: Segment) -> int:
    """How often its postings are :data:`FAN_OUT` times a full tail's."""
    level, size = 0, TAIL_POSTINGS * FAN_OUT
    while len(segment.slots) >= size:
        level, size = level + 1, size * FAN_OUT
    return level
