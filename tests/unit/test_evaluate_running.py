"""Any system becomes a run: what is accepted, what fails, what is recorded."""

from __future__ import annotations

import json
import math
import threading

import numpy as np
import pytest

import cormorant
from cormorant.errors import QueryError, UsageError
from cormorant.evaluate import Reply, run_system
from cormorant.model import Query, Record
from cormorant.store import Fingerprint, RankingConfig

QUERIES = {"1": "fish", "2": "bird"}
VECTORS = {"fish": [1.0, 0.0], "bird": [0.0, 1.0]}
RECORDS = [
    {"id": "a", "text": "a fish", "vector": [1, 0], "metadata": {"doc": "A", "t": 1}},
    {"id": "b", "text": "a bird", "vector": [0, 1], "metadata": {"doc": "B", "t": 2}},
    {"id": "c", "text": "fish and bird", "vector": [1, 1], "metadata": {"doc": "A", "t": 1}},
]


@pytest.fixture
def store():
    with cormorant.open(":memory:", dim=2) as opened:
        opened.add(RECORDS)
        yield opened


# What a system may return


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (["x", "y"], (("x", 1.0), ("y", 0.5))),
        ((i for i in ["x", "y"]), (("x", 1.0), ("y", 0.5))),
        ([("x", 3), ("y", 3.0)], (("x", 3.0), ("y", 3.0))),
        ({"y": 1.0, "x": 2.0}, (("x", 2.0), ("y", 1.0))),
        ([("x", 0.1), ("y", 0.7)], (("x", 1.0), ("y", 0.5))),  # an order of its own, as MMR's
        ([("x", math.nan), ("y", 0.7)], (("x", 1.0), ("y", 0.5))),
        ([("x", None), ("y", 0.7)], (("x", 1.0), ("y", 0.5))),
        ([Record("x"), Record("y")], (("x", 1.0), ("y", 0.5))),
        (Reply(["x"], tokens=3), (("x", 1.0),)),
        ([], ()),
    ],
)
def test_what_a_system_may_return(returned, expected):
    assert run_system(lambda _: returned, {"1": "a"}).rankings == {"1": expected}


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, "NoneType"),
        ("xy", "str"),
        ({"x", "y"}, "set"),  # has no order
        ([1, 2], "must be a text"),
        ([""], "must be a text"),
        ([Record(None)], "must be a text"),
        (["x", "x"], "returned twice"),
    ],
)
def test_what_no_system_may_return(returned, says):
    with pytest.raises(UsageError, match=says) as caught:
        run_system(lambda _: returned, {"7": "a question"})
    assert any("'7'" in note for note in caught.value.__notes__)


def test_an_asynchronous_system_is_told_of():
    async def ask(text):
        return [text]

    with pytest.raises(UsageError, match="asynchronous"):
        run_system(ask, QUERIES)


def test_only_k_hits_count():
    assert run_system(lambda _: list("abcdef"), {"1": "x"}, k=3).ids("1") == ("a", "b", "c")


# A store


def test_a_store_is_asked_as_configured(store):
    run = run_system(store, QUERIES, k=2, config={"mode": "vector"}, embed=VECTORS.get)
    hits = store.search(Query(vector=[1, 0], mode="vector", top_k=2)).hits
    assert run.rankings["1"] == tuple((hit.id, hit.score) for hit in hits)
    assert run.name == "store"
    assert run.config["query"] == {"mode": "vector"}
    assert run.config["k"] == 2


def test_without_an_embedder_the_text_leg_answers_and_the_run_says_so(store):
    run = run_system(store, QUERIES)
    assert run.config["query"] == {"mode": "text"}
    assert run.ids("2") == ("b", "c")
    assert "embed was not given" in run.degraded["2"][0]
    assert not run_system(store, QUERIES, config={"mode": "text"}).degraded
    with pytest.raises(UsageError, match="embed"):
        run_system(store, QUERIES, config={"mode": "hybrid"})


def test_an_object_with_embed_query_embeds(store):
    class Embedding:
        def embed_query(self, text):
            return VECTORS[text]

    by_object = run_system(store, QUERIES, embed=Embedding())
    assert by_object.rankings == run_system(store, QUERIES, embed=VECTORS.get).rankings
    assert set(by_object.ids("1")) == {"a", "b", "c"}, "hybrid: both legs answered"


def test_a_scoped_view_is_a_system_too(store):
    run = run_system(store.scope(t=1), QUERIES)
    assert run.ids("2") == ("c",)
    assert run.config_hash != run_system(store, QUERIES).config_hash


