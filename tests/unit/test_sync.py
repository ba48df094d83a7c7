"""Sync: what it embeds, keeps, deletes and refuses."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

import cormorant
from cormorant import Query, defaults
from cormorant.errors import (
    ConfigError,
    EmbeddingError,
    EmbeddingMismatch,
    NotFound,
    ScopeError,
    StoreLocked,
    UsageError,
)
from cormorant.ingest import PriceTable, async_sync, sync
from cormorant.ingest.turn import turn

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings, Paragraphs, Tree, contents


@pytest.fixture
def tree():
    tree = Tree()
    tree.write("a", "a heron\n\na tide\n\nshared")
    tree.write("b", "a boat\n\nshared")
    return tree


@pytest.fixture
def store(tmp_path):
    with cormorant.open(tmp_path / "kb") as opened:
        yield opened


@pytest.fixture
def embedder():
    return CountingEmbeddings()


def go(tree, store, embedder, **how):
    return sync(tree.sources(), store, embedder, **{"chunker": Paragraphs(), "name": "t", **how})


def by_text(store):
    return {record.text: record.metadata for record in store.records()}


def test_what_did_not_change_is_not_even_read(tree, store, embedder):
    first = go(tree, store, embedder)
    assert (first.added, first.embedded, first.chunks_added) == (2, 4, 4)
    tree.reads.clear()
    again = go(tree, store, embedder)
    assert (again.skipped, again.embedded) == (2, 0)
    assert not tree.reads
    assert embedder.embedded == 4


def test_a_file_changed_while_it_was_read_is_read_again(tree, store, embedder):
    tree.times["a"] = time.time()  # within what file systems' clocks tell apart
    go(tree, store, embedder)
    tree.files["a"] = "a heron\n\na flood\n\nshared"[: len(tree.files["a"])]
    tree.files["a"] = tree.files["a"].ljust(len("a heron\n\na tide\n\nshared"))
    go(tree, store, embedder)
    assert "a flood" in by_text(store)


def test_one_changed_chunk_is_embedded_alone(tree, store, embedder):
    go(tree, store, embedder)
    tree.write("a", "a heron\n\na flood\n\nshared")
    report = go(tree, store, embedder)
    assert (report.updated, report.skipped, report.embedded) == (1, 1, 1)
    assert (report.chunks_added, report.chunks_deleted) == (1, 1)
    assert sorted(by_text(store)) == ["a boat", "a flood", "a heron", "shared"]


def test_metadata_alone_do_not_embed(tree, store, embedder):
    go(tree, store, embedder)
    tree.touch("a")
    report = go(tree, store, embedder)
    assert (report.updated, report.embedded, report.chunks_updated) == (1, 0, 3)
    assert by_text(store)["a tide"]["modified"] == tree.times["a"]
    assert store.get([next(iter(contents(store)))], with_vectors=True)[0].vector is not None


def test_a_touched_file_of_the_same_content_is_skipped(tree, store, embedder):
    tree.with_times = False
    go(tree, store, embedder)
    tree.touch("a")
    assert go(tree, store, embedder).skipped == 2
    tree.reads.clear()
    go(tree, store, embedder)
    assert not tree.reads  # its new time is known now


def test_a_shared_chunk_lives_until_its_last_source_is_gone(tree, store, embedder):
    go(tree, store, embedder)
    assert by_text(store)["shared"]["source"] == "a"
    assert by_text(store)["shared"]["sources"] == ["a", "b"]
    tree.remove("a")
    assert go(tree, store, embedder).deleted == 1
    assert by_text(store)["shared"]["source"] == "b"
    assert "sources" not in by_text(store)["shared"]
    tree.write("b", "a boat")
    go(tree, store, embedder)
    assert "shared" not in by_text(store)
    assert embedder.embedded == 4


def test_a_chunk_of_very_many_sources_names_some_of_them(store, embedder, monkeypatch):
    monkeypatch.setattr(defaults, "SYNC_SOURCES_LISTED", 3)
    tree = Tree()
    for n in range(8):
        tree.write(f"{n}", f"the licence\n\nnumber {n}")
    assert go(tree, store, embedder).embedded == 9
    assert by_text(store)["the licence"]["sources"] == ["0", "1", "2"]
    for n in range(7):
        tree.remove(f"{n}")
    go(tree, store, embedder)
    assert by_text(store)["the licence"]["source"] == "7"
    assert "sources" not in by_text(store)["the licence"]


def test_a_renamed_source_is_a_move(tree, store, embedder):
    go(tree, store, embedder)
    tree.rename("a", "z/a")
    report = go(tree, store, embedder)
    assert (report.moved, report.added, report.deleted, report.embedded) == (1, 0, 0, 0)
    assert by_text(store)["a heron"]["source"] == "z/a"


def test_another_way_to_cut_cuts_again(tree, store, embedder):
    go(tree, store, embedder)
    report = go(tree, store, embedder, chunker=Paragraphs(limit=1))
    assert (report.updated, report.embedded) == (2, 0)


def test_an_emptied_source_takes_its_chunks_along(tree, store, embedder):
    go(tree, store, embedder)
    tree.write("a", "")
    assert go(tree, store, embedder).updated == 1
    assert sorted(by_text(store)) == ["a boat", "shared"]


def test_an_empty_folder_deletes_nothing_unless_told_to(tree, store, embedder):
    go(tree, store, embedder)
    tree.files.clear()
    with pytest.raises(UsageError, match=r"2 sources.*allow_empty=True \(--allow-empty\)"):
        go(tree, store, embedder)
    assert store.count() == 4
    asked = []
    with pytest.raises(UsageError):
        go(tree, store, embedder, confirm=lambda n: bool(asked.append(n)))
    assert asked == [2]
    assert store.count() == 4
    assert go(tree, store, embedder, confirm=lambda n: n == 2).deleted == 2
    assert store.count() == 0
    assert store.document_ids("$cormorant/") == []


def test_an_empty_folder_may_be_synced_into_a_store_that_has_nothing_of_it(store, embedder):
    assert go(Tree(), store, embedder).added == 0


@pytest.mark.parametrize("piece", [1, 1024])
def test_a_source_that_breaks_keeps_what_there_is(tree, store, embedder, monkeypatch, piece):
    monkeypatch.setattr(defaults, "SYNC_CHUNKS", piece)
    go(tree, store, embedder)
    before = contents(store)
    tree.broken.add("a")
    tree.touch("a")
    report = go(tree, store, embedder)
    assert [(f.source, f.error) for f in report.failed] == [("a", "a is broken")]
    assert not report.ok
    assert contents(store) == before
    tree.broken.clear()
    assert go(tree, store, embedder).ok


def test_text_no_encoding_can_store_fails_its_source_alone(tree, store, embedder):
    tree.write("c", "half a \ud83d character")
    report = go(tree, store, embedder)
    assert [f.source for f in report.failed] == ["c"]
    assert "lone surrogate" in report.failed[0].error
    assert report.added == 2


def test_a_chunk_too_large_for_a_record_fails_its_source_alone(tree, store, embedder, monkeypatch):
    monkeypatch.setattr(defaults, "MAX_TEXT_BYTES", 10)
    tree.write("c", "a chunk of more than ten bytes")
    report = go(tree, store, embedder)
    assert [f.source for f in report.failed] == ["c"]
    assert "cuts smaller" in report.failed[0].error


def test_an_embedder_that_fails_loses_nothing_that_was_committed(tree, store, monkeypatch):
    monkeypatch.setattr(defaults, "SYNC_CHUNKS", 1)

    class Failing(CountingEmbeddings):
        def embed_documents(self, texts):
            if "a boat" in texts and not self.counts["allowed"]:
                raise RuntimeError("no")
            return super().embed_documents(texts)

    failing = Failing()
    with pytest.raises(EmbeddingError, match="no"):
        go(tree, store, failing)
    assert sorted(by_text(store)) == ["a heron", "a tide", "shared"]
    failing.counts["allowed"] = 1
    go(tree, store, failing)
    assert sorted(by_text(store)) == ["a boat", "a heron", "a tide", "shared"]
    assert failing.counts["a heron"] == failing.counts["shared"] == 1


def test_another_embedder_is_refused(tree, store, embedder):
    go(tree, store, embedder)

    class Other(CountingEmbeddings):
        model_name = "other"

        def embed_documents(self, texts):
            return [vector[::-1] for vector in super().embed_documents(texts)]

    tree.write("c", "new")
    with pytest.raises(EmbeddingMismatch):
        go(tree, store, Other())


def test_a_store_of_text_alone_is_embedded_once_there_is_an_embedder(tree, store, embedder):
    report = go(tree, store, None)
    assert (report.embedded, report.usd) == (0, 0.0)
    assert store.search(Query(text="heron")).hits[0].text == "a heron"
    report = go(tree, store, embedder)
    assert (report.updated, report.embedded, report.chunks_updated) == (2, 4, 4)
    assert all(vector is not None for _, _, vector in contents(store).values())


def test_verify_repairs_what_was_done_behind_our_back(tree, store, embedder):
    go(tree, store, embedder)
    whole = contents(store)
    victim, other, *_ = whole
    store.delete([victim])
    store.add([{"id": other, "text": whole[other][0], "metadata": {"source": "lies"}}])
    assert go(tree, store, embedder).skipped == 2
    report = go(tree, store, embedder, verify=True)
    assert report.embedded == 2  # the one that was gone, and the one without a vector
    assert contents(store) == whole


def test_collections_do_not_touch_each_other(tree, store, embedder):
    go(tree, store, embedder)
    other = Tree()
    other.write("a", "an eddy\n\nshared")
    report = go(other, store, embedder, name="u")
    assert (report.added, report.embedded) == (1, 1)
    assert "other collections" in report.notes[0]
    assert "t" in report.notes[0]
    other.files.clear()
    go(other, store, embedder, name="u", allow_empty=True)
    assert sorted(by_text(store)) == ["a boat", "a heron", "a tide", "shared"]


def test_what_others_added_stays(tree, store, embedder):
    store.add([{"id": "mine", "text": "by hand"}])
    go(tree, store, embedder)
    tree.files.clear()
    go(tree, store, embedder, allow_empty=True)
    assert [record.id for record in store.records()] == ["mine"]


def test_a_scope_syncs_its_own_alone(tree, store, embedder):
    acme, rival = store.scope(tenant="acme"), store.scope(tenant="rival")
    go(tree, acme, embedder)
    go(tree, rival, embedder)
    assert acme.count() == rival.count() == 4
    assert {record.metadata["tenant"] for record in acme.records()} == {"acme"}
    other = Tree()
    other.write("x", "nothing else")
    report = go(other, acme, embedder)
    assert (report.added, report.deleted) == (1, 2)
    assert acme.count() == 1
    assert rival.count() == 4
    assert go(tree, rival, embedder).skipped == 2


def test_a_scope_that_is_no_equality_is_refused(tree, store, embedder):
    with pytest.raises(ScopeError, match="equalities"):
        go(tree, store.scope(tenant={"$in": ["a", "b"]}), embedder)


def test_metadata_that_contradict_the_scope_fail_their_source(tree, store, embedder):
    report = go(tree, store.scope(source="a"), embedder)
    assert [failed.source for failed in report.failed] == ["b"]
    assert report.added == 1


def test_two_syncs_of_a_store_take_turns(tree, store, embedder):
    with turn(store.path, 1.0), pytest.raises(StoreLocked, match="Another sync"):
        go(tree, store, embedder, lock_timeout_s=0.1)
    assert go(tree, store, embedder).added == 2


def test_two_syncs_of_a_store_in_memory_take_turns(tree, embedder):
    with (
        cormorant.open(":memory:") as store,
        turn(None, 1.0),
        pytest.raises(StoreLocked, match="memory"),
    ):
        go(tree, store, embedder, lock_timeout_s=0.1)


def test_a_dry_run_changes_nothing(tree, store, embedder):
    report = go(tree, store, embedder, dry_run=True)
    assert (report.added, report.embedded, report.dry_run) == (2, 4, True)
    assert report.chunks_added is None
    assert store.count() == 0
    assert store.document_ids("$cormorant/") == []
    assert not embedder.calls


def test_the_bill_is_by_the_price_table(tree, store, embedder):
    report = go(tree, store, embedder, price_as="openai:text-embedding-3-large", dry_run=True)
    price = PriceTable.load().find("text-embedding-3-large")
    assert report.usd == price.build_usd(report.tokens) > 0
    assert go(tree, store, embedder).usd is None  # what has no price is not for free


async def test_awaited_it_does_the_same(tree, store, embedder):
    report = await async_sync(tree.sources(), store, embedder, chunker=Paragraphs(), name="t")
    assert (report.added, report.embedded) == (2, 4)
    report = await async_sync(tree.sources(), store, embedder, chunker=Paragraphs(), name="t")
    assert report.skipped == 2
    with turn(store.path, 0):
        pass  # and the turn was given back


async def test_awaited_and_refused_the_turn_is_given_back(tree, store, embedder):
    await async_sync(tree.sources(), store, embedder, chunker=Paragraphs(), name="t")
    with pytest.raises(UsageError):
        await async_sync([], store, embedder, chunker=Paragraphs(), name="t")
    with turn(store.path, 0):
        pass


def test_progress_adds_up(tree, store, embedder):
    seen = []
    go(tree, store, embedder, progress=seen.append)
    assert seen[-1].sources == seen[-1].of_sources == 2
    assert seen[-1].done_bytes == seen[-1].total_bytes == sum(map(len, tree.files.values()))
    assert seen[-1].embedded == 4
    assert seen[-1].left_s == 0
    assert [p.embedded for p in seen] == sorted(p.embedded for p in seen)


def test_stopped_it_says_so(tree, store, embedder):
    report = go(tree, store, embedder, stop=lambda: True)
    assert report.added == 0
    assert "stopped" in report.notes[0]


def test_wrong_calls_are_refused(tree, store, embedder, tmp_path):
    with pytest.raises(ConfigError, match="name="):
        sync(tree.sources(), store, embedder, chunker=Paragraphs())
    doubled = [*tree.sources(), *tree.sources()]
    with pytest.raises(UsageError, match="twice"):
        sync(doubled, store, embedder, chunker=Paragraphs(), name="t")
    with pytest.raises(NotFound, match="no folder"):
        sync(tmp_path / "none", store, embedder, chunker=Paragraphs())
    with pytest.raises(UsageError, match="open store"):
        sync(tree.sources(), str(tmp_path), embedder, chunker=Paragraphs(), name="t")
    with pytest.raises(UsageError, match="embedder"):
        go(tree, store, "local")


def test_searching_goes_on_meanwhile(tree, store, embedder):
    go(tree, store, embedder)
    errors, done = [], threading.Event()

    def search():
        while not done.is_set():
            try:
                assert len(store.search(Query(text="shared")).hits) == 1
            except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
                errors.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    for n in range(5):
        tree.write("a", f"heron {n}\n\nshared")
        go(tree, store, embedder)
    done.set()
    thread.join()
    assert not errors


def test_a_folder_whose_name_is_no_text_is_a_collection(store, embedder, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (folder / "a.md").write_text("text")
    assert sync(folder, store, embedder).added == 1
    assert sync(folder, store, embedder).skipped == 1


def test_a_folder_that_cannot_be_listed_keeps_all_whatever_is_allowed(
    store, embedder, tmp_path, monkeypatch
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("text")
    sync(tmp_path / "docs", store, embedder)

    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refused)
    report = sync(tmp_path / "docs", store, embedder, allow_empty=True)
    assert (report.deleted, [each.source for each in report.failed]) == (0, ["."])
    assert store.count() == 1
