"""Which small chunks are searched, and which large ones are read?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.documents import Document

from cormorant import defaults
from cormorant.errors import ConfigError
from cormorant.ingest.chunkers.base import Chunker, Span, check_sizes
from cormorant.ingest.chunkers.recursive import cut

__all__ = ["HierarchicalChunker"]


class HierarchicalChunker(Chunker):
    """Small chunks for searching, each inside a large one for reading.

    ``chunk()`` yields the small ones; each knows its large one as ``parent`` (its number in the
    document, from 0), ``parent_start`` and ``parent_end``. ``families()`` yields both.

    Args:
        parent_size: Of a large chunk, in characters.
        size: Of a small one.
        overlap: Of small ones inside a large one; large ones do not overlap.

    Raises:
        ConfigError: On sizes out of their range.
    """

    def __init__(
        self,
        parent_size: int = 4 * defaults.CHUNK_SIZE,
        size: int = defaults.CHUNK_SIZE,
        overlap: int = defaults.CHUNK_OVERLAP,
    ) -> None:
        check_sizes(size, overlap)
        if not isinstance(parent_size, int) or parent_size < size:
            raise ConfigError(f"parent_size must be at least size; got {parent_size} and {size}.")
        self.parent_size, self.size, self.overlap = parent_size, size, overlap

    def spans(self, text: str, metadata: dict[str, Any]) -> Iterator[tuple[Span, dict[str, Any]]]:
        """Where the small chunks lie, and in which large one."""
        del metadata
        for number, (low, high) in enumerate(cut(text, 0, len(text), self.parent_size, 0)):
            known = {"parent": number, "parent_start": low, "parent_end": high}
            for span in cut(text, low, high, self.size, self.overlap):
                yield span, known

    def families(self, documents: Iterable[Document]) -> Iterator[tuple[Document, list[Document]]]:
        """Each large chunk with the small ones inside it."""
        for document in documents:
            children: dict[int, list[Document]] = {}
            for child in self.chunk([document]):
                children.setdefault(child.metadata["parent"], []).append(child)
            for family in children.values():
                known = family[0].metadata
                text = document.page_content[known["parent_start"] : known["parent_end"]]
                own = {**document.metadata, "start_index": known["parent_start"]}
                yield Document(text, metadata=own), family

    def settings(self) -> dict[str, Any]:
        """The arguments."""
        return {"parent_size": self.parent_size, "size": self.size, "overlap": self.overlap}
