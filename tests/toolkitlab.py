"""Every public class of the retrieval toolkit, made of parts a test can choose.

``test_toolkit_*`` walk over these tables. A class that is handed on and stands in no table fails
them, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from compressorlab import Lengths
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda

from cormorant.langchain import Cormorant, document_transformers, retrievers
from cormorant.langchain.filters import CormorantTranslator
from cormorant.langchain.retrievers import document_compressors
from cormorant.langchain.retrievers.boost import Priority
from cormorant.langchain.retrievers.self_query.base import query_constructor

QUESTION = "which fish"
NOTES = [
    Document(f"fish note {number}: boats and birds", id=f"n#{number}0", metadata={"year": 2020})
    for number in range(6)
]


class Letters(Embeddings):
    """Texts by their words; nothing in it that could not be pickled."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.01] * 16
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 16] += 1.0
        return vector


class Service:
    """A hosted reranker that scores by length."""

    def rerank(self, *, query, documents, top_n, model):
        order = sorted(range(len(documents)), key=lambda i: -len(documents[i]))
        return SimpleNamespace(
            results=[
                SimpleNamespace(index=i, relevance_score=len(documents[i]) / 100)
                for i in order[:top_n]
            ]
        )


def always(query: str, document: Document) -> float:
    """A boost that changes nothing."""
    return 1.0


def as_text(given: Any) -> str:
    """Whatever a chain is given, as a prompt."""
    return str(given)


@dataclass
class Parts:
    """What the classes are made of."""

    embeddings: Any = field(default_factory=Letters)
    cross_encoder: Any = field(default_factory=Lengths)
    client: Any = field(default_factory=Service)
    path: Any = None
    llm: Callable[[str], Any] = lambda reply: FakeListChatModel(responses=[reply])
    child: Callable[[Any], Any] = lambda retriever: retriever  # what is put around each child

    def __post_init__(self) -> None:
        self.stores: list[Cormorant] = []

    def store(self) -> Cormorant:
        """One over the notes."""
        made = self.empty()
        made.add_documents(NOTES)
        return made

    def empty(self) -> Cormorant:
        where = None if self.path is None else self.path / f"kb{len(self.stores)}"
        made = Cormorant(self.embeddings, path=where)
        self.stores.append(made)
        return made

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def words(self) -> Any:
        return self.child(self.store().as_retriever(search_type="text", k=4))

    def vectors(self) -> Any:
        return self.child(self.store().as_retriever(k=4))

    def chain(self, reply: str) -> Any:
        """A model's reply as text."""
        return RunnableLambda(as_text) | self.llm(reply) | StrOutputParser()


def _compressor(parts: Parts) -> Any:
    return document_compressors.CrossEncoderReranker(model=parts.cross_encoder, top_n=2)


