"""What happened in one search, in arrays, before it is told.

:func:`search` is the one path: ``run`` makes hits of its outcome, ``explain`` sentences.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import LegResult, Mask
from cormorant.model import Query, Record, Stage
from cormorant.search.admit import admitted
from cormorant.search.claims import judge
from cormorant.search.diversify import Picks, diversified
from cormorant.search.fuse import Fused, LegScores, best_first, fuse
from cormorant.search.legs import Leg, TextLeg
from cormorant.search.plan import Plan, make_plan
from cormorant.search.scripts import Reading
from cormorant.search.unmatched import unmatched

if TYPE_CHECKING:
    from cormorant.search.ranking import Settled
    from cormorant.search.snapshot import Snapshot

__all__ = [
    "Fetched",
    "Outcome",
    "Stages",
    "ask_legs",
    "reading_of",
    "search",
    "trusted",
    "views_of",
]

logger = logging.getLogger(__name__)


class Stages:
    """The stages of one search, timed and counted as they end."""

    def __init__(self) -> None:
        self.done: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, int]]:
        """A stage around the block; what is put into the dict are its counters."""
        counters: dict[str, int] = {}
        began = time.perf_counter()
        try:
            yield counters
        finally:
            self.done.append(Stage(name, time.perf_counter() - began, counters))


@dataclass(frozen=True, slots=True)
class Fetched:
    """One leg's ranked list.

    Attributes:
        leg: Which.
        found: What its index returned.
        more: Whether the index may hold further candidates beyond the list.
    """

    leg: Leg
    found: LegResult
    more: bool


@dataclass(slots=True)
class Outcome:
    """One search, in arrays over the candidates, best first.

    Attributes:
        snapshot, query, plan: What was searched, asked and decided.
        mask: bool, shape (n,): who may be returned; None: every slot.
        admitted: How many that are.
        fetched: Each leg's list.
        weights: Each leg's, as the candidates are fused.
        slots: int64: the candidates, by fused score, ties by the lower slot.
        scores: Each leg's view of them.
        fused: Their worth.
        relevance: float64, in [0, 1].
        above: bool: at least ``min_score``.
        considered: Positions MMR chose among, or None.
        picks: What it chose, as positions in ``considered``, or None.
        hits: Positions of the hits, in their order.
        exact, complete: As in :class:`~cormorant.model.Result`.
        degraded, notes: Sentences.
        stages: As they ran.
        statistics: Whether the legs' statistics are wanted, whatever the fusion.
        ranked: By leg, all admitted slots it can judge and their scores; filled by explanations.
    """

    snapshot: Snapshot
    query: Query
    plan: Plan
    mask: Mask | None
    admitted: int
    fetched: tuple[Fetched, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    slots: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    scores: tuple[LegScores, ...] = ()
    fused: Fused = field(default_factory=lambda: Fused((), (), np.empty(0)))
    relevance: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    above: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    considered: NDArray[np.int64] | None = None
    picks: Picks | None = None
    hits: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exact: bool = True
    complete: bool = True
    degraded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stages: Stages = field(default_factory=Stages)
    statistics: bool = False
    ranked: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = field(default_factory=dict)


def search(snapshot: Snapshot, query: Query) -> Outcome:
    """Plan, filter, ask each leg, fuse, apply the threshold, diversify, cut."""
    outcome = ask_legs(snapshot, query)
    if not outcome.fetched:
        return outcome
    with outcome.stages.stage("fuse") as counters:
        _fuse(outcome)
        counters["candidates"] = len(outcome.slots)
        counters["below_min_score"] = int(np.count_nonzero(~outcome.above))
    if outcome.plan.diversify:
        with outcome.stages.stage("mmr") as counters:
            _diversify(outcome)
            counters["compared"] = 0 if outcome.considered is None else len(outcome.considered)
    else:
        outcome.hits = np.flatnonzero(outcome.above)[: query.top_k]
    judge(outcome)
    _warn_if_emptied(outcome)
    return outcome


def ask_legs(snapshot: Snapshot, query: Query) -> Outcome:
    """Plan, filter and ask each leg: what every ranking of the candidates starts from."""
    stages = Stages()
    with stages.stage("plan"):
        plan = make_plan(snapshot, query)
    with stages.stage("filter") as counters:
        mask = admitted(snapshot, plan.condition)
        count = snapshot.n if mask is None else int(np.count_nonzero(mask))
        counters["rows_admitted"] = count
    outcome = Outcome(snapshot, query, plan, mask, count, stages=stages, weights=plan.weights)
    outcome.degraded.extend(plan.degraded)
    outcome.notes.append(_filter_note(outcome))
    outcome.notes.extend(plan.notes)
    if not count:
        outcome.degraded.extend(unmatched(snapshot, plan.condition))
    if plan.legs and count:
        outcome.fetched = tuple(_fetch(outcome, leg) for leg in plan.legs)
    return outcome


def _filter_note(outcome: Outcome) -> str:
    live = outcome.snapshot.n - outcome.snapshot.dead
    condition = outcome.plan.condition
    if condition.parsed is None and condition.predicate is None and outcome.snapshot.scope is None:
        return f"filter: none, {live:,} records"
    part = outcome.admitted / live if live else 0.0
    kind = "a callable" if condition.predicate is not None else "columns"
    return f"filter: {outcome.admitted:,} of {live:,} records pass ({part:.2%}), by {kind}"


def _fetch(outcome: Outcome, leg: Leg) -> Fetched:
    k = outcome.plan.k
    with outcome.stages.stage(leg.name) as counters:
        found = leg.fetch(k, outcome.mask)
        counters.update(found.counters)
    outcome.notes.append(found.says)
    full = len(found.slots) >= k and found.matched > k
    return Fetched(leg, found, more=full or not found.exact)


def _fuse(outcome: Outcome) -> None:
    plan, query = outcome.plan, outcome.query
    slots, views = views_of(outcome)
    if len(views) > 1:
        names = [fetched.leg.name for fetched in outcome.fetched]
        fetch = partial(outcome.snapshot.fetch, slots)
        reading = reading_of(outcome, plan.settled, fetch) if plan.fusion == "z" else None
        seen = dict(zip(names, views, strict=True))
        outcome.weights, seen = trusted(reading, seen, plan.settled, plan.k)
        views = tuple(replace(seen[name], weight=outcome.weights[name]) for name in names)
    fused = fuse(views, fusion=plan.fusion, rrf_k=plan.rrf_k)
    order = best_first(fused.scores, slots)
    outcome.slots = slots[order]
    outcome.scores = tuple(view.take(order) for view in views)
    outcome.fused = Fused(
        tuple(s[order] for s in fused.standards),
        tuple(c[order] for c in fused.contributions),
        fused.scores[order],
    )
    outcome.relevance = relevance_of(outcome, [view.scores for view in outcome.scores])
    outcome.above = (
        np.ones(len(slots), dtype=np.bool_)
        if query.min_score is None
        else outcome.relevance >= query.min_score
    )
    if plan.fusion is not None:
        weights = ", ".join(f"{leg.name} {outcome.weights[leg.name]:.4g}" for leg in plan.legs)
        outcome.notes.append(
            f"fuse: {plan.fusion} over {len(slots):,} candidates, {weights}, {_why(plan)}"
        )


def _why(plan: Plan) -> str:
    """Who said the weights."""
    trust = plan.settled.trust
    if trust is None:
        return plan.settled.weights_why
    return (
        f"as learned from {trust.records:,} records (vector {trust.share:.2f}) "
        "and by how the legs agree on this query"
    )


def views_of(outcome: Outcome) -> tuple[NDArray[np.int64], tuple[LegScores, ...]]:
    """Every candidate's slot, and each leg's view of them all in that order."""
    slots = _union([fetched.found.slots for fetched in outcome.fetched])
    return slots, tuple(_view(outcome, fetched, slots) for fetched in outcome.fetched)


def reading_of(
    outcome: Outcome, settled: Settled, fetch: Callable[[], Sequence[Record]]
) -> Reading | None:
    """What is known of the query and its candidates beside the scores; None if nothing was learned.

    Args:
        outcome: After its legs were asked.
        settled: The query's ranking settings.
        fetch: Gives the candidates; asked in a store of several scripts alone.
    """
    known = next(each.leg.known for each in outcome.fetched if isinstance(each.leg, TextLeg))
    if settled.scripts is not None:
        return Reading.of(settled.scripts, known, outcome.query.text or "", fetch())
    return None if settled.trust is None else Reading(settled.trust, known)


def trusted(
    reading: Reading | None, seen: Mapping[str, LegScores], settled: Settled, depth: int
) -> tuple[Mapping[str, float], dict[str, LegScores]]:
    """What the store learned, applied to one query's candidates.

    Args:
        reading: Of them.
        seen: Both legs' views of them.
        settled: The query's ranking settings.
        depth: Candidates each leg fetched.

    Returns:
        Each leg's weight, and its view, in which the text leg's is of what it can read.
    """
    if reading is None or settled.fusion != "z":
        return settled.weights, dict(seen)
    weighing, text = reading.weigh(seen["vector"], seen["text"], depth=depth)
    weights = settled.weights if settled.trust is None else weighing.weights
    return weights, {**seen, "text": text}


def _union(lists: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Every slot once: one list as it is, several in ascending order."""
    if len(lists) == 1:
        return lists[0]
    slots = np.sort(np.concatenate(lists))  # np.unique would hold the interpreter lock
    first = np.ones(len(slots), dtype=np.bool_)
    np.not_equal(slots[1:], slots[:-1], out=first[1:])
    return slots[first]


