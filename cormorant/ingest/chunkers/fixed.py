"""What does cutting by length alone make of a text?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cormorant import defaults
from cormorant.ingest.chunkers.base import Chunker, Span, check_sizes, trimmed
from cormorant.ingest.chunkers.borders import is_border, safe_cut

__all__ = ["FixedChunker"]


class FixedChunker(Chunker):
    """Chunks of so many characters, whatever stands at the cut but never within a character.

    Args:
        size: Of a chunk, in characters.
        overlap: How many of its last the next one begins with.

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
        del metadata
        start = 0
        while start < len(text):
            end = min(len(text), start + self.size)
            end = safe_cut(text, end, start)
            found = trimmed(text, start, end)
            if found is not None:
                yield found, {}
            if end >= len(text):
                return
            following = safe_cut(text, end - self.overlap, start)
            # Where the overlap would begin within a character, there is none.
            start = following if following > start and is_border(text, following) else end

    def settings(self) -> dict[str, Any]:
        """The arguments."""
        return {"size": self.size, "overlap": self.overlap}
