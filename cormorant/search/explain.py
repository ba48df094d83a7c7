"""Why is this record among the hits, or why is it not?

The same search is run, and the record followed through it stage by stage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cormorant.filters import explain as explain_filter
from cormorant.model import Explanation, Query, Record, Step
from cormorant.search.admit import text_match
from cormorant.search.legs import Leg, TextLeg
from cormorant.search.outcome import Fetched, Outcome, relevance_of, search

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["explain", "explained", "journey", "judges", "rank_in_leg"]


def explain(snapshot: Snapshot, query: Query, slot: int) -> Explanation:
    """Follow one live record through the search.

    Args:
        snapshot: Of a store.
        query: As it was, or would be, searched.
        slot: The record's; alive.

    Returns:
        Found or not, and each stage's verdict with its numbers.

    Raises:
        QueryError, DimensionError, FilterError: As searching would.
    """
    (record,) = snapshot.fetch([slot])
    return explained(snapshot, query, slot, record)[1]


def explained(
    snapshot: Snapshot, query: Query, slot: int, record: Record
) -> tuple[Outcome, Explanation]:
    """The search in arrays, and :func:`explain` of it, of a record that was fetched."""
    outcome = search(snapshot, query)
    return outcome, _explained(outcome, slot, record)


def _explained(outcome: Outcome, slot: int, record: Record) -> Explanation:
    steps = journey(outcome, slot, record)
    found = np.flatnonzero(outcome.slots[outcome.hits] == slot)
    if len(found):
        rank = int(found[0]) + 1
        score = float(outcome.fused.scores[outcome.hits[found[0]]])
        says = f"{record.id!r} is hit {rank} of {len(outcome.hits)}, with score {score:.4g}."
        return Explanation(
            record.id, found=True, rank=rank, score=score, lost_at=None, says=says, steps=steps
        )
    lost = next(step for step in steps if not step.kept and _decides(outcome, step))
    says = f"{record.id!r} is not among the {len(outcome.hits)} hits. {lost.says}"
    return Explanation(
        record.id, found=False, rank=None, score=None, lost_at=lost.stage, says=says, steps=steps
    )


def _decides(outcome: Outcome, step: Step) -> bool:
    """Whether the stage has the last word: when fusing, one leg alone has not."""
    return outcome.plan.fusion is None or step.stage not in ("vector", "text")


def journey(outcome: Outcome, slot: int, record: Record) -> tuple[Step, ...]:
    """Every stage's verdict on one record, in order; after its loss there are still numbers."""
    steps = [*_scope(outcome, record), *_filter(outcome, slot, record)]
    steps.extend(_leg(outcome, fetched, slot) for fetched in outcome.fetched)
    at = np.flatnonzero(outcome.slots == slot)
    position = int(at[0]) if len(at) else None
    if outcome.plan.fusion is not None and outcome.fetched:
        steps.append(_fuse(outcome, position))
    steps.extend(_min_score(outcome, slot, position))
    if outcome.plan.diversify and outcome.fetched:
        steps.append(_mmr(outcome, position))
    steps.append(_top_k(outcome, slot, position))
    still_in = True
    for i, step in enumerate(steps):
        if not still_in and step.kept:
            steps[i] = replace(step, kept=False)
        still_in = still_in and (step.kept or not _decides(outcome, step))
    return tuple(steps)


def _scope(outcome: Outcome, record: Record) -> list[Step]:
    scope = outcome.snapshot.scope
    if scope is None:
        return []
    match = text_match(outcome.snapshot)
    inside = scope.matches(record.metadata, record.text, text_match=match)
    says = "It is inside the scope." if inside else "It is outside the scope."
    return [Step("scope", inside, says)]


