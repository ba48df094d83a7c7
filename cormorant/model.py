"""What a Record, Query, Hit, Result and Explanation is, and the Store protocol.

Scores: higher is better, always. Ranks start at 1. ``top_k`` is what the caller
gets, ``fetch_k`` what each leg hands to fusion or to MMR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.ranges import check_number, check_whole

__all__ = [
    "AddResult",
    "Cause",
    "Change",
    "Explanation",
    "FilterLike",
    "Fusion",
    "Hit",
    "Leg",
    "Metadata",
    "Metric",
    "Mode",
    "Query",
    "Record",
    "Result",
    "Stage",
    "Step",
    "StoreProtocol",
    "TermMatch",
    "VectorLike",
    "WhyNot",
]

Mode: TypeAlias = Literal["vector", "text", "hybrid"]
Metric: TypeAlias = Literal["cosine", "dot", "euclidean"]
Fusion: TypeAlias = Literal["z", "rrf", "minmax"]
Metadata: TypeAlias = Mapping[str, Any]
Cause: TypeAlias = Literal[
    "found",
    "not_stored",
    "scope",
    "filter",
    "no_vector",
    "terms",
    "approximate",
    "fetch_k",
    "min_score",
    "mmr",
    "top_k",
]
VectorLike: TypeAlias = Sequence[float] | NDArray[Any]
FilterLike: TypeAlias = Mapping[str, Any] | Callable[["Record"], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A stored chunk: the unit that is scored and returned.

    Two records are equal if all their parts are; a vector compares by its numbers.

    Attributes:
        id: Unique in the store; adding an existing id replaces that record.
        text: What the text leg searches. May be empty if there is a vector.
        vector: float32, shape (dim,). None in a text-only store, and in results
            unless ``with_vectors`` was asked for.
        metadata: JSON values, dates and datetimes. Copied in and out.
    """

    id: str
    text: str = ""
    vector: VectorLike | None = None
    metadata: Metadata = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            (self.id, self.text, self.metadata) == (other.id, other.text, other.metadata)
            and (self.vector is None) == (other.vector is None)
            and (self.vector is None or np.array_equal(self.vector, other.vector))  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        return hash((self.id, self.text))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """What is asked: a text, a vector or both, and how to answer.

    Compares and hashes by identity.

    Attributes:
        text: Searched by the text leg.
        vector: float-like, shape (dim,). Searched by the vector leg.
        mode: ``vector``, ``text`` or ``hybrid``; None takes hybrid when both a
            text and a vector are given, else the one that is.
        filter: A dict in the filter language, or a predicate on a Record.
        top_k: Hits wanted, at least 1.
        fetch_k: Candidates each leg hands to fusion, and MMR chooses among; at least
            ``top_k``. None takes, in hybrid mode, with or without MMR, what is set in the
            store, else :func:`cormorant.defaults.leg_fetch_k`, the larger of 50 and
            4 · ``top_k``; in one leg with MMR, the larger of 20 and ``top_k``. One leg without
            MMR does not read it.
        min_score: Lowest relevance kept, in [0, 1]; see ``docs/scores.md``. In a calibrated
            store a probability; see ``docs/calibrate.md``.
        weights: Trust in each leg, such as ``{"vector": .5, "text": .5}``; at least 0, not
            all 0. None takes what is set in the store, else what the store has learned of its
            legs, else .5 each.
        fusion: ``z`` (standardised scores), ``rrf`` or ``minmax``. None takes what is set in
            the store, else ``z``.
        rrf_k: Constant of reciprocal rank fusion, at least 0. None takes what is set in the
            store, else 60.
        mmr_lambda: Diversification: 1 relevance only, 0 diversity only. None takes, in hybrid
            mode, what is set in the store; else there is none.
        exact: Compare the vector with every stored one, whatever index there is.
        with_vectors: Return each hit's stored vector.
        explain: Collect each hit's journey and matched terms.

    Raises:
        QueryError: On a value outside its range, or an empty query.
    """

    text: str | None = None
    vector: VectorLike | None = None
    mode: Mode | None = None
    filter: FilterLike | None = None
    top_k: int = defaults.TOP_K
    fetch_k: int | None = None
    min_score: float | None = None
    weights: Mapping[str, float] | None = None
    fusion: Fusion | None = None
    rrf_k: float | None = None
    mmr_lambda: float | None = None
    exact: bool = False
    with_vectors: bool = False
    explain: bool = False

    def __post_init__(self) -> None:
        _check_query(self)
        # What was checked must stay as it was checked.
        if self.weights is not None:
            object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))

    @property
    def resolved_mode(self) -> Mode:
        """The mode, with None resolved from what the query carries."""
        if self.mode is not None:
            return self.mode
        if self.text is not None and self.vector is not None:
            return "hybrid"
        return "vector" if self.vector is not None else "text"


