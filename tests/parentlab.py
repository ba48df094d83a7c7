"""Stores, splitters and an embedding by words, for tests of retrievers that return parents."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

SIZE = 256


class Words(Embeddings):
    """Texts that share words are near; counts how often a question was embedded."""

    def __init__(self) -> None:
        self.questions = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.questions += 1
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        vector = [0.01] * SIZE
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % SIZE] += 1.0
        return vector


class Lines:
    """A text splitter: a chunk for each line that is not blank."""

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        return [
            Document(line, metadata=document.metadata)
            for document in documents
            for line in document.page_content.split("\n")
            if line.strip()
        ]


class Pages:
    """A text splitter: a chunk for each paragraph."""

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        return [
            Document(page, metadata=dict(document.metadata))
            for document in documents
            for page in document.page_content.split("\n\n")
            if page.strip()
        ]


class Plain(InMemoryVectorStore):
    """LangChain's store in memory, with the relevance it lacks."""

    def __init__(self) -> None:
        super().__init__(Words())

    def _select_relevance_score_fn(self) -> Any:
        return lambda score: max(0.0, min(1.0, score))


class Unwilling(InMemoryStore):
    """A docstore that keeps nothing more once told so."""

    full = False

    def mset(self, key_value_pairs: Any) -> None:
        if self.full:
            raise OSError("the docstore is away")
        super().mset(key_value_pairs)

    async def amset(self, key_value_pairs: Any) -> None:
        self.mset(key_value_pairs)


def lines(*texts: str, id: str | None = None, **metadata: Any) -> Document:
    """A document of several lines."""
    return Document("\n".join(texts), id=id, metadata=metadata)


def contents(documents: Iterable[Document]) -> list[str]:
    return [document.page_content for document in documents]


def ids(documents: Iterable[Document]) -> list[str | None]:
    return [document.id for document in documents]
