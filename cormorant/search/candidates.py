"""How would the same candidates rank under other settings?

A search asks its legs once and ranks once. Where many settings are compared, the legs are
asked once and their candidates ranked many times, by the same formulas as in a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.model import Query, Record
from cormorant.search.diversify import diversified
from cormorant.search.fuse import LegScores, best_first, standards_of, weighted
from cormorant.search.outcome import ask_legs, reading_of, trusted, views_of
from cormorant.search.ranking import Settled, settle
from cormorant.search.scripts import Reading

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["Candidates", "Weights", "gather"]

Weights: TypeAlias = Mapping[str, float]

_BOTH: Final = MappingProxyType({"vector": 1.0, "text": 1.0})


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What each leg makes of one query's candidates, kept to be ranked again and again.

    Attributes:
        records: The candidates, in the order they were added to the store.
        legs: Each leg's view of them, with its weight left at 1. A leg that could not be run
            is not there.
        relevances: By leg: float64, in [0, 1], as each leg alone would report them.
        fetch_k: Candidates each leg was asked for: the most that :meth:`rank` can be told.
        hybrid: Whether the legs are fused; else one leg's scores stay as they are.
        settled: The settings a search for the query would rank by.
        vector: float32, shape (dim,): the query's; None if it was not kept for MMR.
        vectors: float32: of those candidates that have one, in order; likewise.
        has_vector: bool, one a candidate.
        reading: What is known of the candidates beside their scores; None if nothing is.
        degraded: What was left out or done in a lesser way, as in a Result.
    """

    records: tuple[Record, ...]
    legs: Mapping[str, LegScores]
    relevances: Mapping[str, NDArray[np.float64]]
    fetch_k: int
    hybrid: bool
    settled: Settled
    vector: NDArray[np.float32] | None
    vectors: NDArray[np.float32] | None
    has_vector: NDArray[np.bool_]
    reading: Reading | None = None
    degraded: tuple[str, ...] = ()

    def rank(self, settings: Settled, *, top_k: int) -> NDArray[np.int64]:
        """The hits of a search with these settings, as positions in ``records``.

        Args:
            settings: Such as ``dataclasses.replace(candidates.settled, fusion="rrf")``.
            top_k: Hits wanted.

        Returns:
            Best first, ties by the record that was added first.

        Raises:
            QueryError: If more candidates are wanted than were fetched, or MMR without vectors.
        """
        (hits,) = self.rank_weighted(settings, [settings.weights], top_k=top_k)
        return hits

    def rank_weighted(
        self, settings: Settled, weights: Sequence[Weights], *, top_k: int
    ) -> list[NDArray[np.int64]]:
        """:meth:`rank` under many weights at once, in their order."""
        mmr_lambda = settings.mmr_lambda
        # As in a search: one leg without MMR is asked for the hits alone.
        k = max(settings.fetch_k, top_k) if self.hybrid or mmr_lambda is not None else top_k
        if k > self.fetch_k:
            raise QueryError(
                f"Each leg was asked for {self.fetch_k} candidates, and {k} are wanted. Fetch the "
                "candidates with a larger fetch_k."
            )
        found: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(weights)
        for names, numbers in self._by_legs(weights).items():
            places, views = self._narrowed(names, k)
            if len(names) > 1 and self.reading is not None:
                # As a search would read them, whoever says the weights.
                views = trusted(self.reading.take(places), views, settings, k)[1]
            standards = standards_of(
                [views[name] for name in names],
                fusion=settings.fusion if self.hybrid else None,
                rrf_k=settings.rrf_k,
            )
            columns = [
                np.array([[weights[i].get(name, 0.0) if self.hybrid else 1.0] for i in numbers])
                for name in names
            ]
            ordered = places[best_first(weighted(standards, columns).scores, places)]
            for number, order in zip(numbers, ordered, strict=True):
                found[number] = (
                    order[:top_k]
                    if mmr_lambda is None
                    else self._diversified(order[:k], mmr_lambda, top_k)
                )
        return found

    def _by_legs(self, weights: Sequence[Weights]) -> dict[tuple[str, ...], list[int]]:
        """Which weightings run which legs; a leg of weight 0 is not run, as in a search."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for number, each in enumerate(weights):
            names = tuple(n for n in self.legs if not self.hybrid or each.get(n, 0.0))
            if names:
                groups.setdefault(names, []).append(number)
        return groups

    def _narrowed(
        self, names: tuple[str, ...], k: int
    ) -> tuple[NDArray[np.int64], dict[str, LegScores]]:
        """Candidates, and views of them, had only these legs run and each fetched ``k``."""
        views = [self.legs[name] for name in names]
        ranks = [np.where(view.ranks <= k, view.ranks, 0) for view in views]
        places = np.flatnonzero(np.logical_or.reduce([rank > 0 for rank in ranks]))
        narrowed = zip(names, views, ranks, strict=True)
        return places, {
            name: replace(view, ranks=rank).take(places) for name, view, rank in narrowed
        }

    def _diversified(
        self, order: NDArray[np.int64], mmr_lambda: float, top_k: int
    ) -> NDArray[np.int64]:
        if self.vector is None:
            raise QueryError(
                "mmr_lambda compares candidates by their vectors, which were not kept. Fetch the "
                "candidates of a query with a vector, with_vectors=True."
            )
        if self.vectors is None:  # no record has one, and a search says so
            return order[:top_k]
        has = self.has_vector[order]
        at = np.cumsum(self.has_vector) - 1
        hits, _ = diversified(
            self.vector, self.vectors[at[order[has]]], has, mmr_lambda=mmr_lambda, k=top_k
        )
        return order[hits]


def gather(
    snapshot: Snapshot, query: Query, *, fetch_k: int | None, with_vectors: bool
) -> Candidates:
    """Ask a query's legs, whatever their weights, and keep what they say.

    Args:
        snapshot: Of a store.
        query: What is asked; ``min_score`` is not applied. Its other ranking settings, filled
            in as a search would, are :attr:`Candidates.settled`.
        fetch_k: Candidates to ask each leg for; a search's own, if that is more.
        with_vectors: Keep the candidates' vectors, which MMR reads.

    Raises:
        QueryError, DimensionError, FilterError: As searching would.
    """
    settled = settle(snapshot, query)
    hybrid = query.resolved_mode == "hybrid"
    k = max(settled.fetch_k, fetch_k or 0, query.top_k)
    # One leg without MMR is asked for top_k candidates, so both say how many.
    asked: dict[str, Any] = {"fetch_k": k, "top_k": k, "min_score": None}
    asked["mmr_lambda"] = defaults.MMR_LAMBDA if with_vectors else None
    if hybrid:
        asked["weights"] = _BOTH
    outcome = ask_legs(snapshot, replace(query, **asked))
    outcome.statistics = True
    slots, views = views_of(outcome) if outcome.fetched else (np.empty(0, np.int64), ())
    order = np.argsort(slots)
    names = [each.leg.name for each in outcome.fetched]
    legs = {name: view.take(order) for name, view in zip(names, views, strict=True)}
    records = snapshot.fetch(slots[order])
    reading = None
    if len(legs) > 1:
        reading = reading_of(outcome, settled, lambda: records)
        settled = replace(settled, weights=trusted(reading, legs, settled, settled.fetch_k)[0])
    has = snapshot.has_vector[slots[order]]
    vectors = snapshot.vectors() if with_vectors else None
    return Candidates(
        records=tuple(records),
        legs={name: replace(view, weight=1.0) for name, view in legs.items()},
        relevances={
            each.leg.name: each.leg.relevance(legs[each.leg.name].scores)
            for each in outcome.fetched
        },
        fetch_k=k,
        hybrid=hybrid,
        settled=settled,
        vector=outcome.plan.vector if with_vectors else None,
        vectors=None if vectors is None else vectors[slots[order][has]].copy(),
        has_vector=has,
        reading=reading,
        degraded=tuple(outcome.degraded),
    )
