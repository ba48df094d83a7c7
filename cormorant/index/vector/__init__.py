"""Row, how near is your vector? Checking, metrics, and the exact scan.

Approximate indexes live beside :class:`ExactIndex`, one file each, behind the same
:class:`~cormorant.index.contract.VectorIndex` protocol. Nothing here loads faiss.
"""

from __future__ import annotations

from cormorant.index.vector.check import check_vector, check_vectors
from cormorant.index.vector.exact import ExactIndex
from cormorant.index.vector.metric import normalise, relevance, scores

__all__ = ["ExactIndex", "check_vector", "check_vectors", "normalise", "relevance", "scores"]
