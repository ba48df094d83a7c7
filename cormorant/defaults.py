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
    "CALLS_AT_ONCE",
    "CHECKPOINT_MAX_DELTAS",
    "CHECKPOINT_MIN_ROWS",
    "CHUNK_OVERLAP",
    "CHUNK_SIZE",
    "CONFIDENCE",
    "CROSS_ENCODER_BATCH",
    "DECAY_RATE",
    "EMBEDDINGS_FILTER_K",
    "EMBEDDING_BATCH_TEXTS",
    "EMBEDDING_BATCH_TOKENS",
    "EMBEDDING_CALLS_AT_ONCE",
    "EMBEDDING_FIRST_WAIT_S",
    "EMBEDDING_LONGEST_WAIT_S",
    "EMBEDDING_TRIES",
    "FUSION",
    "FUSIONS",
    "HALF_LIFE_DAYS",
    "HOSTED_BATCH",
    "HYBRID_KEYWORD_WEIGHT",
    "HYBRID_TOP_K",
    "HYBRID_VECTOR_WEIGHT",
    "HYDE_PASSAGES",
    "INDEX_MIN_ROWS",
    "JUDGED_DEPTH",
    "KAPPA",
    "KAPPA_LABELS",
    "LANGCHAIN_K",
    "LARGE_K",
    "LISTWISE_WINDOW",
    "LOCK_TIMEOUT_S",
    "MAX_DOCUMENT_BYTES",
    "MAX_FILTER_DEPTH",
    "MAX_ID_BYTES",
    "MAX_METADATA_BYTES",
    "MAX_PATTERN_LENGTH",
    "MAX_PATTERN_WILDCARDS",
    "MAX_QUERY_BYTES",
    "MAX_QUESTIONS",
    "MAX_STRAGGLERS",
    "MAX_TEXT_BYTES",
    "MERGE_CANDIDATES",
    "MERGE_RATIO",
    "METRIC",
    "METRICS",
    "MMR_FETCH_K",
    "MMR_LAMBDA",
    "MODES",
    "NEIGHBOURS",
    "POOL_SIZE",
    "QUERY_TOKENS",
    "QUERY_VARIANTS",
    "RECALL_TARGET",
    "REDUNDANT_SIMILARITY",
    "RERANK_CANDIDATES",
    "RERANK_TOP_N",
    "RESAMPLES",
    "RESAMPLING_SEED",
    "RESCORE_FETCH_K",
    "RESCORE_K",
    "REWRITE_SHARE",
    "RRF_K",
    "SELF_QUERY_MAX_LIMIT",
    "SENTENCE_WINDOW",
    "STAGE_SHARE",
    "STATISTICS_SAMPLE",
    "SUB_QUESTIONS",
    "SYNC_CHUNKS",
    "SYNC_SOURCES_LISTED",
    "TIME_WEIGHTED_CANDIDATES",
    "TITLE_WEIGHT",
    "TOP_K",
    "TWIN_LIKENESS",
    "WATCH_INTERVAL_S",
    "WEIGHT",
    "leg_fetch_k",
]

TOP_K: Final = 10
LANGCHAIN_K: Final = 4  # langchain-core's ``k``
LARGE_K: Final = 10  # more documents than this, neither reranked nor reordered, are remarked on
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

CONFIDENCE: Final = 0.95  # of intervals; a difference is significant at 1 minus this
RESAMPLES: Final = 10_000  # of the randomisation test and the bootstrap: .05 is met to ± .002
RESAMPLING_SEED: Final = 0

JUDGED_DEPTH: Final = 10  # places of each run that are judged by hand; the usual metrics read 10
KAPPA: Final = 0.6  # a model judges like people from here on: "substantial", Landis and Koch, 1977
KAPPA_LABELS: Final = 50  # pairs it is measured on: its standard error is then about .1
TWIN_LIKENESS: Final = 0.8  # share of common words that makes two records near-duplicates

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
INDEX_MIN_ROWS: Final = 10_000  # vectors from which on codes are quicker than scanning all
RECALL_TARGET: Final = 0.99  # of the 10 nearest, which codes are chosen to reach

