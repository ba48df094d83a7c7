"""Documents: kept beside the records in the same transactions, found by id alone."""

from __future__ import annotations

import sqlite3
import threading

import pytest

import cormorant
from cormorant import Query, Record
from cormorant.errors import CorruptionError, RecordError, ScopeError, StoreError
from cormorant.store import Family


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    with cormorant.open(":memory:" if request.param == "memory" else tmp_path / "kb") as opened:
        yield opened


def child(id, parent, text="a fish swims", **metadata):
    return {"id": id, "text": text, "metadata": {"doc_id": parent, **metadata}}


def texts(store, ids):
    return {document.id: document.text for document in store.documents(ids)}


def test_documents_come_with_records_and_are_found_by_id(store):
    done = store.add(
        [child("p#0", "p")],
        documents=[{"id": "p", "text": "A fish swims. A boat sails.", "metadata": {"n": [1]}}],
    )
    assert done.ids == ("p#0",)
    (found,) = store.documents(["p", "no", "p"])
    assert (found.id, found.text, found.metadata) == (
        "p",
        "A fish swims. A boat sails.",
        {"n": [1]},
    )
    assert store.document_ids() == ["p"]


def test_documents_are_not_searched_counted_listed_or_scored(store):
    store.add([child("p#0", "p")])
    alone = store.search(Query(text="fish"))
    store.add([], documents=[{"id": f"p{n}", "text": "fish boat"} for n in range(50)])
    again = store.search(Query(text="fish"))
    assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in alone]
    assert not store.search(Query(text="boat")).hits
    assert store.count() == 1
    assert [record.id for record in store.records()] == ["p#0"]
    assert store.get(["p1"]) == []


def test_documents_are_revised_as_they_are_now_and_nothing_is_lost(store):
    store.add([], documents=[{"id": "n", "text": "0"}, {"id": "old", "text": "x"}])

    def count(found):
        (each,) = [one for one in found if one.id == "n"]
        return [Record("n", str(int(each.text) + 1)), Record("new", "y")]

    threads = [
        threading.Thread(
            target=lambda: [store.revise_documents(["no", "n", "old"], count) for _ in range(5)]
        )
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert texts(store, ["n", "old", "new"]) == {"n": "20", "new": "y"}
    store.revise_documents(["n"], lambda found: [])
    assert store.document_ids() == ["new"]


def test_a_revision_that_fails_or_reaches_outside_its_scope_changes_nothing(store):
    acme, rival = store.scope(tenant="acme"), store.scope(tenant="rival")
    acme.add([], documents=[{"id": "a", "text": "acme's"}])
    seen = []
    rival.revise_documents(["a"], lambda found: seen.extend(found) or [])
    assert seen == []
    assert texts(acme, ["a"]) == {"a": "acme's"}
    with pytest.raises(ScopeError):
        rival.revise_documents(["a"], lambda found: [Record("a", "mine")])
    with pytest.raises(ZeroDivisionError):
        acme.revise_documents(["a"], lambda found: [Record("a", str(1 / 0))])
    with pytest.raises(RecordError):
        acme.revise_documents(["a"], lambda found: [Record("a", "x", [1.0])])
    assert texts(acme, ["a"]) == {"a": "acme's"}


def test_a_document_and_a_record_may_have_one_id(store):
    store.add([{"id": "a", "text": "record"}], documents=[{"id": "a", "text": "document"}])
    assert store.get(["a"])[0].text == "record"
    assert texts(store, ["a"]) == {"a": "document"}
    store.delete(["a"])
    assert texts(store, ["a"]) == {"a": "document"}


def test_a_document_is_replaced_whole(store):
    store.add([], documents=[{"id": "a", "text": "one", "metadata": {"x": 1}}])
    store.add([], documents=[{"id": "a", "text": "two"}])
    (found,) = store.documents(["a"])
    assert (found.text, found.metadata) == ("two", {})


def test_a_document_may_be_empty_and_larger_than_a_record(store):
    large = "x" * (5 * 1024 * 1024)
    store.add([], documents=[{"id": "empty", "text": ""}, {"id": "large", "text": large}])
    assert texts(store, ["empty", "large"]) == {"empty": "", "large": large}


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "comes twice"),
        ([{"id": "a", "text": "x", "vector": [1.0]}], "kept, not searched"),
        ([{"id": "", "text": "x"}], "empty id"),
        ([{"id": "a", "text": "\ud800"}], "lone surrogate"),
        ([{"id": "a", "text": "x", "metadata": {"y": {1}}}], "cannot be stored"),
        ({"id": "a", "text": "x"}, "single dict"),
    ],
)
def test_a_bad_document_stores_nothing(store, documents, says):
    with pytest.raises(RecordError, match=says):
        store.add([child("p#0", "p")], documents=documents)
    assert store.count() == 0
    assert store.document_ids() == []


