"""Which stage lost this record, and which nearest change of the query would have kept it?

The journey of :mod:`~cormorant.search.explain` tells the stage. A change is never only
reasoned out: the search is run with it, and what else loses the record then is changed too,
until the record is a hit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class _Followed:
    """One search, and one record's way through it.

    Attributes:
        outcome: What happened.
        explanation: Of the record.
        slot, record: Which.
    """

    outcome: Outcome
    explanation: Explanation
    slot: int
    record: Record

    @classmethod
    def through(cls, snapshot: Snapshot, query: Query, slot: int, record: Record) -> _Followed:
        return cls(*explained(snapshot, query, slot, record), slot, record)

    def again(self, settings: Mapping[str, Any]) -> _Followed:
        """The same record through the search with other settings."""
        changed = replace(self.outcome.query, **settings)
        return _Followed.through(self.outcome.snapshot, changed, self.slot, self.record)


def why_not(snapshot: Snapshot, query: Query, slot: int) -> WhyNot:
    """Follow a record to where it is lost, and find what would have kept it.

    Args:
        snapshot: Of a store.
        query: As it was, or would be, searched.
        slot: The record's; alive.

    Raises:
        QueryError, DimensionError, FilterError: As searching would.
    """
    (record,) = snapshot.fetch([slot])
    followed = _Followed.through(snapshot, query, slot, record)
    cause, says = _cause(followed)
    return WhyNot(
        id=record.id,
        cause=cause,
        says=says,
        changes=() if cause in {"found", "scope"} else tuple(_changes(followed, cause)),
        explanation=followed.explanation,
    )


def _cause(followed: _Followed) -> tuple[Cause, str]:
    """The first stage that lost it, by its cause's name, and the verdict."""
    outcome, explanation, slot = followed.outcome, followed.explanation, followed.slot
    if explanation.found:
        return "found", explanation.says
    decided = _DECIDE.get(explanation.lost_at or "")
    missed = None
    if decided in {None, "top_k"}:
        missed = next((each for each in outcome.fetched if _overlooked(outcome, each, slot)), None)
    if missed is not None:
        rank, of = rank_in_leg(outcome, missed, slot)
        says = (
            f"{explanation.id!r} is not among the {len(outcome.hits)} hits. The "
            f"{missed.leg.name} index is approximate and missed it: a full scan ranks it {rank} "
            f"of {of}."
        )
        return "approximate", says
    if decided is not None:
        return decided, explanation.says
    if any(judges(each, slot) for each in outcome.fetched):
        return "fetch_k", explanation.says
    ran = {each.leg.name for each in outcome.fetched}
    if ran == {"vector", "text"}:
        says = f"{explanation.id!r} has no vector, and holds no term of the query."
        return "terms", says
    return ("terms" if "text" in ran else "no_vector"), explanation.says


def _overlooked(outcome: Outcome, fetched: Fetched, slot: int) -> bool:
    """Whether the index left out a record that its own scores put among the fetched."""
    if fetched.found.exact or not judges(fetched, slot) or (fetched.found.slots == slot).any():
        return False
    if outcome.mask is not None and not outcome.mask[slot]:
        return False
    return rank_in_leg(outcome, fetched, slot)[0] <= outcome.plan.k


def _changes(followed: _Followed, cause: Cause) -> Iterator[Change]:
    """The change that was tried and brings it in, then what the store could do."""
    settings = _tried(followed)
    if settings:
        yield Change(_sentence(followed.outcome.query, settings), query=settings)
    if cause == "no_vector":
        add = {"id": followed.record.id}
        yield Change("Add the record again with its vector.", store={"add": add})
    if cause == "approximate":
        yield Change(
            "Build the index for a higher recall, optimize(recall=…), or drop it, "
            "optimize(index='exact').",
            store={"index": "exact"},
        )
    if cause == "terms":
        yield from _other_analyzers(followed)


def _tried(first: _Followed) -> dict[str, Any] | None:
    """The settings that make the record a hit, as few and as near as one cause after another."""
    followed, changed = first, dict[str, Any]()
    for _ in range(_TRIES):
        if followed.explanation.found:
            return _fewest(first, changed)
        cause = _cause(followed)[0]
        remedy = _REMEDIES[cause](followed) if cause in _REMEDIES else None
        if remedy is None:
            return None
        if "fetch_k" in changed and "fetch_k" in remedy:
            # What is fetched more may rank above it again: not a step at a time.
            remedy["fetch_k"] = max(remedy["fetch_k"], 2 * changed["fetch_k"])
        changed |= remedy
        followed = first.again(changed)
    return None


