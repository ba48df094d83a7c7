"""What why_not says of records that are not stored, hidden, or missed by an approximate index."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import cormorant
from cormorant import Query
from cormorant.cli import main
from cormorant.errors import QueryError, ScopeError
from cormorant.search.legs import VectorLeg


@pytest.fixture
def store():
    with cormorant.open(":memory:") as made:
        made.add(
            [
                {"id": "a", "text": "a grey heron", "metadata": {"tenant": "acme"}},
                {"id": "r", "text": "a secret of the rival", "metadata": {"tenant": "rival"}},
            ]
        )
        yield made


def test_a_hit_is_said_to_be_one(store):
    why = store.why_not(Query(text="heron"), "a")
    assert why.found
    assert why.changes == ()
    assert why.explanation.rank == 1


@pytest.mark.parametrize("asked", [{}, {"id": "a", "text": "heron"}, {"text": " "}, {"text": 3}])
def test_it_is_asked_of_one_record(store, asked):
    with pytest.raises(QueryError, match=r"id of a record|must be a string"):
        store.why_not(Query(text="heron"), **asked)


@pytest.mark.parametrize("asked", [{"id": "r"}, {"text": "a secret of the rival"}])
def test_a_scope_hears_nothing_of_what_it_hides(store, asked):
    scoped = store.scope(tenant="acme")
    hidden = scoped.why_not(Query(text="secret"), **asked)
    assert hidden.cause == "not_stored"
    assert "rival'" not in hidden.says.replace(str(asked.get("text")), "")
    assert hidden.explanation is None
    unknown = scoped.why_not(Query(text="secret"), "nobody")
    assert unknown.says.replace("nobody", "r") == scoped.why_not(Query(text="secret"), "r").says


def test_the_owner_of_the_store_is_told_that_a_scope_hides_it(store):
    why = store.why_not(Query(text="secret"), "r", scope={"tenant": "acme"})
    assert why.cause == "scope"
    assert why.changes == ()
    with pytest.raises(ScopeError):
        store.scope(tenant="acme").why_not(Query(text="secret"), "r", scope={"tenant": None})


def test_a_scope_is_only_narrowed(store):
    why = store.scope(tenant="acme").why_not(Query(text="secret"), "r", scope={"tenant": "rival"})
    assert why.cause == "not_stored"


def test_a_text_is_recognised_by_most_of_its_terms(store):
    assert store.why_not(Query(text="heron"), text="the Grey HERON!").id == "a"
    missed = store.why_not(Query(text="heron"), text="a heron on a mast of a ship in a storm")
    assert missed.cause == "not_stored"
    assert "'a', which shares" in missed.says


def test_nothing_is_like_a_text_without_terms(store):
    assert store.why_not(Query(text="heron"), text="…").cause == "not_stored"
    with cormorant.open(":memory:") as empty:
        assert empty.why_not(Query(text="heron"), text="heron").cause == "not_stored"


def test_a_filter_of_another_type_is_proposed_in_the_stored_one(store):
    store.add([{"id": "n", "text": "heron", "metadata": {"year": "2024", "n": 3}}])
    for filter in ({"year": 2024}, {"n": "3"}, {"year": {"$in": [2024, 2025]}}):
        query = Query(text="heron", filter=filter)
        why = store.why_not(query, "n")
        assert why.cause == "filter"
        assert why.changes[0].query["filter"] is not None
        assert "n" in {hit.id for hit in store.search(why.changes[0].apply(query))}


def test_a_callable_filter_is_left_out(store):
    why = store.why_not(Query(text="heron", filter=lambda record: record.id != "a"), "a")
    assert why.cause == "filter"
    assert why.changes[0].query == {"filter": None}


def test_the_command_line_says_the_same(tmp_path, capsys):
    path = tmp_path / "kb"
    with cormorant.open(path) as made:
        made.add({"id": f"{n}", "text": "heron " * n} for n in range(1, 9))
    arguments = ["why-not", str(path), "heron", "--id", "2", "-k", "3", "--embedder", "none"]
    assert main([*arguments, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["cause"], told["found"]) == ("top_k", False)
    assert told["changes"][0]["query"] == {"top_k": 7}
    assert main(arguments) == 1
    assert "--top-k 7" in capsys.readouterr().out
    assert main(["why-not", str(path), "heron", "--id", "2", "-k", "7", "--embedder", "none"]) == 0


def test_what_an_approximate_index_misses_is_told(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 4)).astype(np.float32)
    with cormorant.open(":memory:", dim=4) as made:
        made.add({"id": f"{n}", "vector": v} for n, v in enumerate(vectors))
        whole = VectorLeg.fetch

        def forgetful(leg, k, mask):
            found = whole(leg, k + 1, mask)
            kept = found.slots != 7
            slots, scores = found.slots[kept][:k], found.scores[kept][:k]
            return replace(found, slots=slots, scores=scores, exact=False)

        monkeypatch.setattr(VectorLeg, "fetch", forgetful)
        for mode in ("vector", "hybrid"):
            query = Query(vector=vectors[7], text="heron", mode=mode, top_k=3)
            why = made.why_not(query, "7")
            assert why.cause == "approximate"
            assert "a full scan ranks it 1 of 50" in why.says
