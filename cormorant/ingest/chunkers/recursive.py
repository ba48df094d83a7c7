"""How is a text cut where it cuts itself: at paragraphs, lines, sentences, words?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from cormorant import defaults
from cormorant.ingest.chunkers.base import Chunker, Length, Span, check_sizes, trimmed
from cormorant.ingest.chunkers.borders import safe_cut

__all__ = ["SEPARATORS", "RecursiveChunker", "cut"]

SEPARATORS: Final[tuple[str, ...]] = (
    r"\n[^\S\n]*\n\s*",  # paragraphs
    r"\n",
    r"[。！？!?…]+[\"'”’」』）)]*\s*|(?<!\.)\.++[\"'”’)]*+\s++",  # sentences, Chinese ones too
    r"[，、；：,;:]\s*",
    r"\s+",
)
"""Patterns after which a text may be cut, the best first; then anywhere between characters."""


class RecursiveChunker(Chunker):
    """Chunks as large as they may be, cut at the best places there are.

    Args:
        size: Of a chunk, at most, in characters; or as ``length`` counts.
        overlap: How much of a chunk's end the next one may begin with, at most.
        separators: Patterns after which to cut, the best first.
        length: How long a text is; None: in characters.

    Raises:
        ConfigError: On sizes out of their range.

    Example:
        >>> from langchain_core.documents import Document
        >>> text = "Cormorants dive. They bring the fish back. Nets dry in the sun."
        >>> chunks = RecursiveChunker(40, 20).chunk([Document(text)])
        >>> [(chunk.metadata["start_index"], chunk.page_content) for chunk in chunks]
        [(0, 'Cormorants dive.'), (17, 'They bring the fish back.'), (43, 'Nets dry in the sun.')]
    """

    def __init__(
        self,
        size: int = defaults.CHUNK_SIZE,
        overlap: int = defaults.CHUNK_OVERLAP,
        *,
        separators: Sequence[str] = SEPARATORS,
        length: Length | None = None,
    ) -> None:
        check_sizes(size, overlap)
        self.size, self.overlap = size, overlap
        self.separators = tuple(separators)
        self.length = length

    def spans(self, text: str, metadata: dict[str, Any]) -> Iterator[tuple[Span, dict[str, Any]]]:
        """Where the chunks lie."""
        del metadata
        for span in cut(text, 0, len(text), self.size, self.overlap, self.separators, self.length):
            yield span, {}

    def settings(self) -> dict[str, Any]:
        """The arguments."""
        told: dict[str, Any] = {"size": self.size, "overlap": self.overlap}
        if self.separators != SEPARATORS:
            told["separators"] = list(self.separators)
        if self.length is not None:
            told["length"] = getattr(self.length, "__qualname__", type(self.length).__qualname__)
        return told


def cut(
    text: str,
    start: int,
    end: int,
    size: int,
    overlap: int,
    separators: Sequence[str] = SEPARATORS,
    length: Length | None = None,
) -> Iterator[Span]:
    """Spans of a part of a text, each at most ``size`` long, without space around them."""
    measure = _Measure(text, length)
    patterns = [re.compile(each) for each in separators]
    pieces = list(_pieces(measure, start, end, size, patterns))
    first = 0
    while first < len(pieces):
        last = first
        while last + 1 < len(pieces):
            if measure(pieces[first][0], pieces[last + 1][1]) > size:
                break
            last += 1
        found = trimmed(text, pieces[first][0], pieces[last][1])
        if found is not None:
            yield found
        if last + 1 >= len(pieces):
            return
        following = last + 1
        room = size - measure(*pieces[following])
        while (
            following - 1 > first
            and measure(pieces[following - 1][0], pieces[last][1]) <= min(overlap, room)
            and measure(pieces[following - 1][0], pieces[last + 1][1]) <= size
        ):
            following -= 1
        first = following


class _Measure:
    """How long a part of the text is."""

    def __init__(self, text: str, length: Length | None) -> None:
        self.text = text
        self._length = length

    def __call__(self, start: int, end: int) -> int:
        return end - start if self._length is None else self._length(self.text[start:end])


def _pieces(
    measure: _Measure, start: int, end: int, size: int, separators: Sequence[re.Pattern[str]]
) -> Iterator[Span]:
    """Parts that need no further cut, contiguous from ``start`` to ``end``."""
    waiting = [(start, end, 0)]
    while waiting:
        low, high, level = waiting.pop()
        if measure(low, high) <= size:
            yield low, high
            continue
        if level >= len(separators):
            yield from _anywhere(measure, low, high, size)
            continue
        places = [low]
        for match in separators[level].finditer(measure.text, low, high):
            if low < match.end() < high and match.end() > places[-1]:
                places.append(match.end())
        places.append(high)
        waiting.extend((a, b, level + 1) for a, b in reversed(list(pairwise(places))))


def _anywhere(measure: _Measure, low: int, high: int, size: int) -> Iterator[Span]:
    while measure(low, high) > size:
        step = size
        while step > 1 and measure(low, low + step) > size:
            step = max(1, step * size // measure(low, low + step) - 1)
        place = safe_cut(measure.text, low + step, low)
        yield low, place
        low = place
    if low < high:
        yield low, high