def _view(outcome: Outcome, fetched: Fetched, slots: NDArray[np.int64]) -> LegScores:
    """The leg's scores and ranks of all candidates, those it did not fetch included."""
    leg, found = fetched.leg, fetched.found
    if slots is found.slots:
        scores, ranks = found.scores, np.arange(1, len(slots) + 1)
    else:
        at = np.searchsorted(slots, found.slots)
        ranks = np.zeros(len(slots), dtype=np.int64)
        ranks[at] = np.arange(1, len(at) + 1)
        scores = leg.score(slots)
        scores[at] = found.scores
    wanted = outcome.plan.fusion == "z" or outcome.plan.curve is not None
    statistics = leg.statistics() if wanted or outcome.statistics else None
    return LegScores(outcome.weights[leg.name], scores, ranks, statistics)


def relevance_of(outcome: Outcome, scores: list[NDArray[np.float32]]) -> NDArray[np.float64]:
    """In [0, 1]: the probability where calibrated, else the legs' own, weighted as they are fused.

    Args:
        outcome: After its legs were asked, and their views taken.
        scores: Of each leg, in their order.
    """
    if outcome.plan.curve is not None:
        return outcome.plan.curve.probability(
            {
                fetched.leg.name: view.statistics.standard(leg_scores)
                for fetched, view, leg_scores in zip(
                    outcome.fetched, outcome.scores, scores, strict=True
                )
                if view.statistics is not None
            }
        )
    weights = outcome.weights
    total = np.zeros(len(scores[0]))
    for fetched, leg_scores in zip(outcome.fetched, scores, strict=True):
        total += weights[fetched.leg.name] * fetched.leg.relevance(leg_scores)
    return np.clip(total / sum(weights.values()), 0.0, 1.0)


