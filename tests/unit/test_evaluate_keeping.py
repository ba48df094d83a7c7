"""Golden sets inside the store: durable, each scope's own, invisible to everything else."""

from __future__ import annotations

import json
from datetime import date

import pytest

import cormorant
from cormorant.errors import CorruptionError, NotFound, ScopeError
from cormorant.evaluate import Golden, forget_golden, keep_golden, kept_golden
from cormorant.store import OWN_DOCUMENTS

ONE = Golden(
    {"1": "a fish?", "2": "什么是鱼？", "3": "not judged"},
    {"1": {"a": 1, "b": 0.5}, "2": {"a": 2}},
)
OTHER = Golden({"1": "a bird?"}, {"1": {"b": 1}})


@pytest.fixture
def store(tmp_path):
    with cormorant.open(tmp_path / "kb") as opened:
        opened.add([{"id": "a", "text": "a fish"}, {"id": "b", "text": "a bird"}])
        yield opened


def test_it_is_there_after_reopening_compaction_and_in_a_backup(store, tmp_path):
    keep_golden(store, ONE)
    store.delete(["b"])
    store.compact()
    store.backup(tmp_path / "copy")
    store.close()
    for folder in ("kb", "copy"):
        with cormorant.open(tmp_path / folder, read_only=True) as again:
            assert kept_golden(again) == ONE
            assert again.check().ok


def test_whole_grades_stay_whole(store):
    keep_golden(store, ONE)
    assert [type(grade) for grade in kept_golden(store).qrels["1"].values()] == [int, float]


def test_a_new_one_takes_the_place_of_the_old(store):
    keep_golden(store, ONE)
    keep_golden(store, OTHER)
    assert kept_golden(store) == OTHER
    forget_golden(store)
    forget_golden(store)
    with pytest.raises(NotFound, match="--keep"):
        kept_golden(store)


def test_nothing_else_sees_it(store):
    store.add([], documents=[{"id": "user's", "text": "x"}])
    before = store.stats().records, store.count(), [r.id for r in store.records()]
    keep_golden(store, ONE)
    assert (store.stats().records, store.count(), [r.id for r in store.records()]) == before
    assert store.document_ids() == ["user's"]
    assert store.document_ids("u") == ["user's"]
    assert len(store.document_ids(OWN_DOCUMENTS)) == 1
    assert [hit.id for hit in store.search(cormorant.Query(text="fish judged"))] == ["a"]
    # What empties a document store by its own listing leaves it alone.
    store.delete(family=cormorant.store.Family(store.document_ids(), None))
    assert kept_golden(store) == ONE


def test_each_scope_has_its_own(store):
    acme, other = store.scope(tenant="acme"), store.scope(tenant="other", day=date(2024, 5, 1))
    keep_golden(acme, ONE)
    keep_golden(other, OTHER)
    for view in (store, acme.scope(team="blue"), store.scope(tenant="third")):
        with pytest.raises(NotFound):
            kept_golden(view)
    keep_golden(store, OTHER)
    assert kept_golden(acme) == ONE
    assert kept_golden(store.scope(tenant="acme")) == ONE
    assert kept_golden(other) == OTHER
    assert acme.document_ids() == []
    forget_golden(acme)
    assert kept_golden(other) == OTHER == kept_golden(store)


def test_the_order_of_predicates_does_not_matter(store):
    keep_golden(store.scope(a=1, b=2), ONE)
    assert kept_golden(store.scope(b=2).scope(a=1)) == ONE


def test_a_scope_that_is_no_equality_has_none(store):
    view = store.scope(tenant={"$in": ["acme", "other"]})
    for call in (kept_golden, forget_golden, lambda v: keep_golden(v, ONE)):
        with pytest.raises(ScopeError, match="equalities"):
            call(view)


def test_a_store_that_requires_a_scope_keeps_it_in_one(tmp_path):
    with cormorant.open(tmp_path / "kb", require_scope=["tenant"]) as store:
        with pytest.raises(ScopeError, match="tenant"):
            keep_golden(store, ONE)
        keep_golden(store.scope(tenant="acme"), ONE)
        assert kept_golden(store.scope(tenant="acme")) == ONE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"version": 2, "queries": {}, "qrels": {}}),
        json.dumps({"version": 1, "queries": {}, "qrels": {"1": {"a": 1}}}),
        json.dumps({"version": 1, "queries": {"1": "a"}, "qrels": {"1": "a"}}),
    ],
)
def test_what_is_no_golden_set_is_named(store, text):
    keep_golden(store, ONE)
    (id,) = store.document_ids(OWN_DOCUMENTS)
    store.add([], documents=[{"id": id, "text": text}])
    with pytest.raises(CorruptionError, match="golden set"):
        kept_golden(store)


def test_it_is_kept_as_the_format_page_says(store):
    keep_golden(store, OTHER)
    (id,) = store.document_ids(OWN_DOCUMENTS)
    assert id == "$cormorant/golden/44136fa355b3678a"  # of {}, the scope's equalities
    (document,) = store.documents([id])
    assert json.loads(document.text) == {
        "version": 1,
        "queries": {"1": "a bird?"},
        "qrels": {"1": {"b": 1}},
    }
