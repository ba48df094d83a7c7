"""How does one index rank for this query, and what are its scores worth?

Both legs answer alike, so that fusing, thresholds and explanations know no difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import LegResult, Mask, VectorIndex
from cormorant.index.vector import relevance, scores
from cormorant.model import TermMatch

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

_ROUNDING = 1e-6

__all__ = ["Leg", "Statistics", "TextLeg", "VectorLeg"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The query's scores over the whole live collection, whatever the filter.

    Attributes:
        mean, std: Of the scores; ``std`` is 0 if they do not differ.
    """

    mean: float
    std: float

    @classmethod
    def of(cls, mean: float, std: float, largest: float) -> Statistics:
        """As computed, but with a deviation that is only rounding taken for none.

        Args:
            mean: As computed.
            std: As computed.
            largest: Magnitude of the largest score, which float32's rounding is relative to.
        """
        return cls(mean, 0.0 if std <= _ROUNDING * largest else std)

    def standard(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """How many deviations above the mean; 0 if scores do not differ or there is none."""
        wide = np.asarray(scores, dtype=np.float64)
        if not self.std:
            return np.zeros(wide.shape)
        return np.where(np.isneginf(wide), 0.0, (wide - self.mean) / self.std)


class Leg(Protocol):
    """One index asked one query.

    Attributes:
        name: ``vector`` or ``text``.
        absent: The score of a record this leg has nothing on.
    """

    name: str
    absent: float

    def fetch(self, k: int, mask: Mask | None) -> LegResult:
        """The k best of those the mask admits (None: of all)."""
        ...

    def score(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Exact scores; -inf where the leg cannot judge."""
        ...

    def statistics(self) -> Statistics:
        """Mean and deviation over the live collection, for standardising."""
        ...

    def relevance(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """In [0, 1]; 0 where the leg cannot judge."""
        ...


class VectorLeg:
    """The vector index asked a vector.

    Args:
        snapshot: Of a store that has vectors.
        index: Its vector index.
        query: float32, shape (dim,), as ``check_vector`` returns it.
    """

    name = "vector"
    absent = -np.inf

    def __init__(self, snapshot: Snapshot, index: VectorIndex, query: NDArray[np.float32]) -> None:
        self._snapshot = snapshot
        self._index = index
        self._query = query

    def fetch(self, k: int, mask: Mask | None) -> LegResult:
        """The k nearest."""
        return self._index.search(self._query, k, mask)

    def score(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Similarities."""
        return self._index.score(self._query, slots)

    def statistics(self) -> Statistics:
        """From the snapshot's sample, so they do not depend on how the index was searched."""
        rows = self._snapshot.sample_vectors()
        sample = scores(self._query, rows, self._snapshot.metric).astype(np.float64)
        return Statistics.of(float(sample.mean()), float(sample.std()), float(np.abs(sample).max()))

    def relevance(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """By metric."""
        return relevance(scores, self._snapshot.metric)


class TextLeg:
    """The text index asked the query's terms.

    Args:
        snapshot: Of the store.
        terms: From the analyzer, repeats kept; at least one.
    """

    name = "text"
    absent = 0.0

    def __init__(self, snapshot: Snapshot, terms: list[str]) -> None:
        self.terms = terms
        self._live = snapshot.n - snapshot.dead
        k1, b = snapshot.bm25
        alive = snapshot.alive if snapshot.dead else None
        self._asked = snapshot.text.ask(terms, alive=alive, k1=k1, b=b)

    def fetch(self, k: int, mask: Mask | None) -> LegResult:
        """The k best by BM25; none that holds none of the terms."""
        return self._asked.search(k=k, mask=mask)

    def score(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """BM25."""
        return self._asked.score(slots)

    def statistics(self) -> Statistics:
        """The index's own, the deviation widened by what the query asks and no record has.

        std² = variance + U² / n, U being the weight of the terms that no live record holds, n
        the number of live records: as if one record held them all. Where the collection has
        never seen most of what is asked (another language, another subject), a lone match of
        the rest would otherwise stand dozens of deviations above the mean and drown the other
        leg. Measured in docs/decisions/0010-fusion.md.
        """
        spread = self._asked.spread()
        std = math.sqrt(spread.std**2 + self._asked.unseen**2 / max(1, self._live))
        return Statistics.of(spread.mean, std, spread.largest)

    def relevance(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Part of the score that a record repeating every term without end would approach."""
        wide = np.asarray(scores, dtype=np.float64)
        return np.clip(wide / self._asked.bound, 0.0, 1.0)

    @property
    def known(self) -> float:
        """Part of the terms' weight that belongs to terms some live record has, in [0, 1]."""
        return 1.0 - self._asked.unseen / self._asked.bound

    def matches(self, slot: int) -> tuple[TermMatch, ...]:
        """The terms one record holds, with each one's part in its score."""
        return self._asked.matches(slot)
