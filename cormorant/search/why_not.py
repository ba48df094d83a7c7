"""Which stage lost this record, and which nearest change of the query would have kept it?

The journey of :mod:`~cormorant.search.explain` tells the stage. A change is never only
reasoned out: the search is run with it, and what else loses the record then is changed too,
until the record is a hit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cormorant.analysis import LANGUAGES, Analyzer
from cormorant.errors import FilterError, QueryError
from cormorant.filters import And, Compare, Filter, conjoin, parse
from cormorant.model import Cause, Change, Explanation, Query, Record, WhyNot
from cormorant.search.admit import text_match
from cormorant.search.explain import explained, judges, rank_in_leg
from cormorant.search.outcome import Fetched, Outcome

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["why_not"]

_TRIES: Final = 32  # each removes one cause, of which there are few, or doubles fetch_k
_LAMBDAS: Final = tuple(step / 20 for step in range(1, 21))
_LIKELY: Final = ("english", "none", "german", "french", "spanish", "russian")

_DECIDE: Final[Mapping[str, Cause]] = {
    "scope": "scope",
    "filter": "filter",
    "min_score": "min_score",
    "mmr": "mmr",
    "top_k": "top_k",
}


def why_not(snapshot: Snapshot, query: Query, slot: int) -> WhyNot:
    """Follow a record to where it is lost, and find what would have kept it.

    Args:
        snapshot: Of a store.
        query: As it was, or would be, searched.
        slot: The record's; alive.

    Raises:
        QueryError, DimensionError, FilterError: As searching would.
    """
    outcome, explanation = explained(snapshot, query, slot)
    (record,) = snapshot.fetch([slot])
    cause, says = _cause(outcome, explanation, slot)
    return WhyNot(
        id=record.id,
        cause=cause,
        says=says,
        changes=() if cause in {"found", "scope"} else tuple(_changes(outcome, cause, slot)),
        explanation=explanation,
    )


def _cause(outcome: Outcome, explanation: Explanation, slot: int) -> tuple[Cause, str]:
    """The first stage that lost it, by its cause's name, and the verdict."""
    if explanation.found:
        return "found", explanation.says
    missed = next((each for each in outcome.fetched if _overlooked(outcome, each, slot)), None)
    decided = _DECIDE.get(explanation.lost_at or "")
    if decided is not None and not (decided == "top_k" and missed):
        return decided, explanation.says
    if missed is not None:
        rank, of = rank_in_leg(outcome, missed, slot)
        says = (
            f"{explanation.id!r} is not among the {len(outcome.hits)} hits. The "
            f"{missed.leg.name} index is approximate and missed it: a full scan ranks it {rank} "
            f"of {of}."
        )
        return "approximate", says
    if any(judges(each, slot) for each in outcome.fetched):
        return "fetch_k", explanation.says
    vector = any(each.leg.name == "vector" for each in outcome.fetched)
    text = any(each.leg.name == "text" for each in outcome.fetched)
    if vector and text:
        says = f"{explanation.id!r} has no vector, and holds no term of the query."
        return "terms", says
    return ("terms" if text else "no_vector"), explanation.says


def _overlooked(outcome: Outcome, fetched: Fetched, slot: int) -> bool:
    """Whether the index left out a record that its own scores put among the fetched."""
    if fetched.found.exact or not judges(fetched, slot) or (fetched.found.slots == slot).any():
        return False
    if outcome.mask is not None and not outcome.mask[slot]:
        return False
    return rank_in_leg(outcome, fetched, slot)[0] <= outcome.plan.k


def _changes(outcome: Outcome, cause: Cause, slot: int) -> Iterator[Change]:
    """The change that was tried and brings it in, then what the store could do."""
    settings = _tried(outcome, slot)
    if settings:
        yield Change(_sentence(outcome.query, settings), query=settings)
    (record,) = outcome.snapshot.fetch([slot])
    if cause == "no_vector":
        yield Change("Add the record again with its vector.", store={"add": {"id": record.id}})
    if cause == "approximate":
        yield Change(
            "Build the index for a higher recall, optimize(recall=…), or drop it, "
            "optimize(index='exact').",
            store={"index": "exact"},
        )
    if cause == "terms":
        yield from _other_analyzers(outcome, record)


