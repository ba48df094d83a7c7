"""Turn what a search found into hits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from cormorant import trace
from cormorant.model import Hit, Leg, Query, Result
from cormorant.search.explain import journey
from cormorant.search.legs import TextLeg
from cormorant.search.outcome import Outcome, search

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["run"]


def run(snapshot: Snapshot, query: Query) -> Result:
    """Answer a query.

    Args:
        snapshot: Of a store.
        query: What is asked.

    Returns:
        Hits best first; ties by the record that was added first. With ``mmr_lambda`` in the
        order MMR chose them, each keeping its own score.

    Raises:
        QueryError: If nothing that was asked for can be run on this store.
        DimensionError: If the query's vector does not fit.
        FilterError: If the filter does not parse, or is a callable that raises.
    """
    with trace.span("search", mode=query.resolved_mode, top_k=query.top_k) as span:
        outcome = search(snapshot, query)
        with outcome.stages.stage("fetch") as counters:
            hits = tuple(_hits(outcome))
            counters["records_fetched"] = len(hits)
        span.note(scope=snapshot.scope, exact=outcome.exact, degraded=len(outcome.degraded))
        span.tell(hits=hits, stages=outcome.stages.done, query=query.text)
    return Result(
        hits=hits,
        mode=outcome.plan.mode,
        stages=tuple(outcome.stages.done),
        exact=outcome.exact,
        complete=outcome.complete,
        degraded=tuple(outcome.degraded),
        plan=tuple(outcome.notes),
    )


def _hits(outcome: Outcome) -> list[Hit]:
    """Texts come last, for the hits alone."""
    snapshot, query, at = outcome.snapshot, outcome.query, outcome.hits
    if not len(at):
        return []
    slots = outcome.slots[at].tolist()
    records = snapshot.fetch(outcome.slots[at])
    legs, contributions = _legs(outcome, slots), _contributions(outcome)
    scores, relevances = outcome.fused.scores[at].tolist(), outcome.relevance[at].tolist()
    vectors = snapshot.vectors() if query.with_vectors else None
    return [
        Hit(
            id=record.id,
            score=scores[i],
            rank=i + 1,
            relevance=relevances[i],
            text=record.text,
            metadata=cast("dict[str, Any]", record.metadata),  # fetch copied it
            legs=legs[i],
            contributions=contributions[i],
            journey=journey(outcome, slots[i], record) if query.explain else (),
            vector=vectors[slots[i]].copy()
            if vectors is not None and snapshot.has_vector[slots[i]]
            else None,
        )
        for i, record in enumerate(records)
    ]


def _contributions(outcome: Outcome) -> list[dict[str, float]]:
    """Of each hit, by leg."""
    names = [fetched.leg.name for fetched in outcome.fetched]
    parts = [part[outcome.hits].tolist() for part in outcome.fused.contributions]
    return [dict(zip(names, values, strict=True)) for values in zip(*parts, strict=True)]


def _legs(outcome: Outcome, slots: list[int]) -> list[dict[str, Leg]]:
    """How each leg saw each hit; a leg that has nothing on it is left out."""
    seen: list[dict[str, Leg]] = [{} for _ in slots]
    for fetched, view, standards in zip(
        outcome.fetched, outcome.scores, outcome.fused.standards, strict=True
    ):
        leg, at = fetched.leg, outcome.hits
        matches = leg.matches if outcome.query.explain and isinstance(leg, TextLeg) else None
        for legs, slot, score, rank, standard in zip(
            seen,
            slots,
            view.scores[at].tolist(),
            view.ranks[at].tolist(),
            standards[at].tolist(),
            strict=True,
        ):
            if score > -math.inf:
                terms = matches(slot) if matches else ()
                legs[leg.name] = Leg(score=score, rank=rank or None, standard=standard, terms=terms)
    return seen