def test_a_bad_record_stores_no_document(store):
    with pytest.raises(RecordError):
        store.add([{"id": "a"}], documents=[{"id": "p", "text": "x"}])
    assert store.document_ids() == []


def test_a_family_makes_way_for_what_comes(store):
    store.add(
        [child(f"p#{n}", "p", "fish") for n in range(5)], documents=[{"id": "p", "text": "1"}]
    )
    store.add([child("q#0", "q", "fish")], documents=[{"id": "q", "text": "1"}])
    store.add(
        [child("p#0", "p", "boat")],
        documents=[{"id": "p", "text": "2"}],
        family=Family(["p"], "doc_id"),
    )
    assert sorted(record.id for record in store.records()) == ["p#0", "q#0"]
    assert [hit.id for hit in store.search(Query(text="fish"))] == ["q#0"]
    assert texts(store, ["p", "q"]) == {"p": "2", "q": "1"}


def test_a_family_with_parts_is_the_numbered_ones_alone(store):
    ids = ["a", "a#0", "a#12", "a#1#0", "a#x", "a#1x", "ab#0", "a#٣"]
    store.add([child(f"of {id}", id) for id in ids], documents=[{"id": id} for id in ids])
    gone = store.delete(family=Family(["a"], "doc_id", parts=True))
    assert gone == 3
    assert store.document_ids() == sorted(["a#1#0", "a#x", "a#1x", "ab#0", "a#٣"])
    assert store.delete(family=Family(["ab"], "doc_id")) == 0
    assert store.delete(family=Family(["ab"], "doc_id", parts=True)) == 1


def test_delete_takes_a_family_and_more(store):
    store.add([child("1", "p"), child("2", "p"), child("3", "q")], documents=[{"id": "p"}])
    assert store.delete(["3", "1"], family=Family(["p"], "doc_id")) == 3
    assert store.count() == 0
    assert store.document_ids() == []


def test_a_family_without_a_field_is_documents_alone(store):
    store.add([child("1", "p")], documents=[{"id": "p"}, {"id": "q"}])
    assert store.delete(family=Family(["p", "no"], None)) == 0
    assert store.count() == 1
    assert store.document_ids() == ["q"]


@pytest.mark.parametrize("field", ["", "$in", 3])
def test_a_familys_field_is_a_name(field):
    with pytest.raises(RecordError, match="name of a metadata field"):
        Family(["p"], field)


def test_document_ids_begin_with_the_prefix(store):
    ids = ["a", "ab", "a%", "a\U0010ffff", "a\U0010ffffb", "b", "文", "文档", "\ud7ff", "\ue000"]
    store.add([], documents=[{"id": id} for id in ids])
    for prefix in ["", "a", "a\U0010ffff", "文", "\ud7ff", "c", "a%", "\U0010ffff"]:
        wanted = sorted(id for id in ids if id.startswith(prefix))
        assert store.document_ids(prefix) == wanted


def test_a_scope_holds_for_documents(store):
    acme, other = store.scope(tenant="acme"), store.scope(tenant="other")
    acme.add([child("1", "p")], documents=[{"id": "p", "text": "acme's"}])
    other.add([child("2", "q")], documents=[{"id": "q", "text": "the other's"}])
    (found,) = acme.documents(["p", "q"])
    assert (found.id, found.metadata) == ("p", {"tenant": "acme"})
    assert acme.document_ids() == ["p"]
    assert store.document_ids() == ["p", "q"]
    with pytest.raises(ScopeError, match="taken outside the scope"):
        acme.add([], documents=[{"id": "q", "text": "stolen"}])
    with pytest.raises(ScopeError, match="the scope says"):
        acme.add([], documents=[{"id": "r", "metadata": {"tenant": "other"}}])
    acme.delete(family=Family(["q"], "doc_id"))
    acme.add([], family=Family(["q"], "doc_id"))
    assert other.document_ids() == ["q"]
    assert other.count() == 1


def test_a_required_scope_is_required_of_documents(tmp_path):
    with cormorant.open(tmp_path / "kb", require_scope=["tenant"]) as store:
        for call in (
            lambda: store.documents(["p"]),
            store.document_ids,
            lambda: store.add([], documents=[{"id": "p"}]),
            lambda: store.delete(family=Family(["p"], "doc_id")),
        ):
            with pytest.raises(ScopeError, match="requires a scope on tenant"):
                call()