def _filter(outcome: Outcome, slot: int, record: Record) -> list[Step]:
    condition = outcome.plan.condition
    if condition.parsed is not None:
        clauses = explain_filter(
            condition.parsed,
            record.metadata,
            record.text,
            text_match=text_match(outcome.snapshot),
        )
        failed = [c for c in clauses if not c.matched]
        says = (
            "It fails the filter: " + "; ".join(f"{c.says} ({c.note})" for c in failed) + "."
            if failed
            else "It passes the filter: " + "; ".join(c.says for c in clauses) + "."
        )
        detail = {"clauses": [c._asdict() for c in clauses]}
        return [Step("filter", not failed, says, detail=detail)]
    if condition.predicate is not None:
        passed = outcome.mask is None or bool(outcome.mask[slot])
        says = f"The filter callable {'accepts' if passed else 'rejects'} it."
        return [Step("filter", passed, says)]
    return []


def _leg(outcome: Outcome, fetched: Fetched, slot: int) -> Step:
    leg = fetched.leg
    score = float(leg.score(np.array([slot]))[0])
    if score == float("-inf"):
        return Step(leg.name, kept=False, says="It has no vector, so the vector leg cannot see it.")
    detail: dict[str, Any] = {}
    words = ""
    if isinstance(leg, TextLeg):
        matches = leg.matches(slot)
        held = {match.term for match in matches}
        lacks = [term for term in dict.fromkeys(leg.terms) if term not in held]
        detail = {"terms": {m.term: m.score for m in matches}, "lacks": lacks}
        if not matches:
            says = f"No term of the query occurs in its text: {', '.join(lacks)}."
            return Step(leg.name, kept=False, says=says, value=score, detail=detail)
        words = ": " + ", ".join(f"{m.term} {m.score:.3g}" for m in matches)
        words += f"; it lacks {', '.join(lacks)}" if lacks else ""
    rank, of = rank_in_leg(outcome, fetched, slot)
    detail |= {"rank": rank, "of": of}
    says = f"By {leg.name} it ranks {rank} of {of}, with score {score:.4g}{words}."
    if outcome.plan.fusion is None and not outcome.plan.diversify:
        # The one leg's ranking is the answer, so min_score and top_k decide, not the fetch.
        return Step(leg.name, kept=True, says=says, value=score, detail=detail)
    kept = bool((fetched.found.slots == slot).any())
    says += f" The leg fetched its best {len(fetched.found.slots)}."
    return Step(leg.name, kept, says, score, detail)


def judges(fetched: Fetched, slot: int) -> bool:
    """Whether the leg has anything on the record."""
    return bool(fetched.leg.score(np.array([slot], np.int64))[0] > fetched.leg.absent)


def rank_in_leg(outcome: Outcome, fetched: Fetched, slot: int) -> tuple[int, int]:
    """The record's rank in a leg, however far down, and among how many.

    Records the leg has nothing on are not ranked. A record that was not admitted is
    ranked as if it had been.
    """
    name = fetched.leg.name
    score = float(fetched.leg.score(np.array([slot], dtype=np.int64))[0])
    if name not in outcome.ranked:
        outcome.ranked[name] = _rank_all(outcome, fetched.leg)
    eligible, scores = outcome.ranked[name]
    better = (scores > score) | ((scores == score) & (eligible < slot))
    beside = int(not (eligible == slot).any())
    return int(np.count_nonzero(better)) + 1, len(eligible) + beside


def _rank_all(outcome: Outcome, leg: Leg) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    alive = outcome.snapshot.alive if outcome.mask is None else outcome.mask
    eligible = np.flatnonzero(alive)
    scores = leg.score(eligible)
    judged = scores > leg.absent
    return eligible[judged], scores[judged]


