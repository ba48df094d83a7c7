"""Which memories does a list hold, over a store that keeps no access times?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from cormorant.errors import FilterError
from cormorant.filters import parse
from cormorant.langchain.provenance import attach, of
from cormorant.ranges import is_whole

__all__ = ["ACCESSED", "CREATED", "INDEX", "Memories", "Salient", "index_of", "judge"]

INDEX: Final = "buffer_idx"
"""The metadata field that numbers memories in the order they were added."""
ACCESSED: Final = "last_accessed_at"
CREATED: Final = "created_at"

Salient = list[tuple[Document, float | None]]
"""Memories with their relevance; None where the store did not find them."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of a ``memory_stream``.

    Attributes:
        stream: Documents, the last added last.
    """

    stream: Sequence[Document]

    def next_index(self) -> int:
        """The number of the next memory."""
        return 1 + max((index_of(each) for each in self.stream), default=-1)

    def memory_of(self, fetched: Document) -> Document:
        """The memory a fetched document is; itself, after a restart."""
        return _memory(fetched, self._by_index())

    def without(self, ids: Sequence[str]) -> list[Document]:
        """The stream without the memories of these ids."""
        gone = set(ids)
        return [each for each in self.stream if each.id is None or each.id not in gone]

    def candidates(
        self,
        found: Sequence[Document],
        recent: int,
        store: VectorStore,
        admits: Callable[[Document], bool],
        salience: float | None,
    ) -> tuple[Salient, int]:
        """The memories that may be returned, and how many found documents are none.

        Args:
            found: By the store, with their relevance.
            recent: How many of the last added may be returned too, if the store has them still.
            store: That found them.
            admits: Whether one of the last added may be returned.
            salience: Relevance of those.
        """
        last = [each for each in (self.stream[-recent:] if recent else []) if admits(each)]
        gone = _gone(last, store)
        candidates: dict[int, tuple[Document, float | None]] = {
            index_of(each): (each, salience) for each in last if index_of(each) not in gone
        }
        known = self._by_index()
        strange = 0
        for each in found:
            if index_of(each) < 0:
                strange += 1
                continue
            memory = _memory(each, known)
            candidates[index_of(each)] = (attach(memory, of(each)), of(each).relevance)
        return list(candidates.values()), strange

    def touch(self, documents: Sequence[Document], at: datetime) -> None:
        """Write into the memories that these documents are when they were asked for."""
        known = self._by_index()
        for document in documents:
            memory = known.get(index_of(document))
            if memory is not None and _same(memory, document):
                memory.metadata[ACCESSED] = at

    def _by_index(self) -> dict[int, Document]:
        return {index_of(each): each for each in self.stream}


def index_of(document: Document) -> int:
    """The number of a memory; -1 if it has none."""
    number = document.metadata.get(INDEX)
    if isinstance(number, float) and number.is_integer():
        number = int(number)  # a store may know no whole numbers
    if not is_whole(number):
        return -1
    return max(-1, number)


def judge(filter: Any, scope: Mapping[str, Any] | None) -> Callable[[Document], bool]:
    """Whether a memory may be returned: none may where that cannot be told from here."""
    inside = parse(scope or {})
    if filter is None:
        return lambda document: inside.matches(document.metadata)
    if callable(filter):
        return lambda document: inside.matches(document.metadata) and bool(filter(document))
    try:
        parsed = parse(filter)
    except FilterError:
        return lambda _: False
    if parsed.uses_text:
        return lambda _: False
    return lambda document: inside.matches(document.metadata) and parsed.matches(document.metadata)


def _gone(memories: Sequence[Document], store: VectorStore) -> set[int]:
    """The numbers of the memories that the store has no more, if it can tell."""
    ids = [each.id for each in memories if each.id is not None]
    try:
        there = {each.id for each in store.get_by_ids(ids)} if ids else set()
    except NotImplementedError:
        return set()
    return {index_of(each) for each in memories if each.id is not None and each.id not in there}


def _memory(fetched: Document, known: Mapping[int, Document]) -> Document:
    memory = known.get(index_of(fetched))
    return memory if memory is not None and _same(memory, fetched) else fetched


def _same(memory: Document, fetched: Document) -> bool:
    ids = {memory.id, fetched.id} - {None}
    return len(ids) < 2 and memory.page_content == fetched.page_content
