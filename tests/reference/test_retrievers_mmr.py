"""Diversity through the retriever's door against langchain-core's in-memory store.

Where that one is right: it cuts ``fetch_k`` below ``k`` silently and reverses ties, so neither
stands in these cases. The picking itself is compared in ``tests/unit/test_mmr.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import EnsembleRetriever, ScopedRetriever


class Drawn(Embeddings):
    """Each text's vector from a seeded draw; near groups, so that diversity has work to do."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.centres = self.rng.standard_normal((5, 12))
        self.known: dict[str, list[float]] = {}

    def embed_query(self, text: str) -> list[float]:
        if text not in self.known:
            near = self.centres[len(self.known) % 5] + 0.2 * self.rng.standard_normal(12)
            self.known[text] = [float(value) for value in near]
        return self.known[text]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


@pytest.mark.parametrize("seed", range(12))
def test_mmr_retrieves_what_langchain_cores_does(seed: int) -> None:
    embeddings = Drawn(seed)
    texts = [f"text {number}" for number in range(60)]
    embeddings.embed_documents([*texts, "question"])
    chance = np.random.default_rng(seed)
    arguments: dict[str, Any] = {
        "k": int(chance.integers(1, 9)),
        "fetch_k": int(chance.integers(9, 70)),
        "lambda_mult": float(chance.choice([0.0, 0.2, 0.5, 0.8, 1.0])),
    }
    core = InMemoryVectorStore(embeddings)
    core.add_texts(texts)
    wanted = core.as_retriever(search_type="mmr", search_kwargs=arguments).invoke("question")
    with Cormorant.from_texts(texts, embeddings, check_embedder=False) as vs:
        made = vs.as_retriever(search_type="mmr", **arguments)
        ways = (
            made,
            vs.as_retriever(search_type="mmr", search_kwargs=arguments),
            ScopedRetriever(retriever=made),
            EnsembleRetriever(retrievers=[made]),  # one list fused is that list
        )
        for way in ways:
            assert [d.page_content for d in way.invoke("question")] == [
                d.page_content for d in wanted
            ]


def test_diversity_changes_these_rankings() -> None:
    """Else the comparison above would tell nothing."""
    embeddings = Drawn(3)
    texts = [f"text {number}" for number in range(60)]
    embeddings.embed_documents([*texts, "question"])
    with Cormorant.from_texts(texts, embeddings, check_embedder=False) as vs:
        plain = vs.as_retriever(k=6).invoke("question")
        diverse = vs.as_retriever(search_type="mmr", k=6, fetch_k=60).invoke("question")
    assert [d.page_content for d in plain] != [d.page_content for d in diverse]