def _fewest(first: _Followed, changed: dict[str, Any]) -> dict[str, Any]:
    """Without the settings that another made needless, such as the fetch_k of an earlier try."""
    for name in list(changed):
        fewer = {key: value for key, value in changed.items() if key != name}
        if fewer and _is_hit(first, fewer):
            changed = fewer
    return changed


def _is_hit(followed: _Followed, settings: Mapping[str, Any]) -> bool:
    try:
        return followed.again(settings).explanation.found
    except QueryError:  # settings that need each other
        return False


def _without_what_fails(followed: _Followed) -> dict[str, Any]:
    """The filter's clauses that the record satisfies, or would if they asked for its type."""
    outcome, record = followed.outcome, followed.record
    parsed = outcome.plan.condition.parsed
    if parsed is None:  # a callable cannot be taken apart
        return {"filter": None}
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


def _lower_threshold(followed: _Followed) -> dict[str, Any]:
    """The record's relevance, rounded down; None if it has none to speak of."""
    steps = followed.explanation.steps
    relevance = next(step.value for step in steps if step.stage == "min_score")
    floor = math.floor((relevance or 0.0) * 10_000 - 1e-3) / 10_000
    return {"min_score": floor if floor > 0 else None}


def _full_scan(followed: _Followed) -> dict[str, Any]:  # noqa: ARG001 - a remedy
    return {"exact": True}


def _more_candidates(followed: _Followed) -> dict[str, Any]:
    """As many as reach the better of its ranks."""
    outcome, slot = followed.outcome, followed.slot
    ranks = [rank_in_leg(outcome, each, slot)[0] for each in outcome.fetched if judges(each, slot)]
    return {"fetch_k": max(min(ranks), outcome.plan.k + 1, outcome.query.top_k)}


def _less_diverse(followed: _Followed) -> dict[str, Any] | None:
    """As little less as brings it in; else more candidates, or more hits."""
    outcome = followed.outcome
    passed = outcome.slots[outcome.above]
    place = int(np.flatnonzero(passed == followed.slot)[0]) + 1
    if place > outcome.plan.k:
        return {"fetch_k": place}
    now = outcome.plan.mmr_lambda or 0.0
    for mmr_lambda in (each for each in _LAMBDAS if each > now):
        if _is_hit(followed, {"mmr_lambda": mmr_lambda}):
            return {"mmr_lambda": mmr_lambda}
    return _larger_top_k(followed)


def _larger_top_k(followed: _Followed) -> dict[str, Any] | None:
    """The smallest that reaches it.

    The order of the hits does not depend on how many are returned, but on how many are fetched:
    where more hits are wanted than are fetched now, others may be fetched that rank above it.
    """
    outcome = followed.outcome
    most, n = max(outcome.plan.k, outcome.query.top_k), outcome.snapshot.n
    while True:
        rank = followed.again({"top_k": most, "fetch_k": most}).explanation.rank
        if rank is not None:
            return {"top_k": rank, "fetch_k": most}
        if most >= n:
            return None
        most = min(2 * most, n)


def _another_leg(followed: _Followed) -> dict[str, Any] | None:
    """A leg that has something on the record; else words that are in it."""
    query, snapshot = followed.outcome.query, followed.outcome.snapshot
    ran = {each.leg.name for each in followed.outcome.fetched}
    has_vector = snapshot.vector is not None and bool(snapshot.has_vector[followed.slot])
    if "vector" not in ran and query.vector is not None and has_vector:
        return {"mode": "hybrid"}
    held = set(snapshot.analyzer.terms(followed.record.text))
    text_mode: dict[str, Any] = {} if "text" in ran else {"mode": "text"}
    if text_mode and _shared(snapshot, query.text, held):
        return text_mode
    word = _rarest_word(snapshot, followed.record)
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


_REMEDIES: Final[Mapping[Cause, Callable[[_Followed], dict[str, Any] | None]]] = {
    "filter": _without_what_fails,
    "no_vector": _another_leg,
    "terms": _another_leg,
    "approximate": _full_scan,
    "fetch_k": _more_candidates,
    "min_score": _lower_threshold,
    "mmr": _less_diverse,
    "top_k": _larger_top_k,
}


def _other_analyzers(followed: _Followed) -> Iterator[Change]:
    """Languages whose stems make a word of the question and one of the record equal."""
    now = followed.outcome.snapshot.analyzer.language
    question = followed.outcome.query.text or ""
    others = [*_LIKELY, *(each for each in LANGUAGES if each not in _LIKELY)]
    for language in (each for each in others if each != now):
        analyzer = Analyzer(language)
        asked, held = analyzer.query_terms(question), analyzer.terms(followed.record.text)
        shared = set(asked) & set(held)
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