@dataclass(frozen=True, slots=True)
class TermMatch:
    """One query term's part in a BM25 score: ``score = idf * tf_part * count``.

    Attributes:
        term: As the analyzer made it.
        score: Its contribution to the leg's score.
        idf: Lucene's, ln(1 + (N - df + .5) / (df + .5)).
        tf: Occurrences in the record.
        df: Records that contain it.
        count: Times it occurs in the query.
    """

    term: str
    score: float
    idf: float
    tf: int
    df: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Leg:
    """How one leg saw a hit.

    Attributes:
        score: The leg's own score (cosine, inner product, minus distance, BM25).
        rank: From 1 among the leg's candidates; None if the leg did not fetch it
            (its score is then still exact).
        standard: The score as fusion used it (standardised, scaled, or 1 / (rrf_k + rank)).
        terms: Matched terms, text leg only, when an explanation was asked for.
    """

    score: float
    rank: int | None
    standard: float = 0.0
    terms: tuple[TermMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a hit's journey, or of a miss's.

    Attributes:
        stage: ``scope``, ``filter``, ``vector``, ``text``, ``fuse``, ``min_score``, ``mmr`` or
            ``top_k``.
        kept: Whether the record was still in after this stage.
        says: One sentence with the numbers.
        value: The number the stage decided by, if one.
        detail: Further numbers, JSON-ready.
    """

    stage: str
    kept: bool
    says: str
    value: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    """A record that answers a query.

    Attributes:
        id, text, metadata: The record's own, copied.
        score: What the hits are ranked by; higher is better.
        rank: From 1.
        relevance: In [0, 1] whatever the metric and mode; what thresholds compare with. In a
            calibrated store the probability that the hit is relevant.
        legs: ``"vector"`` and ``"text"``: how each leg saw it.
        contributions: Each leg's part in ``score``; they add up to it when fused.
        journey: Filled when the query asked to explain.
        vector: float32, shape (dim,), when asked for.
    """

    id: str
    score: float
    rank: int
    relevance: float
    text: str
    metadata: dict[str, Any]
    legs: Mapping[str, Leg] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    journey: tuple[Step, ...] = ()
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a search did.

    Attributes:
        name: ``plan``, ``filter``, ``vector``, ``text``, ``fuse``, ``mmr``, ``fetch``.
        seconds: Wall time.
        counters: Work done: rows scanned, postings read, candidates, …
    """

    name: str
    seconds: float
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a query; iterates over its hits.

    Attributes:
        hits: Best first.
        mode: What was run.
        stages: In the order they ran.
        exact: True only if the hits are certainly those, in that order, of a full scan: the
            same search with ``fetch_k`` = the number of records. False if that is not proven;
            see ``docs/scores.md``.
        complete: False if fewer than ``top_k`` hits came back though more might exist.
        degraded: What was left out or done in a lesser way, a sentence each; empty is good.
        plan: How each leg was run, one sentence each.
    """

    hits: tuple[Hit, ...]
    mode: Mode
    stages: tuple[Stage, ...] = ()
    exact: bool = True
    complete: bool = True
    degraded: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @property
    def counters(self) -> dict[str, int]:
        """All stages' work counters, added up by name."""
        total: dict[str, int] = {}
        for stage in self.stages:
            for name, count in stage.counters.items():
                total[name] = total.get(name, 0) + count
        return total


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a record was, or was not, among the hits.

    Attributes:
        id: The record asked about.
        found: Whether it is among the hits.
        rank, score: As a hit; None when missed.
        lost_at: The stage that lost it; None when found.
        says: The verdict in one sentence.
        steps: The journey, in order.
    """

    id: str
    found: bool
    rank: int | None
    score: float | None
    lost_at: str | None
    says: str
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What would have brought a record in.

    Attributes:
        says: In one sentence.
        query: Settings of the query to replace, such as ``{"top_k": 12}``; empty if what has
            to change is not the query.
        store: What has to change in the store instead, such as ``{"language": "german"}``.
    """

    says: str
    query: Mapping[str, Any] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, query: Query) -> Query:
        """The query with the change made."""
        return replace(query, **self.query)


@dataclass(frozen=True, slots=True, eq=False)
class WhyNot:
    """Why a record is not among the hits, and the nearest change that would bring it in.

    Attributes:
        id: The record asked about; None if what was asked about is not stored.
        cause: ``found`` (it is a hit), ``not_stored``, ``scope``, ``filter``, ``no_vector``,
            ``terms`` (it holds no term of the query), ``approximate`` (the index missed it; a full
            scan does not), ``fetch_k``, ``min_score``, ``mmr`` or ``top_k``: the first
            stage of the search that lost it.
        says: The verdict in one sentence.
        changes: Nearest first. Where a change of the query can bring the record in, the first one
            does, by itself: it was tried.
        explanation: The record's journey; None if it is not stored.
    """

    id: str | None
    cause: Cause
    says: str
    changes: tuple[Change, ...] = ()
    explanation: Explanation | None = None

    @property
    def found(self) -> bool:
        """Whether the record is a hit after all."""
        return self.cause == "found"


