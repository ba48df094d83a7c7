"""The record manager by itself, and beneath langchain-core's ``index()``."""

from __future__ import annotations

import time

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import aindex, index

import cormorant
from cormorant.errors import CorruptionError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.indexing import CormorantDocumentIndex, CormorantRecordManager


@pytest.fixture
def vs(tmp_path):
    with Cormorant(DeterministicFakeEmbedding(size=4), path=tmp_path / "kb") as made:
        yield made


@pytest.fixture
def manager(vs):
    return CormorantRecordManager(vs, "wiki")


def pages(*texts, source="a.md"):
    return [Document(text, metadata={"source": source}) for text in texts]


def texts_of(vs):
    return sorted(record.text for record in vs.store.records())


def run(documents, manager, vs, cleanup, **more):
    return index(
        documents,
        manager,
        vs,
        cleanup=cleanup,
        source_id_key="source",
        key_encoder="sha256",
        **more,
    )


def test_what_is_kept_is_listed_by_time_and_group(manager, monkeypatch):
    monkeypatch.setattr(manager, "get_time", lambda: 10.0)
    manager.update(["a", "b"], group_ids=["x", "y"])
    monkeypatch.setattr(manager, "get_time", lambda: 20.0)
    manager.update(["c"])
    assert manager.exists(["a", "z", "c"]) == [True, False, True]
    assert sorted(manager.list_keys()) == ["a", "b", "c"]
    assert sorted(manager.list_keys(before=20.0)) == ["a", "b"]
    assert manager.list_keys(after=10.0) == ["c"]
    assert manager.list_keys(group_ids=["x"]) == ["a"]
    assert sorted(manager.list_keys(group_ids=["x", None])) == ["a", "c"]
    assert manager.list_keys(group_ids=[]) == []
    assert len(manager.list_keys(limit=2)) == 2
    manager.delete_keys(["a", "unknown"])
    assert manager.exists(["a", "b"]) == [False, True]
    assert manager.list_keys(group_ids=["x"]) == []


def test_a_key_that_changes_its_group_is_found_by_the_new_one_alone(manager, vs):
    manager.update(["a"], group_ids=["x"])
    manager.update(["a"], group_ids=["y"])
    assert manager.list_keys(group_ids=["x"]) == []
    assert manager.list_keys(group_ids=["y"]) == ["a"]
    manager.delete_keys(["a"])
    left = vs.store.document_ids("$cormorant/index/")
    assert [id.rsplit("/", 1)[1] for id in left] == ["clock"]


def test_a_refreshed_key_keeps_its_group(manager):
    manager.update(["a"], group_ids=["x"])
    manager.update(["a"])
    assert manager.list_keys(group_ids=["x"]) == ["a"]


def test_the_clock_never_runs_behind_what_is_kept(vs, manager, monkeypatch):
    manager.update(["a"])
    monkeypatch.setattr(time, "time", lambda: 5.0)
    later = CormorantRecordManager(vs, "wiki")
    now = later.get_time()
    assert later.list_keys(before=now) == ["a"]
    later.update(["b"], time_at_least=now)
    assert later.list_keys(before=now) == ["a"]


def test_wrong_calls_are_refused_and_change_nothing(manager, vs):
    with pytest.raises(UsageError, match="one group id per key; got 1 group ids and 2 keys"):
        manager.update(["a", "b"], group_ids=["x"])
    with pytest.raises(UsageError, match="must not be in the future"):
        manager.update(["a"], time_at_least=time.time() + 1000)
    with pytest.raises(UsageError, match="keys takes a list"):
        manager.update("a")
    with pytest.raises(UsageError, match="a int in it"):
        manager.exists([1])
    with pytest.raises(UsageError, match="limit"):
        manager.list_keys(limit=0)
    with pytest.raises(UsageError, match="takes an open"):
        CormorantRecordManager("kb", "wiki")
    with pytest.raises(UsageError, match="namespace"):
        CormorantRecordManager(vs, None)
    assert manager.list_keys() == []


