"""What do results look like as JSON? Fields are documented and only ever added to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cormorant.model import Explanation, Hit, Leg, Result, Step, WhyNot

__all__ = [
    "EXPLANATION_FIELDS",
    "RESULT_FIELDS",
    "WHY_NOT_FIELDS",
    "explanation_fields",
    "hit_fields",
    "result_fields",
    "why_not_fields",
]

RESULT_FIELDS = {
    "query": "the question",
    "mode": "what was run: vector, text or hybrid",
    "hits[].rank": "from 1",
    "hits[].id": "the record",
    "hits[].score": "what the hits are ranked by; higher is better",
    "hits[].relevance": "in [0, 1], whatever the mode; what --min-score compares with",
    "hits[].text": "the record's text",
    "hits[].metadata": "the record's metadata",
    "hits[].legs.*.score": "the leg's own score (cosine, BM25, …); null if it has no vector",
    "hits[].legs.*.rank": "from 1 among the leg's candidates; null if the leg did not fetch it",
    "hits[].legs.*.standard": "the score as fusion used it",
    "hits[].legs.*.terms[].term": "a matched term, as the analyzer made it",
    "hits[].legs.*.terms[].score": "its part in the BM25 score",
    "hits[].legs.*.terms[].idf": "its inverse document frequency",
    "hits[].legs.*.terms[].tf": "occurrences in the record",
    "hits[].legs.*.terms[].df": "records that contain it",
    "hits[].legs.*.terms[].count": "times it occurs in the question",
    "hits[].contributions": "each leg's part in a fused score; they add up to it",
    "exact": "true if the ranking is certainly what a full scan gives; false if not proven",
    "complete": "false if more hits might exist than came back",
    "degraded": "what was left out or done in a lesser way, a sentence each",
    "plan": "how each leg was run, a sentence each",
    "stages[].name": "a stage of the search",
    "stages[].seconds": "its wall time",
    "stages[].counters": "work it did, by name",
}

EXPLANATION_FIELDS = {
    "id": "the record asked about",
    "found": "whether it is among the hits",
    "rank": "as a hit, from 1; null when missed",
    "score": "as a hit; null when missed",
    "lost_at": "the stage that lost it; null when found",
    "says": "the verdict in one sentence",
    "degraded": "what was left out or done in a lesser way, a sentence each",
    "steps[].stage": "scope, filter, vector, text, fuse, min_score, mmr or top_k",
    "steps[].kept": "whether the record was still in after it",
    "steps[].says": "one sentence with the numbers",
    "steps[].value": "the number the stage decided by, or null",
    "steps[].detail": "further numbers",
}

WHY_NOT_FIELDS = {
    "id": "the record asked about; null if it is not stored",
    "found": "whether it is a hit after all",
    "cause": (
        "found, not_stored, scope, filter, no_vector, terms, approximate, fetch_k, min_score, mmr "
        "or top_k"
    ),
    "says": "the verdict in one sentence",
    "changes[].says": "what would have brought it in; nearest first",
    "changes[].query": "settings of the query to replace; tried, and enough by themselves",
    "changes[].store": "what has to change in the store instead",
    "degraded": "what was left out or done in a lesser way, a sentence each",
    "explanation": "its journey, as explain --json gives it; null if it is not stored",
}


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
    # A record without a vector scores minus infinity there, which JSON cannot say.
    score = leg.score if math.isfinite(leg.score) else None
    fields: dict[str, Any] = {"score": score, "rank": leg.rank, "standard": leg.standard}
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


def why_not_fields(why: WhyNot, degraded: Sequence[str]) -> dict[str, Any]:
    """Which stage lost a record, and what would have kept it."""
    journey = why.explanation
    return {
        "id": why.id,
        "found": why.found,
        "cause": why.cause,
        "says": why.says,
        "changes": [
            {"says": change.says, "query": dict(change.query), "store": dict(change.store)}
            for change in why.changes
        ],
        "degraded": list(degraded),
        "explanation": None if journey is None else explanation_fields(journey, degraded),
    }


def _step_fields(step: Step) -> dict[str, Any]:
    return {
        "stage": step.stage,
        "kept": step.kept,
        "says": step.says,
        "value": step.value,
        "detail": dict(step.detail),
    }
