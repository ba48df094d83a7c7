"""LangChain's own conformance suite for the retrievers that return more than what was found."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    AutoMergingRetriever,
    ParentDocumentRetriever,
    SentenceSplitter,
    SentenceWindowRetriever,
)

DOCUMENTS = [Document(f"A fish. Boat {number}.", id=str(number)) for number in range(8)]


class Suite(RetrieversIntegrationTests):
    __test__ = False
    kind: Any
    splits = True

    @property
    def retriever_query_example(self) -> str:
        return "fish"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        made: type[BaseRetriever] = self.kind
        return made

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        params: dict[str, Any] = {"vectorstore": Cormorant(DeterministicFakeEmbedding(size=6))}
        if self.splits:
            params["child_splitter"] = SentenceSplitter()
        self.kind(**params).add_documents(DOCUMENTS)
        return params


class TestParentDocument(Suite):
    __test__ = True
    kind = ParentDocumentRetriever


class TestAutoMerging(Suite):
    __test__ = True
    kind = AutoMergingRetriever


class TestSentenceWindow(Suite):
    __test__ = True
    kind = SentenceWindowRetriever
    splits = False