def test_namespaces_and_scopes_do_not_see_each_other(vs, manager):
    other = CormorantRecordManager(vs, "other")
    inside = CormorantRecordManager(vs.scope(tenant="acme"), "wiki")
    manager.update(["a"])
    inside.update(["b"], group_ids=["x"])
    assert (manager.list_keys(), other.list_keys(), inside.list_keys()) == (["a"], [], ["b"])
    assert inside.list_keys(group_ids=["x"]) == ["b"]
    with pytest.raises(ScopeError, match="equalities"):
        CormorantRecordManager(vs.scope(year={"$gt": 2020}), "wiki").list_keys()


def test_no_search_and_no_listing_sees_what_is_kept_and_a_backup_has_it(vs, manager, tmp_path):
    run(pages("a fish"), manager, vs, "full")
    assert vs.store.document_ids() == []
    assert vs.store.count() == 1
    vs.store.backup(tmp_path / "copy")
    with cormorant.open(tmp_path / "copy") as copied:
        assert CormorantRecordManager(copied, "wiki").list_keys() == manager.list_keys()


def test_a_damaged_entry_is_named(vs, manager):
    manager.update(["a"])
    (id,) = vs.store.document_ids("$cormorant/index/")[1:]
    vs.store.revise_documents([id], lambda found: [cormorant.Record(found[0].id, "[1]")])
    with pytest.raises(CorruptionError, match="cannot be read"):
        manager.list_keys()


async def test_the_async_twins_do_the_same(manager):
    await manager.acreate_schema()
    await manager.aupdate(["a"], group_ids=["x"])
    assert await manager.aexists(["a", "b"]) == [True, False]
    assert await manager.alist_keys(group_ids=["x"], before=await manager.aget_time()) == ["a"]
    await manager.adelete_keys(["a"])
    assert await manager.alist_keys() == []


@pytest.mark.parametrize(
    ("cleanup", "left"),
    [
        (None, ["b1", "new", "one", "two"]),
        ("incremental", ["b1", "new", "two"]),
        ("scoped_full", ["b1", "new", "two"]),
        ("full", ["new", "two"]),
    ],
)
async def test_every_way_to_clean_up(vs, manager, cleanup, left):
    run([*pages("one", "two"), *pages("b1", source="b.md")], manager, vs, cleanup)
    assert run(pages("two", "new"), manager, vs, cleanup)["num_skipped"] == 1
    assert texts_of(vs) == left
    again = await aindex(
        pages("two", "new"),
        manager,
        vs,
        cleanup=cleanup,
        source_id_key="source",
        key_encoder="sha256",
    )
    assert (again["num_added"], again["num_deleted"]) == (0, 0)
    assert texts_of(vs) == left


def test_index_takes_the_document_index_too(vs, manager):
    over = CormorantDocumentIndex(vectorstore=vs, search_type="text", k=1)
    run(pages("a fish", "a boat"), manager, over, "full")
    run(pages("a fish"), manager, over, "full")
    assert texts_of(vs) == ["a fish"]
    assert [doc.page_content for doc in over.invoke("fish")] == ["a fish"]
    assert [[doc.page_content for doc in part] for part in over.stream("fish")] == [["a fish"]]


async def test_the_document_index_stays_in_its_scope(vs):
    inside = CormorantDocumentIndex(vectorstore=vs.scope(tenant="acme"))
    other = CormorantDocumentIndex(vectorstore=vs.scope(tenant="other"))
    inside.upsert([Document("a fish", id="f")])
    assert other.delete(["f"])["num_deleted"] == 0
    assert (await other.adelete(["f"]))["num_deleted"] == 0
    assert other.get(["f"]) == []
    assert inside.get(["f"])[0].metadata == {"tenant": "acme"}
    with pytest.raises(UsageError):
        inside.get(["f"], where="there")
