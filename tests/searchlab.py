"""A store's snapshot without a store, and the search done over again the slow way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.analysis import Analyzer, analyzer_for
from cormorant.filters import Filter, parse
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex
from cormorant.index.vector import ExactIndex, check_vector, check_vectors, relevance
from cormorant.model import Metric, Query, Record
from cormorant.search.admit import text_match
from cormorant.search.calibration import Calibration
from cormorant.search.ranking import RankingConfig, settle
from cormorant.search.trust import Trust

ENGLISH = analyzer_for("english")


class MemorySnapshot:
    """The protocol of ``search.snapshot`` over lists.

    Args:
        records: In slot order.
        dead: Slots that were deleted.
        sample: Slots for the statistics; None for all live ones with a vector.
    """

    def __init__(
        self,
        records: Sequence[Record],
        *,
        dead: Sequence[int] = (),
        metric: Metric = "cosine",
        scope: Mapping[str, Any] | None = None,
        sample: Sequence[int] | None = None,
        analyzer: Analyzer = ENGLISH,
    ) -> None:
        self.records = list(records)
        self.n = len(self.records)
        self.metric = metric
        self.analyzer = analyzer
        self.bm25 = (1.2, 0.75)
        self.scope: Filter | None = None if scope is None else parse(scope)
        self.alive = np.ones(self.n, dtype=np.bool_)
        self.alive[list(dead)] = False
        self.dead = int(self.n - np.count_nonzero(self.alive))
        self.has_vector = np.array([r.vector is not None for r in self.records], dtype=np.bool_)
        live = np.flatnonzero(self.alive & self.has_vector)
        self.sample = live if sample is None else np.array(sample, dtype=np.int64)
        self.columns = Columns.empty().append(Columns.encode([r.metadata for r in self.records]))
        self.text = TextIndex.empty().append(
            TextIndex.encode([analyzer.terms(r.text) for r in self.records])
        )
        self._vectors: NDArray[np.float32] | None = None
        if self.has_vector.any():
            given = [r.vector for r in self.records if r.vector is not None]
            checked = check_vectors(given, dim=None, metric=metric)
            self._vectors = np.zeros((self.n, checked.shape[1]), dtype=np.float32)
            self._vectors[self.has_vector] = checked
        self.fetches: list[int] = []
        self.ranking: RankingConfig | None = None
        self.trust: Trust | None = None
        self.trust_doubt: str | None = None
        self.calibration: Calibration | None = None
        self.calibration_doubt: str | None = None

    @property
    def dim(self) -> int | None:
        return None if self._vectors is None else self._vectors.shape[1]

    @property
    def without_vector(self) -> int:
        return int(np.count_nonzero(self.alive & ~self.has_vector))

    @property
    def vector(self) -> ExactIndex | None:
        if self._vectors is None or not (self.alive & self.has_vector).any():
            return None
        return ExactIndex(self._vectors, self.metric, self.has_vector)

    @property
    def scan(self) -> ExactIndex | None:
        return self.vector

    def vectors(self) -> NDArray[np.float32] | None:
        return self._vectors

    def sample_vectors(self) -> NDArray[np.float32]:
        assert self._vectors is not None
        return self._vectors[self.sample]

    def fetch(self, slots: Sequence[int] | NDArray[np.int64]) -> list[Record]:
        wanted = [int(slot) for slot in slots]
        self.fetches.extend(wanted)
        return [self._copy(slot) for slot in wanted]

    def _copy(self, slot: int) -> Record:
        record = self.records[slot]
        return Record(id=record.id, text=record.text, metadata=dict(record.metadata))


@dataclass
class SlowLeg:
    """One leg by definition: a score for every live record, -inf where it cannot judge."""

    weight: float
    scores: dict[int, float]
    ranked: list[int]
    mean: float
    std: float
    relevance: dict[int, float]
    fetched: list[int] = field(default_factory=list)

    def standard(self, slot: int, fusion: str, rrf_k: float) -> float:
        score = self.scores[slot]
        if fusion == "z":
            return 0.0 if score == -np.inf or not self.std else (score - self.mean) / self.std
        if slot not in self.fetched:
            return 0.0
        if fusion == "rrf":
            return 1.0 / (rrf_k + self.fetched.index(slot) + 1)
        known = [self.scores[s] for s in self.fetched]
        low, high = min(known), max(known)
        return 1.0 if high == low else (score - low) / (high - low)


@dataclass
class Slow:
    """A search done the slow way: every number of every live record."""

    eligible: list[int]
    legs: dict[str, SlowLeg]
    fused: dict[int, float]
    ranked: list[int]
    relevance: dict[int, float]
    above: list[int]


def slow_search(snapshot: MemorySnapshot, query: Query) -> Slow:
    """Score everything, sort everything; the leg scores alone are the indexes' own.

    (Those are compared with arithmetic in float64 in the vector and text rooms' tests.)
    """
    live = np.flatnonzero(snapshot.alive).tolist()
    eligible = [slot for slot in live if _admits(snapshot, query, slot)]
    mode = query.resolved_mode
    legs: dict[str, SlowLeg] = {}
    settled = settle(snapshot, query)
    if mode in ("vector", "hybrid") and settled.weights["vector"]:
        legs["vector"] = _vector_leg(snapshot, query, live, eligible)
    if mode in ("text", "hybrid") and settled.weights["text"]:
        legs["text"] = _text_leg(snapshot, query, live, eligible)
    plain = mode != "hybrid"
    k = query.top_k if plain and query.mmr_lambda is None else settled.fetch_k
    for leg in legs.values():
        leg.weight = 1.0 if plain else leg.weight
        leg.fetched = leg.ranked[:k]
    candidates = sorted({slot for leg in legs.values() for slot in leg.fetched})
    if plain:
        (only,) = legs.values()
        fused = {slot: only.scores[slot] for slot in candidates}
    else:
        fused = {
            slot: sum(
                leg.weight * leg.standard(slot, settled.fusion, settled.rrf_k)
                for leg in legs.values()
            )
            for slot in candidates
        }
    weights = sum(leg.weight for leg in legs.values())
    relevances = {
        slot: sum(leg.weight * leg.relevance[slot] for leg in legs.values()) / weights
        for slot in live
    }
    ranked = sorted(candidates, key=lambda slot: (-fused[slot], slot))
    low = -1.0 if query.min_score is None else query.min_score
    above = [slot for slot in ranked if relevances[slot] >= low]
    return Slow(eligible, legs, fused, ranked, relevances, above)


def _admits(snapshot: MemorySnapshot, query: Query, slot: int) -> bool:
    record = snapshot.records[slot]
    match = text_match(snapshot)
    if snapshot.scope is not None and not snapshot.scope.matches(
        record.metadata, record.text, text_match=match
    ):
        return False
    if query.filter is None:
        return True
    if callable(query.filter):
        return bool(query.filter(record))
    return parse(query.filter).matches(record.metadata, record.text, text_match=match)


def _vector_leg(
    snapshot: MemorySnapshot, query: Query, live: list[int], eligible: list[int]
) -> SlowLeg:
    vectors, asked = snapshot.vectors(), query.vector
    assert vectors is not None
    assert asked is not None
    q = check_vector(asked, dim=None, metric=snapshot.metric)
    index = ExactIndex(vectors, snapshot.metric, snapshot.has_vector)
    scores = {slot: float(index.score(q, np.array([slot]))[0]) for slot in live}
    known = np.array([scores[slot] for slot in snapshot.sample.tolist()])
    return SlowLeg(
        weight=settle(snapshot, query).weights["vector"],
        scores=scores,
        ranked=_rank([s for s in eligible if scores[s] > -np.inf], scores),
        mean=float(known.mean()),
        std=_deviation(known),
        relevance={
            slot: float(relevance(np.array([score]), snapshot.metric)[0])
            for slot, score in scores.items()
        },
    )


def _text_leg(
    snapshot: MemorySnapshot, query: Query, live: list[int], eligible: list[int]
) -> SlowLeg:
    assert query.text is not None
    terms = snapshot.analyzer.query_terms(query.text)
    k1, b = snapshot.bm25
    scores = {
        slot: float(
            snapshot.text.ask(terms, alive=snapshot.alive, k1=k1, b=b).score(np.array([slot]))[0]
        )
        for slot in live
    }
    n = len(live)
    held = [set(snapshot.analyzer.terms(snapshot.records[slot].text)) for slot in live]
    bound = unseen = 0.0
    for term, count in Counter(terms).items():
        df = sum(term in one for one in held)
        weight = count * float(np.log(1 + (n - df + 0.5) / (df + 0.5)))
        bound += weight
        unseen += 0.0 if df else weight
    known = np.array(list(scores.values()))
    return SlowLeg(
        weight=settle(snapshot, query).weights["text"],
        scores=scores,
        ranked=_rank([slot for slot in eligible if scores[slot] > 0], scores),
        mean=float(known.mean()),
        std=float(np.sqrt(_deviation(known) ** 2 + unseen**2 / n)),
        relevance={slot: score / bound for slot, score in scores.items()},
    )


def _rank(slots: list[int], scores: dict[int, float]) -> list[int]:
    return sorted(slots, key=lambda slot: (-scores[slot], slot))


def _deviation(known: NDArray[np.float64]) -> float:
    std = float(known.std())
    return 0.0 if std <= 1e-6 * float(np.abs(known).max()) else std
