"""Turn what a search found into hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    with trace.span("search", mode=query.resolved_mode, top_k=query.top_k):
        outcome = search(snapshot, query)
        with outcome.stages.stage("fetch") as counters:
            hits = tuple(_hits(outcome))
            counters["records_fetched"] = len(hits)
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
    snapshot, query = outcome.snapshot, outcome.query
    slots = outcome.slots[outcome.hits]
    records = snapshot.fetch(slots) if len(slots) else []
    vectors = snapshot.vectors() if query.with_vectors else None
    hits = []
    for rank, (position, record) in enumerate(
        zip(outcome.hits.tolist(), records, strict=True), start=1
    ):
        slot = int(outcome.slots[position])
        hits.append(
            Hit(
                id=record.id,
                score=float(outcome.fused.scores[position]),
                rank=rank,
                relevance=float(outcome.relevance[position]),
                text=record.text,
                metadata=dict(record.metadata),
                legs=_legs(outcome, position),
                contributions=_contributions(outcome, position),
                journey=journey(outcome, slot, record) if query.explain else (),
                vector=vectors[slot].copy()
                if vectors is not None and snapshot.has_vector[slot]
                else None,
            )
        )
    return hits


def _contributions(outcome: Outcome, position: int) -> dict[str, float]:
    return {
        fetched.leg.name: float(part[position])
        for fetched, part in zip(outcome.fetched, outcome.fused.contributions, strict=True)
    }


def _legs(outcome: Outcome, position: int) -> dict[str, Leg]:
    """How each leg saw the candidate; a leg that has nothing on it is left out."""
    legs = {}
    for fetched, view, standards in zip(
        outcome.fetched, outcome.scores, outcome.fused.standards, strict=True
    ):
        score = float(view.scores[position])
        if score == float("-inf"):
            continue
        wants_terms = outcome.query.explain and isinstance(fetched.leg, TextLeg)
        legs[fetched.leg.name] = Leg(
            score=score,
            rank=int(view.ranks[position]) or None,
            standard=float(standards[position]),
            terms=fetched.leg.matches(int(outcome.slots[position]))
            if wants_terms and isinstance(fetched.leg, TextLeg)
            else (),
        )
    return legs
