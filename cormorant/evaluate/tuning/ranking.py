"""What does each configuration answer to each query?

Legs are asked once a query; every configuration of the same index ranks their candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import QueryError, UsageError
from cormorant.evaluate.tuning.point import Point
from cormorant.evaluate.tuning.variants import Variant
from cormorant.model import Query

if TYPE_CHECKING:
    from cormorant.store import Candidates

__all__ = ["Answers", "Ledger", "Rerank", "ask"]

Rerank: TypeAlias = Callable[[str, Sequence[str]], Sequence[float]]
"""A question and texts to their scores, in the texts' order; higher is better."""

Answers: TypeAlias = list[list[str]]
"""By configuration: ids as the judgements name them, best first."""


@dataclass(slots=True)
class Ledger:
    """What was noticed on the way.

    Attributes:
        unsearchable: Queries that hold nothing to search, and why; they count as unanswered.
        degraded: Queries that were answered in a lesser way, and how.
        asking_s: CPU seconds spent in asking the legs.
    """

    unsearchable: dict[str, str] = field(default_factory=dict)
    degraded: dict[str, str] = field(default_factory=dict)
    asking_s: float = 0.0


def ask(
    variant: Variant,
    queries: Mapping[str, Query],
    points: Sequence[Point | None],
    *,
    depth: int,
    rerank: Rerank | None,
    ledger: Ledger,
) -> Iterator[tuple[str, Answers]]:
    """Each query's answers under every configuration of one index.

    Args:
        variant: The index.
        queries: By id.
        points: Configurations; None is the store as it is set.
        depth: Hits the metric reads.
        rerank: Puts candidates in order; needed if a configuration has a ``rerank_k``.
        ledger: Filled.

    Raises:
        UsageError: If a configuration reranks and there is no reranker, or it returns another
            number of scores than it was given texts.
    """
    if rerank is None and any(point is not None and point.rerank_k for point in points):
        raise UsageError(
            "The space varies rerank_k, and there is no reranker: give rerank=, a callable that "
            "scores texts for a question."
        )
    told = [point for point in points if point is not None]
    deepest = max((_fetch_k(point, depth) for point in told), default=0)
    diverse = any(point.mmr_lambda is not None for point in told)
    kept = variant.store.ranking
    set_diverse = kept is not None and kept.mmr_lambda is not None
    groups = _groups(points)
    for name, query in queries.items():
        with_vectors = query.mmr_lambda is not None or (
            query.vector is not None and (diverse or set_diverse)
        )
        began = time.process_time()
        try:
            candidates = variant.store.candidates(
                replace(query, top_k=depth, min_score=None),
                fetch_k=deepest,
                with_vectors=with_vectors,
            )
        except QueryError as error:
            ledger.unsearchable[name] = str(error)
            yield name, [[] for _ in points]
            continue
        finally:
            ledger.asking_s += time.process_time() - began
        if candidates.degraded:
            ledger.degraded[name] = candidates.degraded[0]
        elif diverse and candidates.vector is None:
            ledger.degraded[name] = "The query has no vector, so mmr_lambda had no effect."
        yield name, _answers(variant, query, candidates, points, groups, depth, rerank)


def _read(point: Point, depth: int) -> int:
    """Hits that are read of a search, by the metric or by the reranker."""
    return max(min(point.top_k or depth, depth), point.rerank_k)


def _fetch_k(point: Point, depth: int) -> int:
    """As a search for so many hits would fetch."""
    read = _read(point, depth)
    return max(point.fetch_k or defaults.leg_fetch_k(read), read)


def _groups(points: Sequence[Point | None]) -> dict[Any, list[int]]:
    """Configurations that differ in nothing but weights are ranked at once."""
    groups: dict[Any, list[int]] = {}
    for number, point in enumerate(points):
        key = None if point is None else replace(point, vector_weight=defaults.WEIGHT)
        groups.setdefault(key, []).append(number)
    return groups


def _answers(
    variant: Variant,
    query: Query,
    candidates: Candidates,
    points: Sequence[Point | None],
    groups: Mapping[Any, list[int]],
    depth: int,
    rerank: Rerank | None,
) -> Answers:
    ids = variant.ids(candidates)
    scored = _Reranked(query, candidates, rerank)
    # A document may stand at several places, once for each of its chunks.
    several = variant.document_of is not None
    out: Answers = [[] for _ in points]
    for key, numbers in groups.items():
        point = points[numbers[0]]
        if point is None:
            wanted, top_k, settings = depth, depth, candidates.settled
            weights = [settings.weights]
        else:
            wanted, fetch_k = min(point.top_k or depth, depth), _fetch_k(point, depth)
            top_k = fetch_k if several else _read(point, depth)
            settings = replace(
                candidates.settled,
                fusion=point.fusion,
                rrf_k=point.rrf_k,
                fetch_k=fetch_k,
                mmr_lambda=None if candidates.vector is None else point.mmr_lambda,
            )
            weights = [_weights(points[n]) for n in numbers]
        found = candidates.rank_weighted(settings, weights, top_k=top_k)
        for number, places in zip(numbers, found, strict=True):
            ordered = places if key is None else scored.ordered(places, key.rerank_k)
            named = [ids[place] for place in ordered.tolist()]
            # As run_system(…, by=…) has it: of the hits that a search returns, each document once.
            once = several or variant.by is not None
            out[number] = (list(dict.fromkeys(named)) if once else named)[:wanted]
    return out


def _weights(point: Point | None) -> Mapping[str, float]:
    return (point or Point()).weights


class _Reranked:
    """One query's candidates with the reranker's scores, each asked for once."""

    def __init__(self, query: Query, candidates: Candidates, rerank: Rerank | None) -> None:
        self._question = query.text or ""
        self._candidates = candidates
        self._rerank = rerank
        self._scores: dict[int, float] = {}

    def ordered(self, places: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """The first ``count`` by the reranker's score, then the rest as it was."""
        if not count or self._rerank is None:
            return places
        head = places[:count].tolist()
        missing = [place for place in head if place not in self._scores]
        if missing:
            texts = [self._candidates.records[place].text for place in missing]
            scores = [float(score) for score in self._rerank(self._question, texts)]
            if len(scores) != len(texts):
                raise UsageError(
                    f"The reranker was given {len(texts)} texts and returned {len(scores)} scores; "
                    "it must return one a text, in their order."
                )
            self._scores.update(zip(missing, scores, strict=True))
        best = sorted(head, key=lambda place: -self._scores[place])
        return np.array([*best, *places[count:].tolist()], dtype=np.int64)
