"""Which documents answer a question, and in which order? Retrievers over any store.

Module paths, names and arguments are langchain-classic's, so that changing an import is the
migration. Names are handed on lazily: asking for one loads that one.

A module here is a public class and its name; ``base`` is what all of them share, ``calling`` how
one calls another. What several need stands in rooms of its own:

- ``asking``: how is a language model asked, and what did it say?
- ``fusing``: how do several retrievers answer one question together?
- ``parents``: how do documents and their parts get into their stores, and find each other?
- ``rescoring``: what comes first, once something besides the question counts?
- ``self_query``: which part of a question is a filter?
- ``document_compressors``: which of these documents are worth keeping, and how much of each?
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Name to the module it lives in. One line per module, in alphabetical order.
_HOMES = {
    "AutoMergingRetriever": "auto_merging",
    "BM25Retriever": "bm25",
    "BoostRetriever": "boost",
    "ContextualCompressionRetriever": "contextual_compression",
    "DecompositionRetriever": "decomposition",
    "EnsembleRetriever": "ensemble",
    "FreshnessRetriever": "freshness",
    "HyDERetriever": "hyde",
    "HybridRetriever": "hybrid",
    "HypotheticalDocumentEmbedder": "hyde",
    "MergerRetriever": "merger_retriever",
    "MultiQueryRetriever": "multi_query",
    "MultiVectorRetriever": "multi_vector",
    "ParentDocumentRetriever": "parent_document_retriever",
    "PreviousNextRetriever": "window",
    "RePhraseQueryRetriever": "re_phraser",
    "Retriever": "base",
    "ScopedRetriever": "scoped",
    "SelfQueryRetriever": "self_query",
    "TimeWeightedVectorStoreRetriever": "time_weighted_retriever",
    "SentenceSplitter": "sentences",
    "SentenceWindowRetriever": "window",
    "with_deadline": "deadline",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of names


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
