"""LangChain's own conformance suite for the retrievers that change a question or an order."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    BoostRetriever,
    DecompositionRetriever,
    FreshnessRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    RePhraseQueryRetriever,
    SelfQueryRetriever,
    TimeWeightedVectorStoreRetriever,
)
from cormorant.langchain.retrievers.boost import TitleHit
from cormorant.langchain.retrievers.self_query import query_constructor

TEXTS = [f"a fish number {number}" for number in range(12)]
MODEL = FakeListChatModel(responses=["a fish"]) | StrOutputParser()


@pytest.fixture(scope="module", autouse=True)
def _store() -> Any:
    with Cormorant.from_texts(TEXTS, DeterministicFakeEmbedding(size=6)) as store:
        Suite.store = store
        yield


class Suite(RetrieversIntegrationTests):
    __test__ = False
    store: Cormorant
    kind: type[BaseRetriever]

    @property
    def retriever_query_example(self) -> str:
        return "fish"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return self.kind

    @property
    def base(self) -> BaseRetriever:
        return Suite.store.as_retriever(search_type="text")


class TestMultiQuery(Suite):
    __test__ = True
    kind = MultiQueryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": self.base, "llm_chain": MODEL}


class TestDecomposition(TestMultiQuery):
    kind = DecompositionRetriever


class TestRePhrase(TestMultiQuery):
    kind = RePhraseQueryRetriever


class TestHyDE(Suite):
    __test__ = True
    kind = HyDERetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store, "llm_chain": MODEL}


class TestSelfQuery(Suite):
    __test__ = True
    kind = SelfQueryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        model = FakeListChatModel(responses=['{"query": "fish", "filter": "NO_FILTER"}'])
        return {"vectorstore": Suite.store, "llm_chain": query_constructor(model, "fish", [])}


class TestTimeWeighted(Suite):
    __test__ = True
    kind = TimeWeightedVectorStoreRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": Suite.store}


class TestFreshness(Suite):
    __test__ = True
    kind = FreshnessRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": self.base, "date_field": "day"}


class TestBoost(Suite):
    __test__ = True
    kind = BoostRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": self.base, "boosts": [TitleHit()]}
