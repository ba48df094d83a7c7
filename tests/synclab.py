"""Sources without files, a chunker without libraries and an embedder that counts, for sync."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from cormorant.ingest.sources import ReadSource
from cormorant.langchain.embeddings.probing import PROBES

DIM = 8


class CountingEmbeddings(Embeddings):
    """Vectors from a digest of the text; counts what it is asked for, probes apart."""

    model_name = "counting"

    def __init__(self):
        self.counts = Counter()
        self.calls = []
        self._lock = threading.Lock()

    @property
    def embedded(self):
        return self.counts.total()

    def embed_documents(self, texts):
        with self._lock:
            self.counts.update(text for text in texts if text not in PROBES)
            self.calls.append(len(texts))
        return [vector_of(text) for text in texts]

    def embed_query(self, text):
        return vector_of(text)


def vector_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return (np.frombuffer(digest[:DIM], np.uint8).astype(np.float32) + 1).tolist()


@dataclass
class Paragraphs:
    """Cuts at empty lines; ``limit`` is a setting that changes nothing but the settings."""

    limit: int = 0

    def chunk(self, documents):
        for document in documents:
            at = 0
            for number, text in enumerate(document.page_content.split("\n\n")):
                if text.strip():
                    metadata = {**document.metadata, "start_index": at, "chunk": number}
                    yield Document(text, metadata=metadata)
                at += len(text) + 2

    def settings(self):
        return {"limit": self.limit}


@dataclass
class Tree:
    """A folder that is a dict: name to text, and to when it was changed."""

    files: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    with_times: bool = True
    reads: Counter = field(default_factory=Counter)
    clock: float = 1_000_000.0

    def write(self, name, text):
        self.files[name] = text
        self.touch(name)

    def touch(self, name):
        self.clock += 10
        self.times[name] = self.clock

    def remove(self, name):
        del self.files[name], self.times[name]
        self.broken.discard(name)

    def rename(self, name, to):
        self.files[to], self.times[to] = self.files.pop(name), self.times.pop(name)
        self.broken.discard(to)

    def sources(self):
        return [
            ReadSource(
                name, len(text.encode("utf-8", "surrogatepass")), self.times[name], self.read(name)
            )
            for name, text in sorted(self.files.items())
        ]

    def read(self, name):
        def documents():
            self.reads[name] += 1
            if name in self.broken:
                yield Document("a page that could still be read", metadata={"source": name})
                raise OSError(f"{name} is broken")
            metadata = {"source": name}
            if self.with_times:
                metadata["modified"] = self.times[name]
            yield Document(self.files[name], metadata=metadata)

        return documents


def contents(store):
    """Every record, by id: text, metadata and vector."""
    return {
        record.id: (
            record.text,
            record.metadata,
            None if record.vector is None else np.round(record.vector, 5).tolist(),
        )
        for record in store.records(with_vectors=True)
    }