@dataclass(frozen=True, slots=True)
class AddResult:
    """What one ``add`` did: ids in input order, how many were new and how many replaced."""

    ids: tuple[str, ...]
    added: int
    updated: int


@runtime_checkable
class StoreProtocol(Protocol):
    """What every store can do, whatever engine is under it."""

    @property
    def dim(self) -> int | None:
        """Numbers per vector; None until the first vector arrives."""
        ...

    @property
    def metric(self) -> Metric:
        """How vectors are compared."""
        ...

    def add(self, records: Iterable[Record | Mapping[str, Any]]) -> AddResult:
        """Add, or replace by id: all of them in one transaction, durable on return."""
        ...

    def delete(self, ids: Iterable[str] | None = None, *, filter: FilterLike | None = None) -> int:
        """Delete by ids, by filter or both; returns how many were deleted."""
        ...

    def get(self, ids: Iterable[str], *, with_vectors: bool = False) -> list[Record]:
        """The records with these ids, in the order asked, without repeats; unknown ones skipped."""
        ...

    def records(
        self, filter: FilterLike | None = None, *, with_vectors: bool = False, batch: int = 1000
    ) -> Iterator[Record]:
        """Every record that satisfies the filter, oldest first, from one snapshot."""
        ...

    def count(self, filter: FilterLike | None = None) -> int:
        """How many records satisfy the filter."""
        ...

    def search(self, query: Query) -> Result:
        """The best hits, best first; higher scores are better."""
        ...

    def explain(self, query: Query, id: str) -> Explanation:
        """Why a record is, or is not, among the hits; NotFound if there is no such record."""
        ...

    def why_not(
        self,
        query: Query,
        id: str | None = None,
        *,
        text: str | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> WhyNot:
        """Which stage lost a record, and the nearest change that would have kept it."""
        ...

    def scope(self, **predicates: Any) -> StoreProtocol:
        """A view that can neither read nor write outside the predicates."""
        ...

    def close(self) -> None:
        """Let go of files and threads. Idempotent."""
        ...


def _one_of(name: str, value: object, accepted: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in accepted:
        raise QueryError(f"{name} must be one of {', '.join(accepted)}; got {value!r}.")


def _check_text(mode: Mode, text: str | None) -> None:
    if text is None or not text.strip():
        raise QueryError(f"A {mode} search needs a text that is not empty; got {text!r:.80}.")
    most = defaults.MAX_QUERY_BYTES
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > most:
        raise QueryError(
            f"text must be at most {most:,} bytes in UTF-8; got {size:,}, beginning "
            f"{text[:40]!r}. "
            "Ask with a passage or a summary of it, or with its vector and mode='vector'."
        )


def _check_mode(q: Query) -> None:
    if q.mode is not None:
        _one_of("mode", q.mode, defaults.MODES)
    mode = q.resolved_mode
    if mode in ("text", "hybrid"):
        _check_text(mode, q.text)
    if mode in ("vector", "hybrid") and q.vector is None:
        raise QueryError(
            f"A {mode} search needs a vector; embed the text first, or use mode='text'."
        )


def _check_query(q: Query) -> None:
    if q.text is not None and not isinstance(q.text, str):
        raise QueryError(f"text must be a string; got {type(q.text).__name__}.")
    if q.text is None and q.vector is None:
        raise QueryError("The query is empty: give text, a vector, or both.")
    if not isinstance(q.exact, bool):
        raise QueryError(f"exact must be True or False; got {q.exact!r}.")
    _check_mode(q)
    check_whole("top_k", q.top_k)
    if q.fetch_k is not None:
        check_whole("fetch_k", q.fetch_k)
        if q.fetch_k < q.top_k:
            raise QueryError(
                f"fetch_k must be at least top_k; got fetch_k={q.fetch_k} and top_k={q.top_k}. "
                "Raise fetch_k, or leave it out."
            )
    if q.min_score is not None:
        check_number("min_score", q.min_score, 0.0, 1.0)
    if q.mmr_lambda is not None:
        check_number("mmr_lambda", q.mmr_lambda, 0.0, 1.0)
    if q.fusion is not None:
        _one_of("fusion", q.fusion, defaults.FUSIONS)
    if q.rrf_k is not None:
        check_number("rrf_k", q.rrf_k, 0.0)
    if q.weights is not None:
        _check_weights(q.weights)


def _check_weights(weights: object) -> None:
    if not isinstance(weights, Mapping) or set(weights) - {"vector", "text"}:
        raise QueryError(f"weights takes the keys 'vector' and 'text'; got {weights!r}.")
    for leg, weight in weights.items():
        check_number(f"weights[{leg!r}]", weight, 0.0)
    if not any(weights.values()):
        raise QueryError(f"weights must not all be 0; got {dict(weights)!r}.")
