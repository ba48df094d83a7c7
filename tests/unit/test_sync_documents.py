"""Documents kept in step; each fault of langchain-core's ``index()`` beside what is done here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import index

import cormorant
from cormorant.errors import EmbeddingMismatch, UsageError
from cormorant.ingest.documents import async_sync_documents, sync_documents
from cormorant.langchain import Cormorant
from cormorant.langchain.indexing import CormorantRecordManager

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings


@pytest.fixture
def embedder():
    return CountingEmbeddings()


@pytest.fixture
def vs(tmp_path, embedder):
    with Cormorant(embedder, path=tmp_path / "kb") as made:
        yield made


def pages(*texts, source="a.md", **more):
    return [Document(text, metadata={"source": source, **more}) for text in texts]


def texts_of(vs):
    return sorted(record.text for record in vs.store.records())


def by_source(documents, vs, cleanup="incremental", **more):
    return sync_documents(documents, vs, source_id_key="source", cleanup=cleanup, **more)


def by_index(documents, vs, batch_size=100):
    return index(
        documents,
        CormorantRecordManager(vs, "wiki"),
        vs,
        cleanup="incremental",
        source_id_key="source",
        key_encoder="sha256",
        batch_size=batch_size,
    )


# index()'s faults


def test_a_batch_smaller_than_a_source_embeds_nothing_again(vs, embedder, tmp_path):
    texts = [f"chunk {number}" for number in range(6)]
    changed = ["new", *texts[1:]]
    theirs = CountingEmbeddings()
    with Cormorant(theirs, path=tmp_path / "theirs") as other:
        by_index(pages(*texts), other, batch_size=2)
        by_index(pages(*changed), other, batch_size=2)
    assert theirs.counts["chunk 5"] == 2  # deleted with the first batch, and embedded again

    by_source(pages(*texts), vs)
    report = by_source(pages(*changed), vs)
    assert (report.embedded, report.chunks_added, report.chunks_deleted) == (1, 1, 1)
    assert embedder.embedded == 7
    assert texts_of(vs) == sorted(changed)


def test_drift_is_found_and_repaired(vs, tmp_path, embedder):
    documents = pages("one", "two")
    with Cormorant(CountingEmbeddings(), path=tmp_path / "theirs") as other:
        by_index(documents, other)
        other.delete(filter={})
        by_index(documents, other)
        assert texts_of(other) == []  # its records say that all is there

    by_source(documents, vs)
    (gone,) = [record.id for record in vs.store.records() if record.text == "one"]
    vs.store.delete([gone])
    assert by_source(documents, vs, verify=True).chunks_added == 1
    assert texts_of(vs) == ["one", "two"]
    assert embedder.counts == {"one": 2, "two": 1}


def test_another_embedder_is_refused_where_nothing_changed(vs, tmp_path):
    documents = pages("one", "two")
    by_source(documents, vs)
    with Cormorant(DeterministicFakeEmbedding(size=8), store=vs.store) as other:
        by_index(documents, vs)
        assert by_index(documents, other)["num_skipped"] == 2  # says that all is well
        with pytest.raises(EmbeddingMismatch):
            by_source(documents, other)


def test_metadata_alone_do_not_embed(vs, tmp_path, embedder):
    theirs = CountingEmbeddings()
    with Cormorant(theirs, path=tmp_path / "theirs") as other:
        by_index(pages("one", year=2020), other)
        by_index(pages("one", year=2021), other)
    assert theirs.embedded == 2

    by_source(pages("one", year=2020), vs)
    by_source(pages("one", year=2021), vs)
    assert embedder.embedded == 1
    assert [record.metadata["year"] for record in vs.store.records()] == [2021]


def test_a_failure_leaves_the_old_version_whole(vs, embedder, monkeypatch, tmp_path):
    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    with Cormorant(CountingEmbeddings(), path=tmp_path / "theirs") as other:
        by_index(pages("one", "two"), other)
        monkeypatch.setattr(other, "delete", stopped)
        with pytest.raises(KeyboardInterrupt):
            by_index(pages("three"), other)
        assert texts_of(other) == ["one", "three", "two"]  # both versions, side by side

    by_source(pages("one", "two"), vs)

    def fail(texts):
        raise RuntimeError("down")

    monkeypatch.setattr(embedder, "embed_documents", fail)
    with pytest.raises(cormorant.errors.EmbeddingError):
        by_source(pages("three"), vs)
    assert texts_of(vs) == ["one", "two"]


# Clean-up


@pytest.mark.parametrize(
    ("cleanup", "left"),
    [
        (None, ["b1", "new", "one", "two"]),
        ("incremental", ["b1", "new", "two"]),
        ("scoped_full", ["b1", "new", "two"]),
        ("full", ["new", "two"]),
    ],
)
async def test_every_way_to_clean_up(vs, embedder, cleanup, left):
    by_source([*pages("one", "two"), *pages("b1", source="b.md")], vs)
    report = by_source(pages("two", "new"), vs, cleanup)
    assert texts_of(vs) == left
    assert (report.updated, report.skipped, report.embedded) == (1, 0, 1)
    assert report.deleted == (cleanup == "full")
    again = await async_sync_documents(
        pages("two", "new"), vs, source_id_key="source", cleanup=cleanup
    )
    assert (again.updated, again.skipped, again.embedded) == (0, 1, 0)
    assert texts_of(vs) == left
    assert embedder.embedded == 4


def test_documents_of_one_source_may_come_apart(vs):
    documents = [*pages("one"), *pages("b1", source="b.md"), *pages("two")]
    by_source(documents, vs)
    assert texts_of(vs) == ["b1", "one", "two"]
    assert by_source(documents, vs).skipped == 2


def test_what_was_kept_without_cleaning_up_is_cleaned_up_later(vs):
    by_source(pages("one"), vs, None)
    by_source(pages("two"), vs, None)
    by_source(pages("two"), vs)
    assert texts_of(vs) == ["two"]


def test_without_sources_all_documents_are_one_set(vs, embedder):
    documents = [Document(f"note {number}") for number in range(40)]
    sync_documents(documents, vs)
    report = sync_documents(documents[1:], vs)
    assert (report.chunks_added, report.chunks_deleted, embedder.embedded) == (0, 1, 40)
    with pytest.raises(UsageError, match="nothing was deleted"):
        sync_documents([], vs)
    sync_documents([], vs, cleanup=None)
    assert vs.store.count() == 39
    sync_documents([], vs, allow_empty=True)
    assert vs.store.count() == 0


def test_drift_of_a_source_that_was_not_given_is_reported(vs):
    by_source([*pages("one"), *pages("b1", source="b.md"), *pages("c1", source="c.md")], vs)
    vs.delete(filter={"source": "b.md"})
    report = by_source(pages("one"), vs, verify=True)
    assert [each.source for each in report.failed] == ["b.md"]
    assert (report.updated, report.skipped) == (1, 0)
    assert "deleted from the store by other means" in report.failed[0].error
    assert by_source(pages("b1", source="b.md"), vs, verify=True).failed == ()
    assert texts_of(vs) == ["b1", "c1", "one"]


def test_a_loader_a_scope_and_a_store_of_text_alone(tmp_path):
    class Loader(BaseLoader):
        def lazy_load(self):
            yield from pages("one", "two")

    with cormorant.open(tmp_path / "kb") as store:
        acme = store.scope(tenant="acme")
        sync_documents(Loader(), acme, source_id_key=lambda document: "x")
        sync_documents(pages("three"), store.scope(tenant="other"))
        assert (acme.count(), store.count()) == (2, 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"cleanup": "all"}, "cleanup takes 'incremental', 'scoped_full', 'full' or None"),
        ({"cleanup": "incremental"}, "needs source_id_key"),
        ({"source_id_key": "url"}, "needs a source"),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(vs, call, says):
    with pytest.raises(UsageError, match=says):
        sync_documents(pages("one"), vs, **call)
    assert vs.store.count() == 0
