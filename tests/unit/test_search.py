"""What a search says of itself: what it left out, what it did, and why a record was missed."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import DimensionError, FilterError, QueryError
from cormorant.filters import parse
from cormorant.model import Query, Record
from cormorant.search import explain, matching, run
from cormorant.search.ranking import settle

sys.path.insert(0, str(Path(__file__).parents[1]))
from searchlab import MemorySnapshot

PARTIAL = "1 of 4 records have no vector, so the vector leg cannot find them."


def record(id, text="", vector=None, **metadata):
    return Record(id=id, text=text, vector=vector, metadata=metadata)


@pytest.fixture
def birds():
    return MemorySnapshot(
        [
            record("cormorant", "a cormorant dives for fish", [1.0, 0.0], year=2024),
            record("heron", "a heron waits for fish", [0.8, 0.6], year=2020),
            record("swift", "a swift sleeps in the air", [0.0, 1.0], year=2024),
            record("note", "fish prices", None, year=2021),
        ]
    )


def ids(result):
    return [hit.id for hit in result]


def test_hybrid_says_how_each_hit_got_there(birds):
    result = run(birds, Query(text="diving for fish", vector=[1.0, 0.1], top_k=3, explain=True))
    assert ids(result) == ["cormorant", "heron", "note"]
    first = result.hits[0]
    assert first.legs["vector"].rank == 1
    assert {term.term for term in first.legs["text"].terms} == {"fish", "dive"}
    assert sum(first.contributions.values()) == pytest.approx(first.score)
    assert [step.stage for step in first.journey] == ["vector", "text", "fuse", "top_k"]
    assert "vector" not in result.hits[2].legs
    assert result.exact
    assert result.complete
    assert result.degraded == (PARTIAL,)
    assert [stage.name for stage in result.stages] == [
        "plan",
        "filter",
        "vector",
        "text",
        "fuse",
        "fetch",
    ]
    assert result.counters["rows_scanned"] >= 3
    assert result.counters["candidates"] >= 3
    assert any(said.startswith("vector: exact scan") for said in result.plan)
    assert any(said.startswith("text: BM25 over all") for said in result.plan)


def test_mmr_is_exact_only_if_it_saw_every_candidate(birds):
    asked = Query(vector=[1.0, 0.1], top_k=2, fetch_k=2, mmr_lambda=0.0)
    narrow, wide = run(birds, asked), run(birds, replace(asked, fetch_k=3))
    assert ids(narrow) != ids(wide)
    assert not narrow.exact
    assert narrow.plan[-1] == (
        "mmr: it chose among the best 2 candidates alone; a larger fetch_k may choose others"
    )
    assert wide.exact


def test_texts_are_fetched_for_the_hits_alone(birds):
    run(birds, Query(text="fish", vector=[1.0, 0.0], top_k=2))
    assert len(birds.fetches) == 2


def test_hits_are_copies(birds):
    hit = run(birds, Query(text="cormorant", with_vectors=True)).hits[0]
    hit.metadata["year"] = 1
    assert birds.records[0].metadata["year"] == 2024
    assert hit.vector is not None
    hit.vector[0] = 9.0
    assert birds.vectors()[0, 0] == 1.0


def test_vectors_come_only_when_asked_for(birds):
    assert run(birds, Query(text="cormorant")).hits[0].vector is None
    hits = run(birds, Query(text="fish", with_vectors=True)).hits
    assert {hit.id: hit.vector is None for hit in hits}["note"]


# What cannot be run


def test_hybrid_without_vectors_is_text_and_says_so():
    texts = MemorySnapshot([record("a", "fish"), record("b", "bird")])
    result = run(texts, Query(text="fish", vector=[1.0], mode="hybrid"))
    assert ids(result) == ["a"]
    (said,) = result.degraded
    assert said.startswith("The store was filled without vectors")
    assert said.endswith("Only the text leg was searched.")


def test_hybrid_without_terms_is_vector_and_says_so(birds):
    result = run(birds, Query(text="?!", vector=[1.0, 0.0], mode="hybrid", top_k=1))
    assert ids(result) == ["cormorant"]
    assert "no term" in result.degraded[0]
    assert "Only the vector leg" in result.degraded[0]


def test_nothing_that_could_run_is_refused(birds):
    texts = MemorySnapshot([record("a", "fish")])
    with pytest.raises(QueryError, match="filled without vectors"):
        run(texts, Query(vector=[1.0]))
    with pytest.raises(QueryError, match="no term"):
        run(birds, Query(text="?!"))
    with pytest.raises(QueryError, match="no term"):
        run(texts, Query(text="?!", vector=[1.0]))
    with pytest.raises(QueryError, match="without vectors"):
        run(texts, Query(text="fish", vector=[1.0], weights={"vector": 1.0}))


def test_a_store_whose_vectors_are_gone_or_yet_to_come_answers_with_nothing():
    left = MemorySnapshot([record("a", "fish", [1.0]), record("b", "fish")], dead=[0])
    result = run(left, Query(vector=[1.0]))
    assert ids(result) == []
    assert result.degraded == ("No record in the store has a vector.",)
    assert ids(run(left, Query(text="fish", vector=[1.0]))) == ["b"]
    with pytest.raises(QueryError, match="no term"):
        run(left, Query(text="?!", vector=[1.0]))


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
def test_an_empty_store_answers_with_nothing(mode):
    nothing = MemorySnapshot([])
    gone = MemorySnapshot([record("a", "fish", [1.0])], dead=[0])
    for snapshot in (nothing, gone):
        result = run(snapshot, Query(text="fish", vector=[1.0], mode=mode))
        assert ids(result) == []
        assert result.exact
        assert result.complete


def test_a_query_vector_that_does_not_fit_is_refused(birds):
    for bad in ([1.0, 2.0, 3.0], [float("nan"), 0.0], [0.0, 0.0], ["a", "b"]):
        for mode in ("vector", "hybrid"):
            with pytest.raises(DimensionError, match="The query's vector"):
                run(birds, Query(text="fish", vector=bad, mode=mode))


def test_a_leg_of_weight_nothing_is_not_run(birds):
    result = run(birds, Query(text="fish", vector=[0.0, 1.0], weights={"vector": 1.0, "text": 0.0}))
    assert ids(result) == ["swift", "heron", "cormorant"]
    assert [stage.name for stage in result.stages if stage.name == "text"] == []
    assert "text: not run, its weight is 0" in result.plan
    assert result.degraded == (PARTIAL,)


@pytest.mark.parametrize(
    ("asked", "fetched"),
    [
        ({"mode": "vector", "top_k": 2}, 2),
        ({"mode": "vector", "top_k": 2, "fetch_k": 3}, 2),
        ({"mode": "vector", "top_k": 2, "mmr_lambda": 0.5}, 3),
        ({"mode": "hybrid", "top_k": 1, "fetch_k": 1}, 2),
        ({"mode": "hybrid", "top_k": 1}, 3),
    ],
)
def test_legs_are_asked_for_no_more_than_is_used(birds, asked, fetched):
    result = run(birds, Query(text="air", vector=[1.0, 0.0], **asked))
    fuse = next(stage for stage in result.stages if stage.name == "fuse")
    assert fuse.counters["candidates"] == fetched


# Thresholds


def test_a_threshold_keeps_what_reaches_it(birds):
    query = {"vector": [1.0, 0.0], "mode": "vector"}
    everything = run(birds, Query(**query))
    assert [hit.relevance for hit in everything] == pytest.approx([1.0, 0.8, 0.0])
    exactly = everything.hits[1].relevance
    assert ids(run(birds, Query(**query, min_score=exactly))) == ["cormorant", "heron"]
    assert ids(run(birds, Query(**query, min_score=0))) == ["cormorant", "heron", "swift"]
    assert ids(run(birds, Query(**query, min_score=1))) == ["cormorant"]


def test_a_threshold_that_empties_the_result_is_logged(birds, caplog):
    with caplog.at_level(logging.WARNING, logger="cormorant.search"):
        result = run(birds, Query(vector=[-1.0, 0.0], min_score=0.5))
    assert ids(result) == []
    assert result.complete
    assert result.degraded == (PARTIAL,)
    assert "min_score=0.5 (LangChain: score_threshold) left none of 3 candidates" in caplog.text
    caplog.clear()
    run(birds, Query(vector=[1.0, 0.0], min_score=0.9))
    assert not caplog.records


def test_text_relevance_is_the_part_of_what_was_asked(birds):
    hit = run(birds, Query(text="swift air")).hits[0]
    assert 0 < hit.relevance < 1
    assert hit.relevance == pytest.approx(
        hit.score / birds.text.ask(["swift", "air"]).bound, rel=1e-6
    )


# Diversity


def test_the_threshold_comes_before_mmr(birds):
    query = Query(vector=[1.0, 0.0], mmr_lambda=0.0, top_k=2)
    assert ids(run(birds, query)) == ["cormorant", "swift"]
    strict = Query(vector=[1.0, 0.0], mmr_lambda=0.0, top_k=2, min_score=0.5)
    assert ids(run(birds, strict)) == ["cormorant", "heron"]


def test_records_without_vectors_come_after_mmr_and_it_says_so(birds):
    result = run(birds, Query(text="fish", vector=[1.0, 0.0], mmr_lambda=0.5, top_k=4))
    assert ids(result)[-1] == "note"
    assert result.degraded[0] == PARTIAL
    assert "1 candidates have no vector" in result.degraded[1]


def test_mmr_chooses_among_the_best_fetch_k_of_the_fused_list():
    snapshot = MemorySnapshot(
        [
            record("best", "fish", [1.0, 0.0]),
            record("next", "fish and bread", [0.9, 0.1]),
            record("last", "stone", [0.95, 0.3]),
            record("odd", "fish", [-1.0, 0.0]),
        ]
    )
    query = Query(text="fish", vector=[1.0, 0.0], top_k=2, fetch_k=2, mmr_lambda=0.0)
    fused = ids(run(snapshot, Query(text="fish", vector=[1.0, 0.0], top_k=2, fetch_k=2)))
    candidates = run(snapshot, query).counters["candidates"]
    assert candidates > 2
    assert set(ids(run(snapshot, query))) == set(fused)
    wide = Query(text="fish", vector=[1.0, 0.0], top_k=2, fetch_k=4, mmr_lambda=0.0)
    assert ids(run(snapshot, wide)) == ["best", "odd"]


def test_text_search_is_diversified_if_it_brings_a_vector(birds):
    result = run(birds, Query(text="fish", vector=[1.0, 0.0], mode="text", mmr_lambda=0.5))
    assert set(ids(result)) == {"cormorant", "heron", "note"}
    with pytest.raises(QueryError, match="mmr_lambda compares candidates with the query's vector"):
        run(birds, Query(text="fish", mmr_lambda=0.5))
    texts = MemorySnapshot([record("a", "fish")])
    result = run(texts, Query(text="fish", vector=[1.0], mode="text", mmr_lambda=0.5))
    assert ids(result) == ["a"]
    assert "mmr_lambda had no effect" in result.degraded[0]


# Filters


def test_a_callable_sees_live_records_of_the_scope_alone():
    snapshot = MemorySnapshot(
        [
            record("a", "fish", team="x"),
            record("b", "fish", team="y"),
            record("c", "fish", team="x"),
        ],
        dead=[2],
        scope={"team": "x"},
    )
    seen = []
    mask = matching(snapshot, lambda one: seen.append(one.id) or True)
    assert seen == ["a"]
    assert mask.tolist() == [True, False, False]
    assert ids(run(snapshot, Query(text="fish", filter=lambda one: one.id != "a"))) == []


def test_a_callable_that_raises_names_the_record(birds):
    with pytest.raises(FilterError, match="raised KeyError on record 'cormorant'") as caught:
        run(birds, Query(text="fish", filter=lambda one: one.metadata["absent"]))
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_callable_that_raises_a_sentence_is_cited_without_its_stop(birds):
    def picky(one):
        raise ValueError("I take birds alone.")

    with pytest.raises(FilterError, match=r": I take birds alone\. It must accept every record"):
        run(birds, Query(text="fish", filter=picky))


@pytest.mark.parametrize("clause", [{"$text": "!!!"}, {"$not": {"$text": "?"}}])
def test_a_text_clause_without_a_term_is_refused(birds, clause):
    for ask in (matching, lambda *args: run(*args[:1], Query(text="fish", filter=args[1]))):
        with pytest.raises(FilterError, match=r"\$text '.+' holds no term that could be searched"):
            ask(birds, clause)


def test_a_callable_is_given_no_record_that_another_clause_keeps_out(birds):
    birds.scope = parse({"year": 2024})
    assert ids(run(birds, Query(text="cormorant swift", filter=lambda one: True))) == [
        "cormorant",
        "swift",
    ]
    assert set(birds.fetches) == {0, 2}


def test_a_filter_that_is_none_of_the_kinds_is_refused(birds):
    with pytest.raises(FilterError, match="got a list"):
        matching(birds, ["year"])


def test_nothing_admitted_is_an_empty_result(birds):
    result = run(birds, Query(text="fish", vector=[1.0, 0.0], filter={"year": 1900}))
    assert ids(result) == []
    assert result.complete
    assert "filter: 0 of 4 records pass" in result.plan[0]


# Explanations


def test_why_found(birds):
    told = explain(birds, Query(text="diving for fish", vector=[1.0, 0.1]), 0)
    assert told.found
    assert (told.rank, told.lost_at) == (1, None)
    steps = {step.stage: step for step in told.steps}
    assert steps["vector"].detail["rank"] == 1
    assert steps["text"].detail["lacks"] == []
    assert "Fused by z it is 1 of" in steps["fuse"].says


@pytest.mark.parametrize(
    ("slot", "query", "lost_at", "says"),
    [
        (1, {"text": "fish", "filter": {"year": {"$gte": 2024}}}, "filter", "2020"),
        (1, {"text": "fish", "filter": lambda r: r.id == "note"}, "filter", "rejects it"),
        (2, {"text": "fish"}, "text", "No term of the query occurs in its text: fish"),
        (3, {"vector": [1.0, 0.0]}, "vector", "no vector"),
        (2, {"vector": [1.0, 0.0], "top_k": 2}, "top_k", "not among the 2"),
        (1, {"vector": [1.0, 0.0], "min_score": 0.9}, "min_score", "0.8 is below 0.9"),
        (1, {"vector": [1.0, 0.0], "top_k": 2, "mmr_lambda": 0.0}, "mmr", "'cormorant' is most"),
        (
            2,
            {"vector": [1.0, 0.0], "top_k": 1, "fetch_k": 2, "mmr_lambda": 1.0},
            "vector",
            "best 2",
        ),
        (
            2,
            {"text": "fish", "vector": [1.0, 0.0], "top_k": 1, "fetch_k": 1},
            "fuse",
            "No leg fetched it",
        ),
        (1, {"text": "fish", "vector": [1.0, 0.0], "top_k": 1}, "top_k", "not among the 1"),
    ],
)
def test_why_not(birds, slot, query, lost_at, says):
    told = explain(birds, Query(**query), slot)
    assert not told.found
    assert told.lost_at == lost_at
    assert says in told.says
    after = [step.kept for step in told.steps]
    lost = [step.stage for step in told.steps].index(lost_at)
    assert not any(after[lost:])


def test_a_miss_still_has_its_numbers(birds):
    told = explain(birds, Query(vector=[1.0, 0.0], top_k=1, filter={"year": 2024}), 1)
    vector = next(step for step in told.steps if step.stage == "vector")
    assert vector.detail == {"rank": 2, "of": 3}
    assert vector.value == pytest.approx(0.8)


def test_what_the_query_has_and_the_record_lacks(birds):
    told = explain(birds, Query(text="fish and chips"), 3)
    text = next(step for step in told.steps if step.stage == "text")
    assert text.detail["lacks"] == ["chip"]
    assert "it lacks chip" in text.says


def test_statistics_come_from_the_sample_whatever_the_filter():
    rng = np.random.default_rng(0)
    records = [record(f"r{i}", "fish", rng.standard_normal(4), i=i) for i in range(40)]
    snapshot = MemorySnapshot(records, sample=range(0, 40, 4))
    asked = {"text": "fish", "vector": rng.standard_normal(4), "top_k": 40}
    free = {hit.id: hit.legs["vector"].standard for hit in run(snapshot, Query(**asked))}
    few = run(snapshot, Query(**asked, filter={"i": {"$lt": 5}}))
    assert len(few) == 5
    for hit in few:
        assert hit.legs["vector"].standard == free[hit.id]
    sampled = [run(snapshot, Query(**asked)).hits[0]]
    assert sampled[0].legs["text"].standard == 0.0


@pytest.mark.parametrize(
    ("asked", "fetch_k"),
    [
        ({"text": "a", "vector": [1.0]}, 50),
        ({"text": "a", "vector": [1.0], "top_k": 20}, 80),
        ({"text": "a", "vector": [1.0], "mmr_lambda": 0.5}, 50),
        ({"vector": [1.0], "mmr_lambda": 0.5}, 20),
        ({"vector": [1.0], "mmr_lambda": 0.5, "top_k": 30}, 30),
        ({"text": "a", "vector": [1.0], "mmr_lambda": 0.5, "fetch_k": 33}, 33),
    ],
)
def test_how_many_candidates_are_fetched(asked, fetch_k):
    assert settle(MemorySnapshot([]), Query(**asked)).fetch_k == fetch_k