# Name to the arguments of its constructor.
RETRIEVERS: dict[str, Callable[[Parts], dict[str, Any]]] = {
    "AutoMergingRetriever": lambda p: {
        "vectorstore": p.empty(),
        "child_splitter": retrievers.SentenceSplitter(),
    },
    "BM25Retriever": lambda p: {"vectorstore": p.store()},
    "BoostRetriever": lambda p: {"retriever": p.words(), "boosts": [Priority("year", {2020: 2.0})]},
    "ContextualCompressionRetriever": lambda p: {
        "base_compressor": _compressor(p),
        "base_retriever": p.words(),
    },
    "DecompositionRetriever": lambda p: {
        "retriever": p.words(),
        "llm_chain": p.chain("fish notes?"),
    },
    "EnsembleRetriever": lambda p: {"retrievers": [p.words(), p.vectors()]},
    "FreshnessRetriever": lambda p: {"retriever": p.words(), "date_field": "year"},
    "HyDERetriever": lambda p: {"vectorstore": p.store(), "llm_chain": p.chain("A fish swims.")},
    "HybridRetriever": lambda p: {
        "vector_retriever": p.vectors(),
        "keyword_retriever": p.words(),
    },
    "MergerRetriever": lambda p: {"retrievers": [p.words(), p.vectors()]},
    "MultiQueryRetriever": lambda p: {"retriever": p.words(), "llm_chain": p.chain("fish notes?")},
    "MultiVectorRetriever": lambda p: {"vectorstore": p.empty()},
    "ParentDocumentRetriever": lambda p: {
        "vectorstore": p.empty(),
        "child_splitter": retrievers.SentenceSplitter(),
    },
    "PreviousNextRetriever": lambda p: {"retriever": p.words(), "vectorstore": p.store()},
    "RePhraseQueryRetriever": lambda p: {
        "retriever": p.words(),
        "llm_chain": p.chain("fish notes"),
    },
    "ScopedRetriever": lambda p: {"retriever": p.words(), "scope": {"year": 2020}},
    "SelfQueryRetriever": lambda p: {
        "vectorstore": p.store(),
        "query_constructor": query_constructor(
            p.llm('{"query": "fish", "filter": "NO_FILTER"}'), "notes", []
        ),
        "structured_query_translator": CormorantTranslator(),
    },
    "SentenceWindowRetriever": lambda p: {"vectorstore": p.empty()},
    "TimeWeightedVectorStoreRetriever": lambda p: {"vectorstore": p.empty()},
}
COMPRESSORS: dict[str, Callable[[Parts], dict[str, Any]]] = {
    "CohereRerank": lambda p: {"client": p.client, "model": "m"},
    "CrossEncoderReranker": lambda p: {"model": p.cross_encoder},
    "DocumentCompressorPipeline": lambda p: {"transformers": [_compressor(p)]},
    "EmbeddingsFilter": lambda p: {"embeddings": p.embeddings},
    "EmbeddingsRedundantFilter": lambda p: {"embeddings": p.embeddings},
    "HostedReranker": lambda p: {"client": p.client, "model": "m"},
    "LLMChainExtractor": lambda p: {"llm_chain": p.chain("fish note")},
    "LLMChainFilter": lambda p: {"llm_chain": p.chain("YES")},
    "LLMListwiseRerank": lambda p: {
        "reranker": document_compressors.LLMListwiseRerank.from_llm(p.llm("[1] > [0]")).reranker
    },
    "LLMPointwiseRerank": lambda p: {"llm_chain": p.chain("7")},
    "LongContextReorder": lambda p: {},
    "TokenBudgetPacker": lambda p: {"token_budget": 100},
}
OTHERS: dict[str, Callable[[Parts], dict[str, Any]]] = {
    "HypotheticalDocumentEmbedder": lambda p: {
        "base_embeddings": p.embeddings,
        "llm_chain": p.chain("A fish swims."),
    },
    "SentenceSplitter": lambda p: {},
}
# Bases, errors, functions; and what cannot be made without the extra.
NOT_MADE = {
    "Compressor",
    "HuggingFaceCrossEncoder",
    "RerankError",
    "Reranker",
    "Retriever",
    "estimate_tokens",
    "with_deadline",
}
ALL = {**RETRIEVERS, **COMPRESSORS, **OTHERS}
ROOMS = (retrievers, document_compressors, document_transformers)
_FILLED = ("AutoMergingRetriever", "ParentDocumentRetriever", "SentenceWindowRetriever")


def public() -> dict[str, Any]:
    """Everything the rooms hand on."""
    return {name: getattr(room, name) for room in ROOMS for name in room.__all__}


def make(name: str, parts: Parts | None = None, **changes: Any) -> Any:
    """One of the class, over the notes; ``changes`` to its arguments."""
    parts = Parts() if parts is None else parts
    made = public()[name](**{**ALL[name](parts), **changes})
    if name in _FILLED or name == "TimeWeightedVectorStoreRetriever":
        made.add_documents(NOTES)
    elif name == "MultiVectorRetriever":
        made.add(NOTES, [[f"what does note {number} say of fish"] for number in range(len(NOTES))])
    return made
