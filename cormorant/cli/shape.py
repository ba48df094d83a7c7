"""What do results look like as JSON? Fields are documented in docs/cli.md and only ever added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cormorant.model import Explanation, Hit, Leg, Result, Step

__all__ = ["explanation_fields", "hit_fields", "result_fields"]


def result_fields(result: Result, question: str, degraded: Sequence[str]) -> dict[str, Any]:
    """A whole answer; ``degraded`` joins what the search itself left out."""
    return {
        "query": question,
        "mode": result.mode,
        "hits": [hit_fields(hit) for hit in result.hits],
        "exact": result.exact,
        "complete": result.complete,
        "degraded": [*degraded, *result.degraded],
        "plan": list(result.plan),
        "stages": [
            {"name": stage.name, "seconds": stage.seconds, "counters": dict(stage.counters)}
            for stage in result.stages
        ],
    }


def hit_fields(hit: Hit) -> dict[str, Any]:
    """One hit, with how each leg saw it."""
    return {
        "rank": hit.rank,
        "id": hit.id,
        "score": hit.score,
        "relevance": hit.relevance,
        "text": hit.text,
        "metadata": hit.metadata,
        "legs": {name: _leg_fields(leg) for name, leg in hit.legs.items()},
        "contributions": dict(hit.contributions),
    }


def _leg_fields(leg: Leg) -> dict[str, Any]:
    fields: dict[str, Any] = {"score": leg.score, "rank": leg.rank, "standard": leg.standard}
    if leg.terms:
        fields["terms"] = [
            {
                "term": match.term,
                "score": match.score,
                "idf": match.idf,
                "tf": match.tf,
                "df": match.df,
                "count": match.count,
            }
            for match in leg.terms
        ]
    return fields


def explanation_fields(explanation: Explanation, degraded: Sequence[str]) -> dict[str, Any]:
    """Why a record was, or was not, among the hits."""
    return {
        "id": explanation.id,
        "found": explanation.found,
        "rank": explanation.rank,
        "score": explanation.score,
        "lost_at": explanation.lost_at,
        "says": explanation.says,
        "degraded": list(degraded),
        "steps": [_step_fields(step) for step in explanation.steps],
    }


def _step_fields(step: Step) -> dict[str, Any]:
    return {
        "stage": step.stage,
        "kept": step.kept,
        "says": step.says,
        "value": step.value,
        "detail": dict(step.detail),
    }
