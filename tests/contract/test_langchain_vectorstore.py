"""LangChain's own conformance suite for vector stores: all of it, no xfail."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from cormorant.langchain import Cormorant


class TestInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[VectorStore]:
        with Cormorant(self.get_embeddings()) as store:
            yield store


class TestOnDisk(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with Cormorant(self.get_embeddings(), path=tmp_path / "kb") as store:
            yield store


class TestEuclidean(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[VectorStore]:
        with Cormorant(self.get_embeddings(), metric="euclidean") as store:
            yield store


class TestScoped(VectorStoreIntegrationTests):
    """A scope that checks and does not stamp leaves the documents as the suite wants them."""

    @pytest.fixture
    def vectorstore(self) -> Iterator[VectorStore]:
        with Cormorant(self.get_embeddings()) as store:
            store.scope(tenant="other").add_texts(["foo", "bar", "baz"])
            yield store.scope(tenant={"$exists": False})