def _tried(outcome: Outcome, slot: int) -> dict[str, Any] | None:
    """The settings that make the record a hit, as few and as near as one cause after another."""
    original, changed = outcome.query, dict[str, Any]()
    for _ in range(_TRIES):
        outcome, explanation = explained(outcome.snapshot, replace(original, **changed), slot)
        if explanation.found:
            return _fewest(outcome.snapshot, original, changed, slot)
        cause = _cause(outcome, explanation, slot)[0]
        remedy = _REMEDIES[cause](outcome, slot) if cause in _REMEDIES else None
        if remedy is None:
            return None
        if "fetch_k" in changed and "fetch_k" in remedy:
            # What is fetched more may rank above it again: not a step at a time.
            remedy["fetch_k"] = max(remedy["fetch_k"], 2 * changed["fetch_k"])
        changed |= remedy
    return None


def _fewest(
    snapshot: Snapshot, original: Query, changed: dict[str, Any], slot: int
) -> dict[str, Any]:
    """Without the settings that another made needless, such as the fetch_k of an earlier try."""
    for name in list(changed):
        fewer = {key: value for key, value in changed.items() if key != name}
        if fewer and _is_hit(snapshot, original, fewer, slot):
            changed = fewer
    return changed


def _is_hit(snapshot: Snapshot, original: Query, changed: Mapping[str, Any], slot: int) -> bool:
    try:
        query = replace(original, **changed)
    except QueryError:  # settings that need each other
        return False
    return explained(snapshot, query, slot)[1].found


def _without_what_fails(outcome: Outcome, slot: int) -> dict[str, Any]:
    """The filter's clauses that the record satisfies, or would if they asked for its type."""
    parsed = outcome.plan.condition.parsed
    if parsed is None:  # a callable cannot be taken apart
        return {"filter": None}
    (record,) = outcome.snapshot.fetch([slot])
    match = text_match(outcome.snapshot)
    parts = parsed.parts if isinstance(parsed, And) else (parsed,)
    kept: list[Filter] = []
    for part in parts:
        if part.matches(record.metadata, record.text, text_match=match):
            kept.append(part)
        elif isinstance(part, Compare) and (other := _of_another_type(part, record)) is not None:
            kept.append(other)
    return {"filter": conjoin(*kept).to_dict() if kept else None}


def _of_another_type(clause: Compare, record: Record) -> Filter | None:
    """The clause with its text as a number, or its number as text, if the record satisfies that."""
    ((field, written),) = clause.to_dict().items()
    ((operator, operand),) = written.items()
    try:
        other = parse({field: {operator: _retyped(operand)}})
    except (FilterError, TypeError, ValueError):
        return None
    return other if other.matches(record.metadata, record.text) else None


def _retyped(operand: Any) -> Any:
    if isinstance(operand, list):
        return [_retyped(each) for each in operand]
    if isinstance(operand, str):
        return float(operand) if "." in operand else int(operand)
    if isinstance(operand, bool):
        raise TypeError("true and false have no other type")
    return str(operand)


def _lower_threshold(outcome: Outcome, slot: int) -> dict[str, Any]:
    """The record's relevance, rounded down; None if it has none to speak of."""
    relevance = next(
        step.value
        for step in explained(outcome.snapshot, outcome.query, slot)[1].steps
        if step.stage == "min_score"
    )
    floor = math.floor((relevance or 0.0) * 10_000 - 1e-3) / 10_000
    return {"min_score": floor if floor > 0 else None}


def _full_scan(outcome: Outcome, slot: int) -> dict[str, Any]:  # noqa: ARG001 - a remedy
    return {"exact": True}


def _more_candidates(outcome: Outcome, slot: int) -> dict[str, Any]:
    return {"fetch_k": max(_nearest_rank(outcome, slot), outcome.query.top_k)}


def _nearest_rank(outcome: Outcome, slot: int) -> int:
    ranks = [rank_in_leg(outcome, each, slot)[0] for each in outcome.fetched if judges(each, slot)]
    return max(min(ranks), outcome.plan.k + 1)