# The retrieval toolkit, ``cormorant.langchain.retrievers``
HYBRID_VECTOR_WEIGHT: Final = 0.7  # ``vector_weight``; a start that LangChain's users recommend
HYBRID_KEYWORD_WEIGHT: Final = 0.3  # ``keyword_weight``
HYBRID_TOP_K: Final = 5
RERANK_TOP_N: Final = 3  # ``top_n``; langchain-classic's
RERANK_CANDIDATES: Final = 4  # retrieved for each document wanted: 20 for 5
CROSS_ENCODER_BATCH: Final = 32  # pairs; sentence-transformers' own
HOSTED_BATCH: Final = 1000  # documents per request; the most that Cohere takes
LISTWISE_WINDOW: Final = 20  # documents a model orders at once; Sun et al., EMNLP 2023
EMBEDDINGS_FILTER_K: Final = 20  # ``k``; langchain-classic's
REDUNDANT_SIMILARITY: Final = 0.95  # cosine beyond which two are twins; langchain-community's
RESCORE_K: Final = 5  # ``k`` where freshness or boosts reorder
RESCORE_FETCH_K: Final = 30  # and the candidates they reorder
HALF_LIFE_DAYS: Final = 30
TITLE_WEIGHT: Final = 0.5  # what a title with every term of the question adds
DECAY_RATE: Final = 0.01  # recency lost in an hour; langchain-classic's
TIME_WEIGHTED_CANDIDATES: Final = 100  # ``search_kwargs["k"]``; langchain-classic's
QUERY_VARIANTS: Final = 3  # langchain-classic's
SUB_QUESTIONS: Final = 4
CALLS_AT_ONCE: Final = 64  # of a model, awaited; LangChain works a fifth of a millisecond on each
MAX_QUESTIONS: Final = 50  # of a model's, asked at once where nobody said how many
HYDE_PASSAGES: Final = 3
SELF_QUERY_MAX_LIMIT: Final = 100  # documents a question may ask for
MERGE_RATIO: Final = 0.5  # share of a parent's chunks that stand for the parent
MERGE_CANDIDATES: Final = 20  # chunks looked at, at least
SENTENCE_WINDOW: Final = 3  # sentences before and after
NEIGHBOURS: Final = 1  # chunks before and after

STAGE_SHARE: Final = 0.9  # of the time left: the rest is for what comes after the stage
REWRITE_SHARE: Final = 0.5  # the same, of a model that rewrites the question before the search
MAX_STRAGGLERS: Final = 16  # late calls of one stage still running, before it is asked no more

# Sync and embedding work, ``cormorant.ingest``
CHUNK_SIZE: Final = 500  # characters; a start that LangChain's users recommend
CHUNK_OVERLAP: Final = 50  # the same: a tenth of the size
EMBEDDING_BATCH_TEXTS: Final = 96  # in one request; the most that Cohere takes
EMBEDDING_BATCH_TOKENS: Final = 50_000  # in one request; OpenAI takes 300,000, Voyage 120,000
EMBEDDING_CALLS_AT_ONCE: Final = 4  # requests in flight; the local model takes one at a time
EMBEDDING_TRIES: Final = 6  # of one request, if the service is busy
EMBEDDING_FIRST_WAIT_S: Final = 1.0  # doubled with every further try, and drawn below that
EMBEDDING_LONGEST_WAIT_S: Final = 60.0  # unless the service asks for more
QUERY_TOKENS: Final = 20  # of a question, where its price is reckoned
SYNC_CHUNKS: Final = 1024  # of a transaction, at most; what a kill can lose
SYNC_SOURCES_LISTED: Final = 100  # in a shared chunk's ``sources``
WATCH_INTERVAL_S: Final = 2.0  # between two looks at the folder


def leg_fetch_k(top_k: int) -> int:
    """How many candidates does each leg hand to fusion by default?"""
    return max(50, 4 * top_k)
