"""Row, how near is your vector? Checking, metrics, the exact scan, and codes to scan instead.

Each index is a file behind the :class:`~cormorant.index.contract.VectorIndex` protocol. faiss
is loaded by the first search or build that needs it, never by importing this.
"""

from __future__ import annotations

from cormorant.index.vector.check import check_vector, check_vectors
from cormorant.index.vector.choice import INDEXES, IndexChoice, IndexKind
from cormorant.index.vector.coded import Coded
from cormorant.index.vector.exact import ExactIndex
from cormorant.index.vector.learning import Progress, grow, learn
from cormorant.index.vector.metric import normalise, relevance, scores
from cormorant.index.vector.pq import PqIndex
from cormorant.index.vector.questions import midpoints
from cormorant.index.vector.truth import nearest

__all__ = [
    "INDEXES",
    "Coded",
    "ExactIndex",
    "IndexChoice",
    "IndexKind",
    "PqIndex",
    "Progress",
    "check_vector",
    "check_vectors",
    "grow",
    "learn",
    "midpoints",
    "nearest",
    "normalise",
    "relevance",
    "scores",
]
