"""Candidates ranked again: the same hits, in the same order, as a search with those settings."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.errors import QueryError
from cormorant.model import Query, Record
from cormorant.search import Trust, gather, run

sys.path.insert(0, str(Path(__file__).parents[1]))
from searchlab import MemorySnapshot

WORDS = ("fish", "bird", "river", "the", "鸬鹚", "err_42")
EXAMPLES = settings(max_examples=80, deadline=None)

texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
vectors = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
weightings = st.sampled_from(
    [
        {"vector": 0.5, "text": 0.5},
        {"vector": 0.9, "text": 0.1},
        {"vector": 0.2, "text": 1.7},
        {"vector": 1.0, "text": 0.0},
        {"vector": 0.0, "text": 1.0},
    ]
)


LEARNED = (
    None,
    None,
    Trust(0.4, 0.3, 200, 0),
    Trust(0.4, 0.3, 200, 0, scripts={"CJK": 0.3, "LATIN": 0.7}),
    Trust(0.2, 0.3, 200, 0, scripts={"CJK": 0.05, "LATIN": 0.95}, heard=1.0, probes=9),
)


@st.composite
def snapshots(draw):
    count = draw(st.integers(1, 14))
    records = [
        Record(
            id=f"r{i}",
            text=draw(texts),
            vector=draw(vectors) if i == 0 else draw(st.none() | vectors),
            metadata={"n": i % 3},
        )
        for i in range(count)
    ]
    dead = draw(st.sets(st.integers(1, count - 1), max_size=count // 3)) if count > 1 else set()
    metric = draw(st.sampled_from(["cosine", "dot", "euclidean"]))
    snapshot = MemorySnapshot(records, dead=sorted(dead), metric=metric)
    snapshot.trust = draw(st.sampled_from(LEARNED))
    return snapshot


@st.composite
def cases(draw):
    """A query, and the settings it is to be ranked under."""
    top_k = draw(st.integers(1, 6))
    query = Query(
        text=" ".join(draw(st.lists(st.sampled_from((*WORDS, "whale")), min_size=1, max_size=4))),
        vector=draw(vectors),
        mode=draw(st.sampled_from(["vector", "text", "hybrid", "hybrid"])),
        filter=draw(st.sampled_from([None, None, {"n": {"$gte": 1}}, {"n": 9}])),
        top_k=top_k,
    )
    told = {
        "fusion": draw(st.sampled_from(["z", "rrf", "minmax"])),
        "weights": draw(weightings),
        "rrf_k": draw(st.sampled_from([0.0, 1.0, 60.0])),
        "fetch_k": draw(st.integers(top_k, top_k + 8)),
        "mmr_lambda": draw(st.none() | st.sampled_from([0.0, 0.4, 1.0])),
    }
    return query, told


def ids(candidates, places):
    return [candidates.records[place].id for place in places]


def searched(snapshot, query):
    """The hits; none where the query has nothing this store could search."""
    try:
        return [hit.id for hit in run(snapshot, query)]
    except QueryError as error:
        if "Nothing can be searched" not in str(error):
            raise
        return []


@EXAMPLES
@given(snapshots(), cases())
def test_ranked_again_is_searched(snapshot, case):
    query, told = case
    found = gather(snapshot, query, fetch_k=query.top_k + 9, with_vectors=True)
    again = found.rank(replace(found.settled, **told), top_k=query.top_k)
    assert ids(found, again) == searched(snapshot, replace(query, **told))


@EXAMPLES
@given(snapshots(), cases())
def test_unchanged_settings_are_the_search_itself(snapshot, case):
    query, _ = case
    found = gather(snapshot, query, fetch_k=None, with_vectors=False)
    assert ids(found, found.rank(found.settled, top_k=query.top_k)) == searched(snapshot, query)


@EXAMPLES
@given(snapshots(), cases(), st.lists(weightings, min_size=1, max_size=4))
def test_many_weightings_at_once_are_each_alone(snapshot, case, several):
    query, told = case
    found = gather(snapshot, query, fetch_k=query.top_k + 9, with_vectors=True)
    settled = replace(found.settled, **told)
    at_once = found.rank_weighted(settled, several, top_k=query.top_k)
    alone = [found.rank(replace(settled, weights=w), top_k=query.top_k) for w in several]
    assert [a.tolist() for a in at_once] == [a.tolist() for a in alone]


@EXAMPLES
@given(snapshots(), cases())
def test_what_is_called_exact_is_a_full_scan(snapshot, case):
    query, told = case
    query = replace(query, **{**told, "weights": None})
    try:
        result = run(snapshot, query)
    except QueryError as error:
        if "Nothing can be searched" not in str(error):
            raise
        return
    if result.exact:
        whole = run(snapshot, replace(query, fetch_k=max(snapshot.n, query.top_k)))
        assert [hit.id for hit in result] == [hit.id for hit in whole]
        assert [hit.score for hit in result] == pytest.approx([hit.score for hit in whole])


def test_more_than_was_fetched_is_refused():
    snapshot = MemorySnapshot([Record(id=str(i), text="fish") for i in range(5)])
    found = gather(snapshot, Query(text="fish", top_k=2), fetch_k=3, with_vectors=False)
    with pytest.raises(QueryError, match="larger fetch_k"):
        found.rank(found.settled, top_k=51)


def test_mmr_needs_the_vectors():
    snapshot = MemorySnapshot([Record(id="a", text="fish", vector=[1, 0])])
    query = Query(text="fish", vector=[1, 0])
    found = gather(snapshot, query, fetch_k=None, with_vectors=False)
    with pytest.raises(QueryError, match="with_vectors"):
        found.rank(replace(found.settled, mmr_lambda=0.5), top_k=1)
    with pytest.raises(QueryError, match="has none"):
        gather(snapshot, Query(text="fish"), fetch_k=None, with_vectors=True)