def test_what_changes_a_ranking_changes_the_hash(store):
    def hashed(**arguments):
        return run_system(store, QUERIES, **arguments).config_hash

    assert hashed() == hashed()
    different = [
        hashed(),
        hashed(k=3),
        hashed(config={"filter": {"t": 1}}),
        hashed(embed=VECTORS.get),
        hashed(embed=VECTORS.get, config={"fusion": "rrf"}),
        hashed(embed=VECTORS.get, config={"weights": {"vector": 0.7, "text": 0.3}}),
    ]
    store.set_ranking(RankingConfig(weights={"vector": 0.9, "text": 0.1}))
    different.append(hashed(embed=VECTORS.get))
    assert len(set(different)) == len(different)
    store.set_ranking(RankingConfig(weights={"vector": 0.9, "text": 0.1}, evidence={"by": "me"}))
    assert hashed(embed=VECTORS.get) == different[-1], "why it ranks so does not change how"


def test_fingerprints_are_not_written_into_runs(store):
    probes = Fingerprint("e5", 2, np.tile(np.float32([1, 0]), (8, 1)))
    store.remember_fingerprint(probes)
    store.learn_trust()
    run = run_system(store, QUERIES, embed=VECTORS.get)
    assert set(run.config["store"]["trust"]) >= {"vector", "text"}
    assert "fingerprint" not in json.dumps(run.config)


def test_a_filter_that_is_a_function_is_kept_by_name(store):
    def only_first(record):
        return record.metadata["t"] == 1

    run = run_system(store, QUERIES, config={"filter": only_first})
    assert run.config["query"]["filter"].endswith("only_first")


def test_a_wrong_setting_is_refused_before_anything_is_asked(store):
    with pytest.raises(UsageError, match=r"'top_k'.*said by k"):
        run_system(store, QUERIES, config={"top_k": 3})
    with pytest.raises(QueryError):
        run_system(store, QUERIES, config={"fusion": "sum"})


def test_what_was_degraded_is_kept(store):
    def ask(_):
        return Reply(store.search(Query(text="fish")), degraded=("half of it",))

    assert run_system(ask, {"1": "x"}).degraded == {"1": ("half of it",)}


# By document


def test_hits_of_one_document_count_once(store):
    run = run_system(store, QUERIES, by="doc")
    assert run.ids("1") == ("A",)
    assert run.ids("2") == ("B", "A")
    assert run_system(store, QUERIES, by=lambda hit: hit.metadata["doc"]).rankings == run.rankings
    with pytest.raises(UsageError, match="returned twice"):
        run_system(store, QUERIES, by="doc", duplicates="refuse")
    with pytest.raises(UsageError, match="'nothing'"):
        run_system(store, QUERIES, by="nothing")
    with pytest.raises(UsageError, match="dict of scores"):
        run_system(lambda _: {"a": 1}, QUERIES, by="doc")


# Failing


def failing(text):
    if text == "fish":
        raise RuntimeError("the model is away")
    return ["b"]


def test_a_failing_query_ends_the_run_with_its_own_error():
    with pytest.raises(RuntimeError, match="away") as caught:
        run_system(failing, QUERIES)
    assert any("'1'" in note and "fish" in note for note in caught.value.__notes__)


def test_a_failing_query_is_recorded_and_is_no_empty_answer():
    run = run_system(failing, QUERIES, on_error="record")
    assert run.failed == {"1": "RuntimeError: the model is away"}
    assert set(run.rankings) == {"2"}
    assert set(run.costs) == {"2"}


# Cost and threads


def test_cost_stands_beside_quality():
    run = run_system(lambda _: Reply(["a"], tokens=12, usd=0.5), {"1": "x"})
    assert (run.costs["1"].tokens, run.costs["1"].usd) == (12, 0.5)
    assert run.costs["1"].seconds > 0


def test_threads_change_nothing_but_the_time():
    barrier = threading.Barrier(3, timeout=30)

    def ask(text):
        barrier.wait()  # passes only if three ask at once
        return [f"{text}-{i}" for i in range(3)]

    queries = {str(i): f"q{i}" for i in range(9)}
    seen = []
    run = run_system(ask, queries, workers=3, on_answer=seen.append)
    assert list(run.rankings) == list(queries)
    assert run.ids("4") == ("q4-0", "q4-1", "q4-2")
    assert sorted(seen) == sorted(queries)


def test_threads_raise_the_first_error_by_query():
    def ask(text):
        raise ValueError(text)

    with pytest.raises(ValueError, match="fish"):
        run_system(ask, QUERIES, workers=2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"queries": {}}, "not empty"),
        ({"queries": ["a"]}, "dict"),
        ({"queries": {1: "a"}}, "strings"),
        ({"queries": {"1": None}}, "strings"),
        ({"k": 0}, "k must be"),
        ({"workers": 0}, "workers must be"),
        ({"on_error": "ignore"}, "'raise' or 'record'"),
        ({"duplicates": "last"}, "'refuse' or 'first'"),
        ({"embed": len}, "embeds its queries itself"),
        ({"system": "bm25"}, "got str"),
    ],
)
def test_arguments_that_do_not_fit(arguments, says):
    with pytest.raises(UsageError, match=says):
        run_system(**({"system": lambda _: [], "queries": QUERIES} | arguments))
