"""``why_not`` names the true cause, and its first change, applied, brings the record in.

The true cause is told by searches alone: everything is relaxed, then put back in the order of
the stages, until the record is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cormorant
from cormorant import Query
from cormorant.errors import QueryError
from cormorant.filters import parse

WORDS = ("fish", "fishing", "boat", "net", "鱼", "渔船", "sea", "the", "heron", "ERR_1042")
N, DIM = 24, 4


@pytest.fixture(scope="module")
def store() -> Any:
    rng = np.random.default_rng(5)
    with cormorant.open(":memory:", dim=DIM) as made:
        made.add(
            {
                "id": str(i),
                "text": " ".join(rng.choice(WORDS, rng.integers(0, 6))),
                "vector": None if i % 7 == 0 else rng.normal(size=DIM),
                "metadata": {
                    "tenant": "acme" if i % 3 else "rival",
                    "year": 2020 + i % 4,
                    **({} if i % 5 else {"draft": True}),
                },
            }
            for i in range(N)
        )
        yield made


_filters = st.sampled_from(
    [
        None,
        {"year": {"$gte": 2022}},
        {"year": 2021, "draft": {"$exists": False}},
        {"$or": [{"year": 2020}, {"draft": True}]},
        {"$not": {"tenant": "acme"}, "year": {"$lt": 2023, "$gt": 2020}},
        {"year": "2021"},
        lambda record: record.metadata["year"] != 2021,
    ]
)


_lambdas = st.none() | st.sampled_from([0.0, 0.3, 0.7, 1.0])


@st.composite
def queries(draw: st.DrawFn) -> Query:
    mode = draw(st.sampled_from(["vector", "text", "hybrid"]))
    text = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
    vector = draw(st.lists(st.integers(-3, 3), min_size=DIM, max_size=DIM))
    top_k = draw(st.integers(1, 8))
    given_vector = mode != "text" or draw(st.booleans())
    return Query(
        text=text if mode != "vector" or draw(st.booleans()) else None,
        vector=[float(v) + 0.1 for v in vector] if given_vector else None,
        mode=mode,
        top_k=top_k,
        fetch_k=draw(st.none() | st.integers(top_k, 15)),
        filter=draw(_filters),
        min_score=draw(st.none() | st.sampled_from([0.05, 0.2, 0.5, 0.8])),
        mmr_lambda=draw(st.none() | st.sampled_from([0.0, 0.3, 0.7, 1.0]))
        if given_vector
        else None,
        fusion=draw(st.sampled_from(["z", "rrf", "minmax"])),
        weights=draw(st.none() | st.just({"vector": 0.8, "text": 0.2})),
    )


def hit(door: Any, query: Query, id: str) -> bool:
    return id in {each.id for each in door.search(query).hits}


def true_cause(  # noqa: PLR0911 - a stage after another
    store: Any, door: Any, query: Query, id: str
) -> str:
    """By searches alone."""
    if hit(door, query, id):
        return "found"
    record = store.get([id])[0]
    if not door.admits(record.metadata):
        return "scope"
    if isinstance(query.filter, dict):
        if not parse(query.filter).matches(record.metadata, record.text):
            return "filter"
    elif query.filter is not None and not query.filter(record):
        return "filter"
    wide = replace(query, fetch_k=N, top_k=N, min_score=None, mmr_lambda=None)
    if not hit(door, wide, id):
        return "terms" if query.resolved_mode != "vector" else "no_vector"
    fused = query.resolved_mode == "hybrid" or query.mmr_lambda is not None
    fetch_k = query.fetch_k
    if fetch_k is None:
        fetch_k = max(50, 4 * query.top_k) if query.resolved_mode == "hybrid" else 20
        fetch_k = max(fetch_k, query.top_k)
    if fused:
        # Asking for as many hits as can be fetched, without a threshold, shows the candidates.
        legs = [query.resolved_mode] if query.resolved_mode != "hybrid" else ["vector", "text"]
        if not any(
            hit(door, replace(wide, mode=leg, top_k=fetch_k, fetch_k=fetch_k), id) for leg in legs
        ):
            return "fetch_k"
    if query.min_score is not None:
        found = next(each for each in door.search(wide) if each.id == id)
        if found.relevance < query.min_score:
            return "min_score"
    return "mmr" if query.mmr_lambda is not None else "top_k"


@settings(max_examples=1000, deadline=None)
@given(query=queries(), id=st.integers(0, N - 1).map(str), scoped=st.booleans())
def test_the_true_cause_is_named_and_the_change_brings_it_in(
    store: Any, query: Query, id: str, scoped: bool
) -> None:
    scope = {"tenant": "acme"} if scoped else {}
    door = store.scope(**scope)
    try:
        door.search(query)
    except QueryError:
        return
    why = store.why_not(query, id, scope=scope or None)
    cause = true_cause(store, door, query, id)
    if query.mmr_lambda is not None and cause == "mmr":
        assert why.cause in {"mmr", "fetch_k"}, why
    else:
        assert why.cause == cause, (why, cause)
    if cause in {"found", "scope"}:
        assert why.changes == ()
        return
    record = store.get([id], with_vectors=True)[0]
    reachable = record.text or (record.vector is not None and query.vector is not None)
    if reachable:
        change = why.changes[0]
        assert change.query, why
        assert hit(door, change.apply(query), id), (why.says, change)


@settings(max_examples=150, deadline=None)
@given(query=queries())
def test_the_parts_of_an_explanation_add_up(store: Any, query: Query) -> None:
    try:
        result = store.search(replace(query, explain=True))
    except QueryError:
        return
    for hit in result:
        assert sum(hit.contributions.values()) == pytest.approx(hit.score, abs=1e-6)
        if "text" in hit.legs and hit.legs["text"].terms:
            parts = [match.score for match in hit.legs["text"].terms]
            assert sum(parts) == pytest.approx(hit.legs["text"].score, rel=1e-5)
        steps = {step.stage: step for step in store.explain(query, hit.id).steps}
        assert all(step.kept for step in steps.values() if step.stage not in {"vector", "text"})
        if "fuse" in steps:
            fused = steps["fuse"].detail["contributions"]
            assert sum(fused.values()) == pytest.approx(hit.score, abs=1e-6)
