"""Which store answers for a configuration that needs another index?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from cormorant.errors import ConfigError
from cormorant.evaluate.answers import field_of
from cormorant.evaluate.tuning.point import Point
from cormorant.model import Record, StoreProtocol
from cormorant.store import Candidates, Store

__all__ = ["Chunker", "Chunking", "Searched", "Variant", "variant"]

Chunker: TypeAlias = Callable[[str, int, int], Sequence[str]]
"""A text, a chunk size and an overlap to chunks, in order."""

_BATCH: Final = 1000
_SEPARATOR: Final = "\x1f"  # between a document's id and its chunk's number


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents become records, for spaces that vary ``chunk_size``.

    Attributes:
        documents: Whole texts by id. Judgements name these ids: a document stands where the
            first of its chunks stands.
        chunker: Cuts one of them.
        embed: Makes the chunks' vectors, one a text; None for text alone.
    """

    documents: Mapping[str, str]
    chunker: Chunker
    embed: Callable[[Sequence[str]], Any] | None = None


Searched: TypeAlias = Any
"""A :class:`~cormorant.store.Store` or a scoped view of one: whatever has ``candidates``."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A store to be searched, and what its hits are called in the judgements.

    Attributes:
        store: With ``candidates``.
        document_of: A record's id to the judged one; None if they are the same.
        by: The metadata field that is judged instead of an id; None for the id.
    """

    store: Searched
    document_of: Callable[[str], str] | None = None
    by: str | None = None

    def ids(self, candidates: Candidates) -> list[str]:
        """Each candidate's id, as the judgements name it."""
        if self.by is not None:
            return [str(field_of(each, self.by, each.id)) for each in candidates.records]
        ids = [record.id for record in candidates.records]
        return ids if self.document_of is None else [self.document_of(each) for each in ids]


@contextmanager
def variant(
    store: Searched, point: Point, chunking: Chunking | None, by: str | None = None
) -> Iterator[Variant]:
    """The store a configuration searches; one that is built for it goes when the block ends.

    Args:
        store: As it is.
        point: Whose index is wanted.
        chunking: Needed if it has a ``chunk_size``; then a chunk is judged by its document's id.
        by: The metadata field that the store's own records are judged by.

    Raises:
        ConfigError: If the configuration chunks, and nothing says how.
    """
    if not any(each is not None for each in point.index):
        yield Variant(store, by=by)
        return
    if point.chunk_size is not None and chunking is None:
        raise ConfigError(
            "The space varies chunk_size, and nothing says how to chunk: give "
            "chunking=Chunking(documents, chunker, embed)."
        )
    config = store.config
    with (
        TemporaryDirectory(prefix="cormorant-tune-") as folder,
        Store.open(
            Path(folder) / "store",
            metric=config.metric,
            language=point.language or config.analyzer["language"],
            bm25_k1=config.bm25_k1 if point.bm25_k1 is None else point.bm25_k1,
            bm25_b=config.bm25_b if point.bm25_b is None else point.bm25_b,
        ) as built,
    ):
        if point.chunk_size is None or chunking is None:
            _fill(built, store.records(with_vectors=True))
            yield Variant(built, by=by)
        else:
            for batch in _batched(_chunks(chunking, point)):
                _fill(built, _embedded(batch, chunking))
            yield Variant(built, _document_of)


def _fill(store: StoreProtocol, records: Iterable[Record]) -> None:
    for batch in _batched(records):
        store.add(batch)


def _batched(records: Iterable[Record]) -> Iterator[list[Record]]:
    rest = iter(records)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _chunks(chunking: Chunking, point: Point) -> Iterator[Record]:
    size, overlap = point.chunk_size or 0, point.chunk_overlap or 0
    for id, text in chunking.documents.items():
        for number, chunk in enumerate(chunking.chunker(text, size, overlap)):
            yield Record(id=f"{id}{_SEPARATOR}{number}", text=chunk)


def _embedded(records: list[Record], chunking: Chunking) -> list[Record]:
    if chunking.embed is None:
        return records
    vectors = chunking.embed([record.text for record in records])
    return [
        Record(id=record.id, text=record.text, vector=vector)
        for record, vector in zip(records, vectors, strict=True)
    ]


def _document_of(id: str) -> str:
    return id.rpartition(_SEPARATOR)[0]
