"""How does the shipped corpus become a store?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from cormorant import data
from cormorant.model import Record

if TYPE_CHECKING:
    from cormorant.store import Store

__all__ = ["Embed", "fill", "record_id"]

Embed: TypeAlias = Callable[[Sequence[Record]], list[Record]]
"""Gives records their vectors; the identity for a store that is searched by text alone."""

_BATCH = 32


def record_id(language: str, document: str) -> str:
    """The record that holds a paragraph: paragraph ids are the same in both languages."""
    return f"{language}-{document}"


def fill(store: Store, embed: Embed) -> Iterator[int]:
    """Add every paragraph of both languages; yields the count of each batch once it is stored."""
    records = [
        Record(record_id(language, document), text, metadata={"language": language})
        for language in data.LANGUAGES
        for document, text in data.documents(language).items()
    ]
    for start in range(0, len(records), _BATCH):
        batch = records[start : start + _BATCH]
        store.add(embed(batch))
        yield len(batch)
