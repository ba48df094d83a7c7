"""How much CPU do adding and searching cost, against what LangChain users have today?

Every ratio is taken inside one run, from process CPU time over all threads.
Run: ``python benchmarks/bench_store.py`` (``make bench`` runs all of them).
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import corpus
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

import cormorant
from cormorant import Query


class _Given(Embeddings):
    """Hands out vectors made beforehand, so that only the stores are measured."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vectors[text]


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds, over all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def search_against_in_memory(rows: int = 10_000, dim: int = 384) -> dict[str, float]:
    """Median over rounds, each store alone in memory, so that neither pays for the other's."""
    base, asked = corpus.vectors(rows, dim), corpus.vectors(200, dim, seed=8)
    texts = [f"text {i}" for i in range(rows)]
    with cormorant.open(":memory:", dim=dim) as store:
        store.add({"id": str(i), "text": texts[i], "vector": base[i]} for i in range(rows))
        ours = rounds(lambda: [store.search(Query(vector=q, mode="vector")) for q in asked]) / 200
    peer = InMemoryVectorStore(_Given(dict(zip(texts, base.tolist(), strict=True))))
    peer.add_texts(texts)
    some = [q.tolist() for q in asked[:5]]
    theirs = rounds(lambda: [peer.similarity_search_by_vector(q, k=10) for q in some]) / 5
    return {"in_memory_ms": 1000 * theirs, "cormorant_ms": 1000 * ours, "ratio": theirs / ours}


def rounds(work: Callable[[], object], count: int = 5) -> float:
    """Median CPU seconds of ``count`` rounds, after one that warms up."""
    work()
    return statistics.median(cpu_s(work) for _ in range(count))


def adding(rows: int = 20_000, dim: int = 384, batch: int = 1000) -> dict[str, float]:
    """Durable adds: vectors without text to analyse, then passages without vectors."""
    base = corpus.vectors(rows, dim)
    folder = Path(tempfile.mkdtemp())
    try:
        with cormorant.open(folder / "vectors", dim=dim) as store:

            def add_vectors() -> None:
                for start in range(0, rows, batch):
                    store.add(
                        {"id": str(i), "vector": base[i], "metadata": {"n": i}}
                        for i in range(start, start + batch)
                    )

            vectors_s = cpu_s(add_vectors)
        some = corpus.passages(rows)
        with cormorant.open(folder / "texts") as store:

            def add_texts() -> None:
                for start in range(0, rows, batch):
                    store.add(
                        {
                            "id": str(p["id"]),
                            "text": p["text"],
                            "metadata": {k: p[k] for k in ("tenant", "year", "doctype")},
                        }
                        for p in some[start : start + batch]
                    )

            texts_s = cpu_s(add_texts)
    finally:
        shutil.rmtree(folder)
    return {"vectors_per_cpu_s": rows / vectors_s, "passages_per_cpu_s": rows / texts_s}


def main() -> None:
    figures = {
        "corpus": corpus.source(),
        "numpy": np.__version__,
        "search 10k x 384 against InMemoryVectorStore (goal: ratio >= 100)": (
            search_against_in_memory()
        ),
        "durable add (goal: 20k vectors, 4k passages a CPU-second)": adding(),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