def _less_diverse(outcome: Outcome, slot: int) -> dict[str, Any] | None:
    """As little less as brings it in; else more candidates, or more hits."""
    passed = outcome.slots[outcome.above]
    place = int(np.flatnonzero(passed == slot)[0]) + 1
    if place > outcome.plan.k:
        return {"fetch_k": place}
    now = outcome.plan.mmr_lambda or 0.0
    for mmr_lambda in (each for each in _LAMBDAS if each > now):
        if _is_hit(outcome.snapshot, outcome.query, {"mmr_lambda": mmr_lambda}, slot):
            return {"mmr_lambda": mmr_lambda}
    return _larger_top_k(outcome, slot)


def _larger_top_k(outcome: Outcome, slot: int) -> dict[str, Any] | None:
    """The smallest that reaches it.

    The order of the hits does not depend on how many are returned, but on how many are fetched:
    where more hits are wanted than are fetched now, others may be fetched that rank above it.
    """
    most, n = max(outcome.plan.k, outcome.query.top_k), outcome.snapshot.n
    while True:
        wide: dict[str, Any] = {"top_k": most, "fetch_k": most}
        found = explained(outcome.snapshot, replace(outcome.query, **wide), slot)[1]
        if found.rank is not None:
            return {"top_k": found.rank, "fetch_k": most}
        if most >= n:
            return None
        most = min(2 * most, n)


def _another_leg(outcome: Outcome, slot: int) -> dict[str, Any] | None:
    """A leg that has something on the record; else words that are in it."""
    query, snapshot = outcome.query, outcome.snapshot
    ran = {each.leg.name for each in outcome.fetched}
    has_vector = snapshot.vector is not None and bool(snapshot.has_vector[slot])
    if "vector" not in ran and query.vector is not None and has_vector:
        return {"mode": "hybrid"}
    (record,) = snapshot.fetch([slot])
    held = set(snapshot.analyzer.terms(record.text))
    text_mode: dict[str, Any] = {} if "text" in ran else {"mode": "text"}
    if text_mode and _shared(snapshot, query.text, held):
        return text_mode
    word = _rarest_word(snapshot, record)
    if word is None:
        return None
    beside = f"{query.text} {word}" if query.text else word
    # Beside other words a stop word is not asked for.
    return {"text": beside if _shared(snapshot, beside, held) else word, **text_mode}


def _shared(snapshot: Snapshot, text: str | None, held: set[str]) -> bool:
    return bool(text) and bool(held & set(snapshot.analyzer.query_terms(text or "")))


def _rarest_word(snapshot: Snapshot, record: Record) -> str | None:
    """Of the words in the record's text, the one that fewest records hold."""
    words = list(dict.fromkeys(record.text.split()))[:200]
    rarest, fewest = None, math.inf
    for word in words:
        terms = snapshot.analyzer.query_terms(word)
        held = int(snapshot.text.contains_all(terms).sum()) if terms else 0
        if 0 < held < fewest:
            rarest, fewest = word, held
    return rarest


_REMEDIES: Final[Mapping[Cause, Callable[[Outcome, int], dict[str, Any] | None]]] = {
    "filter": _without_what_fails,
    "no_vector": _another_leg,
    "terms": _another_leg,
    "approximate": _full_scan,
    "fetch_k": _more_candidates,
    "min_score": _lower_threshold,
    "mmr": _less_diverse,
    "top_k": _larger_top_k,
}


def _other_analyzers(outcome: Outcome, record: Record) -> Iterator[Change]:
    """Languages whose stems make a word of the question and one of the record equal."""
    now = outcome.snapshot.analyzer.language
    others = [*_LIKELY, *(each for each in LANGUAGES if each not in _LIKELY)]
    for language in (each for each in others if each != now):
        analyzer = Analyzer(language)
        shared = set(analyzer.query_terms(outcome.query.text or "")) & set(
            analyzer.terms(record.text)
        )
        if shared:
            yield Change(
                f"A store with language={language!r} finds it by {', '.join(sorted(shared))}: "
                f"this one's is {now!r}. The analyzer is chosen when a store is made.",
                store={"language": language},
            )
            return


def _sentence(query: Query, settings: Mapping[str, Any]) -> str:
    parts = [
        f"{name} {_shown(getattr(query, name, None))} → {_shown(value)}"
        for name, value in settings.items()
    ]
    return f"It is a hit with {', '.join(parts)}."


def _shown(value: object) -> str:
    return "none" if value is None else str(value) if not isinstance(value, str) else repr(value)
