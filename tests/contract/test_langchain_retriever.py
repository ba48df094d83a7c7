"""LangChain's own conformance suite for retrievers: all of it, no xfail, by every search type."""

from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from cormorant.langchain import Cormorant, CormorantRetriever

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
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CormorantRetriever

    @property
    def retriever_query_example(self) -> str:
        return "a fish"


class TestSimilarity(Suite):
    __test__ = True

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store}


class TestHybrid(Suite):
    __test__ = True

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store, "search_type": "hybrid"}


class TestText(Suite):
    __test__ = True

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store, "search_type": "text"}


class TestMmr(Suite):
    __test__ = True

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store, "search_type": "mmr"}