def _diversify(outcome: Outcome) -> None:
    """MMR among the best ``fetch_k`` candidates that passed the threshold."""
    query, snapshot, plan = outcome.query, outcome.snapshot, outcome.plan
    passed = np.flatnonzero(outcome.above)[: plan.k]
    vectors = snapshot.vectors()
    if vectors is None or plan.vector is None or plan.mmr_lambda is None:  # pragma: no cover
        raise ValueError("make_plan() lets nothing through without them.")
    has = snapshot.has_vector[outcome.slots[passed]]
    hits, picks = diversified(
        plan.vector,
        vectors[outcome.slots[passed[has]]],
        has,
        mmr_lambda=plan.mmr_lambda,
        k=query.top_k,
    )
    outcome.considered, outcome.picks, outcome.hits = passed[has], picks, passed[hits]
    considered, rest = outcome.considered, passed[~has]
    outcome.notes.append(
        f"mmr: {len(picks.positions)} of {len(considered)} candidates, lambda {plan.mmr_lambda:g}"
    )
    if len(rest):
        outcome.degraded.append(
            f"{len(rest)} candidates have no vector, so mmr_lambda could not weigh them; "
            "they come after those that do."
        )


def _warn_if_emptied(outcome: Outcome) -> None:
    if len(outcome.above) and not outcome.above.any():
        logger.warning(
            "min_score=%g (LangChain: score_threshold) left none of %d candidates; the best has "
            "relevance %.3g. Lower it, or see the relevances without it.",
            outcome.query.min_score,
            len(outcome.slots),
            float(outcome.relevance.max()),
        )
