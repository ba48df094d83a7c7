"""Every default and range, once. The docs table and the tests read this module.

Where LangChain's signatures and the engine use two names for one thing, the
LangChain name stands in the comment.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BM25_B",
    "BM25_K1",
    "BUSY_TIMEOUT_S",
    "CACHE_BYTES",
    "CHECKPOINT_MAX_DELTAS",
    "CHECKPOINT_MIN_ROWS",
    "FUSION",
    "FUSIONS",
    "LANGCHAIN_K",
    "LOCK_TIMEOUT_S",
    "MAX_DOCUMENT_BYTES",
    "MAX_FILTER_DEPTH",
    "MAX_ID_BYTES",
    "MAX_METADATA_BYTES",
    "MAX_PATTERN_LENGTH",
    "MAX_PATTERN_WILDCARDS",
    "MAX_QUERY_BYTES",
    "MAX_TEXT_BYTES",
    "METRIC",
    "METRICS",
    "MMR_FETCH_K",
    "MMR_LAMBDA",
    "MODES",
    "POOL_SIZE",
    "RRF_K",
    "STATISTICS_SAMPLE",
    "TOP_K",
    "WEIGHT",
    "leg_fetch_k",
]

TOP_K: Final = 10
LANGCHAIN_K: Final = 4  # langchain-core's ``k``
MMR_FETCH_K: Final = 20  # langchain-core's ``fetch_k``
MMR_LAMBDA: Final = 0.5  # langchain-core's ``lambda_mult``: 1 relevance only, 0 diversity only
RRF_K: Final = 60.0  # EnsembleRetriever's ``c``; Cormack et al., SIGIR 2009, ranks from 1
FUSION: Final = "z"
FUSIONS: Final = ("z", "rrf", "minmax")
WEIGHT: Final = 0.5  # each leg, until learned
MODES: Final = ("vector", "text", "hybrid")
METRIC: Final = "cosine"
METRICS: Final = ("cosine", "dot", "euclidean")

BM25_K1: Final = 1.2  # Lucene
BM25_B: Final = 0.75  # Lucene

STATISTICS_SAMPLE: Final = 2048  # rows whose scores stand for the collection's mean and deviation

MAX_TEXT_BYTES: Final = 4 * 1024 * 1024  # a record is a chunk, not a book
MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024  # a document may be a book: it is never scored
MAX_ID_BYTES: Final = 1024
MAX_METADATA_BYTES: Final = 1024 * 1024
MAX_FILTER_DEPTH: Final = 32
MAX_QUERY_BYTES: Final = 64 * 1024  # more than embedding models read; a tenth of a second to cut up
MAX_PATTERN_LENGTH: Final = 512  # characters of $like: each may be compared at each of a value's
MAX_PATTERN_WILDCARDS: Final = 64

POOL_SIZE: Final = 4  # threads of a store's own pool, which async searches run in
LOCK_TIMEOUT_S: Final = 10.0  # a second writer waits this long
BUSY_TIMEOUT_S: Final = 10.0  # SQLite's own wait
CACHE_BYTES: Final = 16 * 1024 * 1024  # SQLite's page cache, per connection
CHECKPOINT_MAX_DELTAS: Final = 512  # log rows a reader may have to replay at open
CHECKPOINT_MIN_ROWS: Final = 8192  # or records in them, whichever is larger of this and n / 8


def leg_fetch_k(top_k: int) -> int:
    """How many candidates does each leg hand to fusion by default?"""
    return max(50, 4 * top_k)
