"""What is a source: something with a name that can be read as documents?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.documents import Document

__all__ = ["ChunkerLike", "ReadSource", "Source"]


class Source(Protocol):
    """Something that is kept in step: a file, a page of a wiki, a row of a table."""

    @property
    def source(self) -> str:
        """Its name, unique in its collection, such as a path relative to a folder."""

    @property
    def size_bytes(self) -> int:
        """Its size; together with ``modified`` it tells whether to read it again."""

    @property
    def modified(self) -> float:
        """When it was last changed, in seconds since the epoch."""

    def documents(self) -> Iterator[Document]:
        """Read it. Any ``CormorantError`` or ``OSError`` raised here is this source's alone."""


class ChunkerLike(Protocol):
    """Cuts documents into chunks, always alike for the same settings."""

    def chunk(self, documents: Any) -> Iterator[Document]:
        """Chunks in order, each with a copy of its document's metadata."""

    def settings(self) -> dict[str, Any]:
        """JSON-able; equal settings cut alike."""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A source from its parts.

    Attributes:
        source, size_bytes, modified: As in :class:`Source`.
        read: Reads it.
    """

    source: str
    size_bytes: int
    modified: float
    read: Callable[[], Iterator[Document]]

    def documents(self) -> Iterator[Document]:
        """Read it."""
        return self.read()
