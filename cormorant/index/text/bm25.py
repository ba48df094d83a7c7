"""What is a posting worth? BM25, as Lucene computes it.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009,
eq. 3.15, with Lucene's idf, which is never negative, and without the constant factor k1 + 1:

    score = Σ over query terms of count · idf · tf / (tf + k1 · (1 - b + b · length / average))
    idf   = ln(1 + (N - df + .5) / (df + .5))

Deviation from Lucene: lengths are exact, not rounded to one byte.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cormorant.index.text.segment import Postings

__all__ = ["Formula"]


@dataclass(frozen=True, slots=True)
class Formula:
    """BM25 for one state of the collection.

    Attributes:
        records: N, live records, those without text included.
        average: Terms per live record; 0 if there are none.
        k1: How soon further occurrences stop counting, at least 0.
        b: How much a long text is held against it, in [0, 1].
    """

    records: int
    average: float
    k1: float
    b: float

    def idf(self, df: int) -> float:
        """How telling a term is that ``df`` live records have."""
        return math.log1p((self.records - df + 0.5) / (df + 0.5))

    @property
    def slope(self) -> np.float32:
        """What a term more in a record adds to its norm."""
        return np.float32(self.k1 * self.b / self.average if self.average else 0.0)

    @property
    def base(self) -> np.float32:
        """The norm of a record without terms."""
        return np.float32(self.k1 * (1.0 - self.b))

    def saturation(
        self, postings: Postings, weight: np.float32 | NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """``weight · tf / (tf + k1 · …)`` for each posting.

        The same float32 operations in the same order wherever a score is needed, so a score
        looked up later is the one that ranked, to the last bit.

        Args:
            postings: Of one term, or of several.
            weight: count · idf, of the term or of each posting.
        """
        norm = postings.lengths.astype(np.float32)
        norm *= self.slope
        norm += self.base
        score = postings.tf.astype(np.float32)
        norm += score
        score /= norm
        score *= weight
        return score
