"""LangChain's own suites for document indexes, over a Cormorant."""

from __future__ import annotations

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)

from cormorant.langchain import Cormorant
from cormorant.langchain.indexing import CormorantDocumentIndex


class TestDocumentIndex(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self, tmp_path):
        with Cormorant(DeterministicFakeEmbedding(size=4), path=tmp_path / "kb") as vs:
            yield CormorantDocumentIndex(vectorstore=vs)


class TestAsyncDocumentIndex(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self, tmp_path):
        with Cormorant(DeterministicFakeEmbedding(size=4), path=tmp_path / "kb") as vs:
            yield CormorantDocumentIndex(vectorstore=vs)
