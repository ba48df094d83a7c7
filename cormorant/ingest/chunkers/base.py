"""What is a chunker, and what do all share?"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from langchain_core.documents import Document

from cormorant.errors import ConfigError
from cormorant.ranges import check_whole

__all__ = ["Chunker", "ChunkingWarning", "Length", "Span", "check_sizes", "trimmed"]

Span: TypeAlias = tuple[int, int]
Length: TypeAlias = Callable[[str], int]
"""How long a text is, such as a tokenizer's count; None: in characters."""


class ChunkingWarning(UserWarning):
    """A way of cutting that loses what stands at the cuts."""


class Chunker(ABC):
    """Cuts documents into chunks, always alike for the same settings."""

    @abstractmethod
    def spans(self, text: str, metadata: dict[str, Any]) -> Iterable[tuple[Span, dict[str, Any]]]:
        """Where the chunks of one text lie, in order, and what is known of each."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """JSON-able; equal settings cut alike."""

    def chunk(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Chunks in order, document after document.

        Yields:
            Documents with a copy of their document's metadata, and ``start_index``: the first
            character's place in the document's text. ``text[start_index:][:len(chunk)] == chunk``.
        """
        for document in documents:
            for (start, end), known in self.spans(document.page_content, document.metadata):
                metadata = {**copy.deepcopy(document.metadata), **known, "start_index": start}
                yield Document(document.page_content[start:end], metadata=metadata)


def check_sizes(size: int, overlap: int) -> None:
    """Refuse sizes that cannot be, and warn of cuts without overlap.

    Raises:
        ConfigError: If one is out of its range.
    """
    check_whole("size", size, error=ConfigError)
    check_whole("overlap", overlap, 0, error=ConfigError)
    if overlap >= size:
        raise ConfigError(f"overlap must be less than size; got {overlap} and {size}.")
    if overlap == 0:
        warnings.warn(
            "overlap is 0: what stands across a cut is in no chunk as a whole. A tenth of the size "
            "keeps it.",
            ChunkingWarning,
            stacklevel=3,
        )


_SPACE: Final = " \t\r\n\f\v\u3000\u00a0\u2028\u2029"


def trimmed(text: str, start: int, end: int) -> Span | None:
    """The span without space around it; None if nothing else is in it."""
    part = text[start:end]
    inner = part.strip(_SPACE)
    if not inner.strip():
        return None
    left = start + len(part) - len(part.lstrip(_SPACE))
    return left, left + len(inner)
