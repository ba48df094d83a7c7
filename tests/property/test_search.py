"""Searching, against the same search done the slow way; explaining, against searching."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from cormorant.model import Query, Record, Result
from cormorant.search import explain, matching, run
from cormorant.search.ranking import settle

sys.path.insert(0, str(Path(__file__).parents[1]))
from searchlab import MemorySnapshot, Slow, slow_search

WORDS = ("fish", "bird", "river", "the", "鸬鹚", "err_42")
NEAR = 1e-6
EXAMPLES = settings(max_examples=60, deadline=None)

texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
vectors = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
metadatas = st.fixed_dictionaries(
    {}, optional={"team": st.sampled_from("ab"), "n": st.integers(0, 3)}
)
filters: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        None,
        {"team": "a"},
        {"n": {"$gte": 2}},
        {"$or": [{"team": "b"}, {"n": 0}]},
        {"$text": "fish"},
        {"team": "nobody"},
        lambda record: record.metadata.get("n", 0) != 1,
    ]
)


@st.composite
def snapshots(draw: st.DrawFn) -> MemorySnapshot:
    count = draw(st.integers(1, 14))
    records = [
        Record(
            id=f"r{i}",
            text=draw(texts),
            vector=draw(vectors) if i == 0 else draw(st.none() | vectors),
            metadata=draw(metadatas),
        )
        for i in range(count)
    ]
    dead = draw(st.sets(st.integers(1, count - 1), max_size=count // 3)) if count > 1 else set()
    return MemorySnapshot(
        records,
        dead=sorted(dead),
        metric=draw(st.sampled_from(["cosine", "dot", "euclidean"])),
        scope=draw(st.sampled_from([None, None, {"team": "a"}])),
    )


@st.composite
def queries(draw: st.DrawFn, *, mmr: bool = False) -> Query:
    mode = draw(st.sampled_from(["vector", "hybrid"] if mmr else ["vector", "text", "hybrid"]))
    top_k = draw(st.integers(1, 8))
    return Query(
        text=" ".join(draw(st.lists(st.sampled_from((*WORDS, "whale")), min_size=1, max_size=4))),
        vector=draw(vectors),
        mode=mode,
        filter=draw(filters),
        top_k=top_k,
        fetch_k=draw(st.none() | st.integers(top_k, top_k + 6)),
        min_score=draw(st.none() | st.sampled_from([0.0, 0.13, 0.41, 0.77, 1.0])),
        weights=draw(
            st.sampled_from(
                [{"vector": 0.5, "text": 0.5}, {"vector": 0.9, "text": 0.1}, {"text": 1}]
            )
        )
        if mode == "hybrid"
        else {"vector": 1.0, "text": 1.0},
        fusion=draw(st.sampled_from(["z", "rrf", "minmax"])),
        rrf_k=draw(st.sampled_from([0.0, 60.0])),
        mmr_lambda=draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])) if mmr else None,
        explain=draw(st.booleans()),
    )


def _slots(snapshot: MemorySnapshot, hits: Any) -> list[int]:
    at = {record.id: slot for slot, record in enumerate(snapshot.records)}
    return [at[hit.id] for hit in hits]


def _undecided(slow: Slow, query: Query) -> bool:
    """Whether rounding could tip the search: fused scores or a threshold within a hair."""
    scores = sorted(slow.fused.values())
    gaps = np.diff(scores)
    fused = query.resolved_mode == "hybrid" and bool(((gaps > 0) & (gaps < NEAR)).any())
    low = query.min_score
    return fused or (
        low is not None and any(abs(r - low) < NEAR and r != low for r in slow.relevance.values())
    )


@EXAMPLES
@given(snapshots(), queries())
def test_hits_are_those_of_the_slow_search(snapshot: MemorySnapshot, query: Query) -> None:
    slow = slow_search(snapshot, query)
    assume(not _undecided(slow, query))
    result = run(snapshot, query)
    wanted = slow.above[: query.top_k]
    assert _slots(snapshot, result) == wanted
    assert np.flatnonzero(matching(snapshot, query.filter)).tolist() == slow.eligible
    for rank, (hit, slot) in enumerate(zip(result, wanted, strict=True), start=1):
        record = snapshot.records[slot]
        assert hit.rank == rank
        assert (hit.text, hit.metadata) == (record.text, record.metadata)
        assert hit.score == pytest.approx(slow.fused[slot], abs=1e-5)
        assert sum(hit.contributions.values()) == pytest.approx(hit.score, abs=1e-9)
        assert hit.relevance == pytest.approx(slow.relevance[slot], abs=1e-6)
        assert 0.0 <= hit.relevance <= 1.0
        for name, leg in slow.legs.items():
            if leg.scores[slot] == -np.inf:
                assert name not in hit.legs
                continue
            seen = hit.legs[name]
            assert seen.score == leg.scores[slot]
            assert seen.rank == (leg.fetched.index(slot) + 1 if slot in leg.fetched else None)
            if name == "text" and query.explain:
                assert sum(term.score for term in seen.terms) == pytest.approx(seen.score, rel=1e-5)


@EXAMPLES
@given(snapshots(), st.one_of(queries(), queries(mmr=True)))
def test_claims_are_true(snapshot: MemorySnapshot, query: Query) -> None:
    """``exact`` and ``complete`` against a search whose legs fetch everything."""
    _check_claims(snapshot, query)


@pytest.mark.parametrize("mmr_lambda", [None, 0.5])
@pytest.mark.parametrize("fusion", ["z", "rrf", "minmax"])
def test_claims_are_true_of_crowds(fusion: Any, mmr_lambda: float | None) -> None:
    """Where lists end early and scores lie close, which small worlds rarely have."""
    rng = np.random.default_rng(8)
    claimed = {True: 0, False: 0}
    for _ in range(120):
        records = [
            Record(
                id=f"r{i}",
                text=" ".join(rng.choice(WORDS[:3], rng.integers(0, 7))),
                vector=rng.standard_normal(3) if rng.random() < 0.9 else None,
            )
            for i in range(rng.integers(8, 60))
        ]
        top_k = int(rng.integers(1, 4))
        query = Query(
            text="fish river" if rng.random() < 0.7 else "fish whale",
            vector=rng.standard_normal(3),
            top_k=top_k,
            fetch_k=top_k + int(rng.integers(0, 25)),
            fusion=fusion,
            rrf_k=float(rng.choice([0.0, 60.0])),
            mmr_lambda=mmr_lambda,
            min_score=0.5 if rng.random() < 0.2 else None,
        )
        result = _check_claims(MemorySnapshot(records), query)
        claimed[result.exact] += 1
        assert result.exact or "fetch_k" in result.plan[-1]
    assert min(claimed.values()) > 3


def _check_claims(snapshot: MemorySnapshot, query: Query) -> Result:
    result = run(snapshot, query)
    everything = run(snapshot, replace(query, fetch_k=max(query.top_k, snapshot.n)))
    assert everything.exact
    if result.complete:
        assert len(result) == len(everything)
    if result.exact:
        assert _slots(snapshot, result) == _slots(snapshot, everything)
    if query.resolved_mode != "hybrid" and query.mmr_lambda is None:
        assert result.exact
        assert result.complete
    return result


@EXAMPLES
@given(snapshots(), queries(mmr=True))
def test_mmr_picks_as_langchain_does(snapshot: MemorySnapshot, query: Query) -> None:
    slow = slow_search(snapshot, query)
    assume(not _undecided(slow, query))
    result = run(snapshot, query)
    candidates = slow.above[: settle(snapshot, query).fetch_k]
    having = [slot for slot in candidates if snapshot.has_vector[slot]]
    rest = [slot for slot in candidates if not snapshot.has_vector[slot]]
    rows = snapshot.vectors()
    assert rows is not None
    assert query.mmr_lambda is not None
    picked = _by_definition(query.vector, rows[having], query.mmr_lambda, query.top_k)
    wanted = ([having[i] for i in picked] + rest)[: query.top_k]
    assert _slots(snapshot, result) == wanted
    assert [hit.score for hit in result] == pytest.approx([slow.fused[s] for s in wanted], abs=1e-5)
    assert any("mmr_lambda" in said for said in result.degraded) == bool(rest and slow.legs)


def _by_definition(query: Any, rows: Any, mmr_lambda: float, k: int) -> list[int]:
    """MMR as defined, with cosines rounded so that what is equal ties."""

    def cos(a: Any, b: Any) -> float:
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        norms = float(np.sqrt((a * a).sum() * (b * b).sum()))
        return round(float((a * b).sum()) / norms, 9) if norms else 0.0

    picked: list[int] = []
    while len(picked) < min(k, len(rows)):
        best, best_value = -1, -np.inf
        for i in range(len(rows)):
            if i in picked:
                continue
            value = cos(query, rows[i])
            if picked:
                redundant = max(cos(rows[i], rows[j]) for j in picked)
                value = mmr_lambda * value - (1 - mmr_lambda) * redundant
            if value > best_value + 1e-8:
                best, best_value = i, value
        picked.append(best)
    return picked


@EXAMPLES
@given(snapshots(), st.one_of(queries(), queries(mmr=True)))
def test_explain_agrees_with_search(snapshot: MemorySnapshot, query: Query) -> None:
    result = run(snapshot, query)
    slow = slow_search(snapshot, query)
    assume(not _undecided(slow, query))
    hits = {hit.id: hit for hit in result}
    mmr = query.mmr_lambda is not None
    hybrid = query.resolved_mode == "hybrid"
    for slot in np.flatnonzero(snapshot.alive).tolist():
        told = explain(snapshot, query, slot)
        steps = {step.stage: step for step in told.steps}
        assert told.id == snapshot.records[slot].id
        assert told.found == (told.id in hits)
        assert told.says
        for name, leg in slow.legs.items():
            step = steps.get(name)
            if step is None:
                assert not slow.eligible
            elif leg.scores[slot] > (-np.inf if name == "vector" else 0):
                among = leg.ranked if slot in leg.ranked else [*leg.ranked, slot]
                among = sorted(among, key=lambda s, leg=leg: (-leg.scores[s], s))
                assert step.value == leg.scores[slot]
                assert step.detail["rank"] == among.index(slot) + 1
                assert step.detail["of"] == len(among)
            else:
                assert not step.kept
        if told.found:
            hit = hits[told.id]
            assert (told.rank, told.score, told.lost_at) == (hit.rank, hit.score, None)
            legs = {"vector", "text"} if hybrid else set()
            assert all(step.kept for step in told.steps if step.stage not in legs)
            assert hit.journey == (told.steps if query.explain else ())
            continue
        assert told.lost_at == _lost_at(snapshot, query, slow, slot, mmr=mmr, hybrid=hybrid)
        assert told.says.endswith(steps[told.lost_at].says)


def _lost_at(
    snapshot: MemorySnapshot, query: Query, slow: Slow, slot: int, *, mmr: bool, hybrid: bool
) -> str:
    record = snapshot.records[slot]
    if snapshot.scope is not None and not snapshot.scope.matches(record.metadata, record.text):
        return "scope"
    if slot not in slow.eligible:
        return "filter"
    if not hybrid:
        ((name, leg),) = slow.legs.items()
        if slot not in leg.ranked or (mmr and slot not in leg.fetched):
            return name
    elif slot not in slow.ranked:
        return "fuse"
    if query.min_score is not None and slow.relevance[slot] < query.min_score:
        return "min_score"
    return "mmr" if mmr else "top_k"


def test_the_reference_is_langchains_where_nothing_ties() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        rows = rng.standard_normal((12, 4))
        query = rng.standard_normal(4)
        mmr_lambda = float(rng.random())
        wanted = maximal_marginal_relevance(query, rows.tolist(), mmr_lambda, 6)
        assert _by_definition(query, rows, mmr_lambda, 6) == wanted
