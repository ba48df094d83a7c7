"""How is a document cut along its own structure: headings of Markdown, definitions of code?"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from typing import Any, Final

from cormorant import defaults
from cormorant.ingest.chunkers.base import Chunker, Span, check_sizes
from cormorant.ingest.chunkers.recursive import SEPARATORS, cut

__all__ = ["StructuralChunker"]

_HEADING: Final = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_FENCE: Final = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_CODE: Final = (
    # Before what begins at the margin after an empty line; each run of those is looked at once.
    r"(?<=\S)[^\S\n]*+\n(?:[^\S\n]*+\n)+(?=[^\s})\]])",
    r"\n[^\S\n]*\n",
    r"\n",
    r"\s+",
)


class StructuralChunker(Chunker):
    """Markdown by headings, code by definitions, everything else at the best places there are.

    A chunk of Markdown never spans two headings, and has the headings above it under ``section``,
    joined by " > ". Pages, sheets and sections of other formats are documents of their own already.

    Args:
        size: Of a chunk, at most, in characters.
        overlap: How much of a chunk's end the next one of the same section may begin with.

    Raises:
        ConfigError: On sizes out of their range.
    """

    def __init__(
        self, size: int = defaults.CHUNK_SIZE, overlap: int = defaults.CHUNK_OVERLAP
    ) -> None:
        check_sizes(size, overlap)
        self.size, self.overlap = size, overlap

    def spans(self, text: str, metadata: dict[str, Any]) -> Iterator[tuple[Span, dict[str, Any]]]:
        """Where the chunks lie."""
        if metadata.get("type") == "markdown":
            for start, end, section in _sections(text):
                known = {"section": section} if section else {}
                for span in cut(text, start, end, self.size, self.overlap):
                    yield span, known
            return
        separators = _CODE if metadata.get("type") == "code" else SEPARATORS
        for span in cut(text, 0, len(text), self.size, self.overlap, separators):
            yield span, {}

    def settings(self) -> dict[str, Any]:
        """The arguments."""
        return {"size": self.size, "overlap": self.overlap}


def _sections(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and headings of each part of a Markdown text."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    path: list[str | None] = [None] * 6
    start = 0
    for match in _HEADING.finditer(text):
        if bisect(fences, match.start()) % 2:
            continue  # a comment in code
        yield start, match.start(), " > ".join(each for each in path if each)
        level = len(match[1]) - 1
        path[level:] = [match[2], *[None] * (5 - level)]
        start = match.start()
    yield start, len(text), " > ".join(each for each in path if each)
