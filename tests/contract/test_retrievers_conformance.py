"""LangChain's own conformance suite for retrievers: every retriever of ours that takes ``k``."""

from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    BM25Retriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
)

TEXTS = [f"a fish number {number}" for number in range(12)]


@pytest.fixture(scope="module", autouse=True)
def _store() -> Any:
    with Cormorant.from_texts(TEXTS, DeterministicFakeEmbedding(size=6)) as store:
        Suite.store = store
        yield


class Suite(RetrieversIntegrationTests):
    __test__ = False
    store: Cormorant

    @property
    def retriever_query_example(self) -> str:
        return "a fish"

    @property
    def legs(self) -> list[BaseRetriever]:
        return [Suite.store.as_retriever(), Suite.store.as_retriever(search_type="text")]


class TestBM25(Suite):
    __test__ = True

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return BM25Retriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store}


class TestEnsemble(Suite):
    __test__ = True

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return EnsembleRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retrievers": self.legs, "weights": [0.5, 0.5]}


class TestMerger(Suite):
    __test__ = True

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MergerRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retrievers": self.legs}


class TestHybrid(Suite):
    """The constructor's name for k is ``top_k``; the call takes both."""

    __test__ = True

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return HybridRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        vector, text = self.legs
        return {"vector_retriever": vector, "keyword_retriever": text}

    @property
    def num_results_arg_name(self) -> str:
        return "top_k"