def test_documents_survive_closing_compaction_and_backup(tmp_path):
    with cormorant.open(tmp_path / "kb") as store:
        store.add([child("1", "p"), child("2", "q")], documents=[{"id": "p", "text": "secret"}])
        store.add([], documents=[{"id": "q", "text": "stays"}])
        store.delete(family=Family(["p"], "doc_id"))
        store.compact()
        store.backup(tmp_path / "copy")
        assert store.check().ok
    for folder in ("kb", "copy"):
        with cormorant.open(tmp_path / folder, read_only=True) as store:
            assert texts(store, ["p", "q"]) == {"q": "stays"}
            assert store.check().ok
            with pytest.raises(StoreError, match="read-only"):
                store.add([], documents=[{"id": "r"}])
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or b"secret" not in file.read_bytes(), file


def test_a_reader_process_sees_documents_as_they_are_now(tmp_path):
    with cormorant.open(tmp_path / "kb") as store, cormorant.open(tmp_path / "kb") as other:
        store.add([child("1", "p")], documents=[{"id": "p", "text": "one"}])
        assert texts(other, ["p"]) == {"p": "one"}
        store.add([], documents=[{"id": "p", "text": "two"}])
        assert texts(other, ["p"]) == {"p": "two"}
        assert other.count() == 1
        store.optimize()
        assert other.count() == 1


@pytest.mark.parametrize("column", ["id", "text", "metadata"])
def test_check_finds_a_damaged_document(tmp_path, column):
    with cormorant.open(tmp_path / "kb") as store:
        store.add([], documents=[{"id": "p", "text": "one"}, {"id": "q", "text": "two"}])
    connection = sqlite3.connect(tmp_path / "kb" / "cormorant.sqlite")
    connection.execute(f"UPDATE documents SET {column} = '{{}} ' WHERE number = 1")
    connection.commit()
    connection.close()
    with cormorant.open(tmp_path / "kb") as store:
        (problem,) = store.check().problems
        assert "does not match its checksum" in problem.what
        assert not problem.repairable
        assert texts(store, ["q"]) == {"q": "two"}
        with pytest.raises(CorruptionError, match="document"):
            store.documents(["p" if column != "id" else "{} "])
        assert not store.check(repair=True).ok


def test_a_failed_commit_keeps_the_family_that_was_there(store, monkeypatch):
    from cormorant.storage import writer

    store.add([child("1", "p")], documents=[{"id": "p", "text": "old"}])

    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr(writer.keeping, "put", fail)
    with pytest.raises(OSError, match="no"):
        store.add(
            [child("2", "p")],
            documents=[{"id": "p", "text": "new"}],
            family=Family(["p"], "doc_id"),
        )
    monkeypatch.undo()
    assert [record.id for record in store.records()] == ["1"]
    assert texts(store, ["p"]) == {"p": "old"}
    store.add([child("3", "p")], documents=[{"id": "p", "text": "new"}])
    assert store.count() == 2


def test_readers_in_other_threads_see_a_family_whole(store):
    versions = 40
    bad: list[object] = []
    done = threading.Event()

    def read():
        while not done.is_set():
            hits = store.search(Query(text="fish", top_k=20))
            bad.extend(hit for hit in hits if hit.metadata["version"] != hit.text.split()[1])
            found = {record.metadata["version"] for record in store.records()}
            if len(found) > 1:
                bad.append(found)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for version in range(versions):
            store.add(
                [child(str(n), "p", f"fish {version}", version=str(version)) for n in range(3)],
                documents=[{"id": "p", "text": str(version)}],
                family=Family(["p"], "doc_id"),
            )
    finally:
        done.set()
        thread.join()
    assert not bad
    assert texts(store, ["p"]) == {"p": str(versions - 1)}


def test_ids_that_are_gone_leave_in_the_transaction_that_adds(store):
    store.add([{"id": "a", "text": "a fish"}, {"id": "b", "text": "a boat"}])
    store.add([{"id": "c", "text": "a reed"}], gone=["a", "unknown"])
    assert sorted(record.id for record in store.records()) == ["b", "c"]
    store.add([{"id": "b", "text": "a new boat"}], gone=["b"])
    assert [record.text for record in store.get(["b"])] == ["a new boat"]
    store.add([], gone=["b", "c"])
    assert store.count() == 0


def test_what_is_gone_reaches_no_further_than_the_scope(store):
    store.scope(tenant="rival").add([{"id": "r", "text": "a fish"}])
    store.scope(tenant="acme").add([{"id": "a", "text": "a fish"}], gone=["r"])
    assert sorted(record.id for record in store.records()) == ["a", "r"]