def _fuse(outcome: Outcome, position: int | None) -> Step:
    if position is None:
        says = (
            f"No leg fetched it, so it was not fused: each leg fetches its best {outcome.plan.k}."
        )
        return Step("fuse", kept=False, says=says)
    score = float(outcome.fused.scores[position])
    parts, detail = [], {}
    for fetched, view, standards, part in zip(
        outcome.fetched,
        outcome.scores,
        outcome.fused.standards,
        outcome.fused.contributions,
        strict=True,
    ):
        name = fetched.leg.name
        parts.append(f"{name} {view.weight:g} × {standards[position]:.4g}")
        detail[name] = float(part[position])
    unread = any(
        view.least is not None and view.least[position] == standards[position]
        for view, standards in zip(outcome.scores, outcome.fused.standards, strict=True)
    )
    note = " The text leg cannot read it, and is taken to say what the vectors say." * unread
    says = (
        f"Fused by {outcome.plan.fusion} it is {position + 1} of {len(outcome.slots)} candidates: "
        f"{score:.4g} = {' + '.join(parts)}.{note}"
    )
    return Step(
        "fuse",
        kept=True,
        says=says,
        value=score,
        detail={"rank": position + 1, "contributions": detail},
    )


def _min_score(outcome: Outcome, slot: int, position: int | None) -> list[Step]:
    wanted = outcome.query.min_score
    if wanted is None or not outcome.fetched:
        return []
    if position is not None:
        value, kept = float(outcome.relevance[position]), bool(outcome.above[position])
    else:
        one = np.array([slot])
        value = float(relevance_of(outcome, [f.leg.score(one) for f in outcome.fetched])[0])
        kept = value >= wanted
    verb = "reaches" if kept else "is below"
    return [Step("min_score", kept, f"Its relevance {value:.4g} {verb} {wanted:g}.", value)]


def _mmr(outcome: Outcome, position: int | None) -> Step:
    if outcome.considered is None or outcome.picks is None:  # pragma: no cover - it ran
        return Step("mmr", kept=True, says="Nothing was diversified.")
    among, picks = outcome.considered, outcome.picks
    at = np.flatnonzero(among == position) if position is not None else np.empty(0, np.int64)
    if not len(at):
        kept = position is not None and bool((outcome.hits == position).any())
        says = f"It was not among the {len(among)} candidates that mmr_lambda chose from."
        return Step("mmr", kept, says)
    here = int(at[0])
    value = float(picks.passed_over[here])
    chosen = np.flatnonzero(picks.positions == here)
    if len(chosen):
        says = f"MMR picked it as number {int(chosen[0]) + 1}, with marginal relevance {value:.4g}."
        return Step("mmr", kept=True, says=says, value=value)
    nearest = int(among[picks.nearest[here]]) if picks.nearest[here] >= 0 else None
    (like,) = (
        outcome.snapshot.fetch([int(outcome.slots[nearest])]) if nearest is not None else (None,)
    )
    says = (
        f"MMR passed it over for {len(picks.positions)} others: its marginal relevance came to "
        f"{value:.4g}" + (f", and of those picked {like.id!r} is most like it." if like else ".")
    )
    return Step(
        "mmr", kept=False, says=says, value=value, detail={"most_like": like.id if like else None}
    )


def _top_k(outcome: Outcome, slot: int, position: int | None) -> Step:
    top_k = outcome.query.top_k
    found = np.flatnonzero(outcome.slots[outcome.hits] == slot)
    if len(found):
        rank = int(found[0]) + 1
        return Step(
            "top_k", kept=True, says=f"It is hit {rank} of {len(outcome.hits)}.", value=float(rank)
        )
    if position is not None:
        rank, of, where = position + 1, len(outcome.slots), "Of the candidates it is number"
    elif len(outcome.fetched) != 1 or not judges(outcome.fetched[0], slot):
        # There is no one ranking to be far down in: fusion lost it, or the leg has nothing on it.
        says = f"It is not among the {top_k} that are returned."
        return Step("top_k", kept=False, says=says)
    else:
        (fetched,) = outcome.fetched
        (rank, of), where = rank_in_leg(outcome, fetched, slot), f"By {fetched.leg.name} it ranks"
    return Step(
        "top_k",
        kept=False,
        says=f"{where} {rank} of {of}; top_k is {top_k}.",
        value=float(rank),
        detail={"rank": rank, "of": of},
    )
