"""What may be added and deleted through LangChain's methods, and what is refused, whole."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.structured_query import Comparator, Comparison

from cormorant import Store
from cormorant.errors import (
    CormorantError,
    DimensionError,
    EmbeddingError,
    RecordError,
    StoreError,
    UsageError,
)
from cormorant.langchain import Cormorant

FAKE = DeterministicFakeEmbedding(size=6)


class Counting(Embeddings):
    """Counts its calls; returns what a test plants instead, if it does."""

    def __init__(self, planted: Any = None) -> None:
        self.planted = planted
        self.documents = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if len(texts) != 8:  # not the probes
            self.documents += 1
            if isinstance(self.planted, Exception):
                raise self.planted
            if self.planted is not None:
                return self.planted(FAKE.embed_documents(texts))
        return FAKE.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return FAKE.embed_query(text)


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    with Cormorant(FAKE) as made:
        yield made


# What is accepted


def test_a_generator_of_texts_is_stored(vs: Cormorant) -> None:
    ids = vs.add_texts(text for text in ("a", "b", "c"))
    assert [doc.page_content for doc in vs.get_by_ids(ids)] == ["a", "b", "c"]


async def test_a_generator_of_texts_is_stored_by_the_async_twin(vs: Cormorant) -> None:
    ids = await vs.aadd_texts(text for text in ("a", "b", "c"))
    assert [doc.page_content for doc in vs.get_by_ids(ids)] == ["a", "b", "c"]


def test_generators_of_metadatas_and_ids_are_read_once(vs: Cormorant) -> None:
    vs.add_texts(iter(["a", "b"]), ({"n": n} for n in (1, 2)), ids=(name for name in ("x", "y")))
    assert [(d.id, d.page_content, d.metadata) for d in vs.get_by_ids(["x", "y"])] == [
        ("x", "a", {"n": 1}),
        ("y", "b", {"n": 2}),
    ]


def test_a_generator_of_documents_is_stored_by_from_documents() -> None:
    documents = (Document(page_content=text, metadata={"t": text}) for text in "ab")
    with Cormorant.from_documents(documents, FAKE) as vs:
        found = vs.similarity_search("a", k=2)
    assert {(d.page_content, d.metadata["t"]) for d in found} == {("a", "a"), ("b", "b")}


def test_none_among_ids_becomes_a_random_one(vs: Cormorant) -> None:
    ids = vs.add_documents([Document(page_content="a", id="x"), Document(page_content="b")])
    assert ids[0] == "x"
    assert len(ids[1]) == 36
    assert vs.add_texts(["c", "d"], ids=["y", None])[0] == "y"
    assert vs.store.count() == 4


def test_the_ids_argument_beats_the_documents_id(vs: Cormorant) -> None:
    assert vs.add_documents([Document(page_content="a", id="x")], ids=["y"]) == ["y"]
    assert vs.get_by_ids(["x"]) == []


def test_adding_nothing_is_fine_and_asks_no_embedder() -> None:
    embedding = Counting()
    with Cormorant(embedding) as vs:
        assert vs.add_texts([]) == []
        assert vs.add_documents([]) == []
        assert embedding.documents == 0


def test_batch_size_is_taken_because_index_passes_it(vs: Cormorant) -> None:
    assert vs.add_documents([Document(page_content="a")], ids=["x"], batch_size=100) == ["x"]


def test_adding_an_id_again_replaces_the_record_whole(vs: Cormorant) -> None:
    vs.add_texts(["old"], [{"permission": "all", "kept": 1}], ids=["x"])
    vs.add_texts(["new"], [{"kept": 2}], ids=["x"])
    (doc,) = vs.get_by_ids(["x"])
    assert (doc.page_content, doc.metadata) == ("new", {"kept": 2})
    assert vs.store.count() == 1


def test_metadata_of_any_json_shape_comes_back(vs: Cormorant) -> None:
    metadata = {
        "nested": {"a": [1, 2.5, None, {"b": True}]},
        "none": None,
        "empty": [],
        "when": dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC),
        "day": dt.date(2026, 1, 2),
    }
    (id_,) = vs.add_texts(["a"], [metadata])
    assert vs.get_by_ids([id_])[0].metadata == metadata


def test_documents_are_copied_in_and_out(vs: Cormorant) -> None:
    original = Document(page_content="a", metadata={"tags": ["x"]})
    (id_,) = vs.add_documents([original])
    original.metadata["tags"].append("changed after adding")
    found = vs.similarity_search("a", k=1)[0]
    found.metadata["tags"].append("changed after finding")
    vs.get_by_ids([id_])[0].metadata["tags"].append("changed after getting")
    assert vs.similarity_search("a", k=1)[0].metadata == {"tags": ["x"]}
    assert vs.get_by_ids([id_])[0].metadata == {"tags": ["x"]}


async def test_what_the_caller_changes_while_the_embedder_is_awaited_is_not_stored() -> None:
    original = Document(page_content="a", metadata={"tags": ["x"]})

    class Meddling(Counting):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            original.metadata["tags"].append("changed")
            return self.embed_documents(texts)

    with Cormorant(Meddling(), check_embedder=False) as vs:
        (id_,) = await vs.aadd_documents([original])
        assert vs.get_by_ids([id_])[0].metadata == {"tags": ["x"]}


def test_chunks_that_share_one_metadata_dict_do_not_share_it_in_the_store(vs: Cormorant) -> None:
    shared = {"source": ["a.txt"]}
    vs.add_documents([Document(page_content=t, metadata=shared, id=t) for t in ("a", "b")])
    first, second = vs.get_by_ids(["a", "b"])
    first.metadata["source"].append("changed")
    assert second.metadata == {"source": ["a.txt"]}


def test_a_document_updated_without_metadata_loses_it_and_nothing_fails(vs: Cormorant) -> None:
    vs.add_texts(["a"], [{"n": 1}], ids=["x"])
    vs.add_documents([Document(page_content="b", id="x")])
    assert vs.get_by_ids(["x"]) == [Document(page_content="b", id="x", metadata={})]


def test_metadata_that_holds_itself_is_refused(vs: Cormorant) -> None:
    circular: dict[str, Any] = {}
    circular["self"] = circular
    with pytest.raises(RecordError):
        vs.add_texts(["a"], [circular])
    assert vs.store.count() == 0


def test_scores_left_in_metadata_are_not_stored(vs: Cormorant) -> None:
    vs.add_texts(["a"], [{"n": 1}], ids=["x"])
    scored = vs.similarity_search("a", k=1, with_scores=True)
    assert "_cormorant" in scored[0].metadata
    vs.add_documents(scored)
    assert vs.get_by_ids(["x"])[0].metadata == {"n": 1}
    assert "_cormorant" in scored[0].metadata, "the caller's own document is left alone"


def test_a_document_of_no_text_is_found_by_its_vector(vs: Cormorant) -> None:
    vs.add_texts([""], ids=["x"])
    assert [doc.id for doc in vs.similarity_search("a", k=1)] == ["x"]


# What is refused, with nothing stored


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"texts": ["a", "b", "c"], "ids": ["x", "y"]}, "got 2 ids and 3 texts"),
        ({"texts": ["a", "b"], "ids": ["x", "y", "z"]}, "got 3 ids and 2 texts"),
        ({"texts": ["a", "b"], "ids": []}, "got 0 ids and 2 texts"),
        ({"texts": ["a", "b"], "metadatas": [{}]}, "got 1 metadatas and 2 texts"),
        ({"texts": ["a", "b"], "ids": ["x", "x"]}, "'x' comes twice"),
        ({"texts": "a string", "ids": None}, "Put it in a list"),
        ({"texts": ["a"], "ids": "x"}, "Put it in a list"),
        ({"texts": ["a"], "ids": [7]}, "must be a string"),
        ({"texts": ["a"], "ids": [""]}, "empty id"),
        ({"texts": ["a"], "metadatas": {"n": 1}}, "Put it in a list"),
        ({"texts": ["a", None]}, "must be a string"),
        ({"texts": ["a", "b\ud800"]}, "lone surrogate"),
        ({"texts": ["a", "x" * 10_000_000]}, "at most"),
        ({"texts": ["a", "b"], "metadatas": [{}, {"f": object()}]}, "object"),
        ({"texts": ["a", "b"], "metadatas": [{}, {"f": float("nan")}]}, "nan|NaN"),
        ({"texts": ["a", "b"], "metadatas": [{}, {1: "x"}]}, "key"),
        ({"texts": ["a", "b"], "metadatas": [{}, {"f": "\ud800"}]}, "surrogate"),
        ({"texts": ["a", "b"], "metadatas": [{}, ["no", "dict"]]}, "metadata"),
    ],
)
def test_a_bad_batch_is_refused_before_it_is_embedded(arguments: dict[str, Any], says: str) -> None:
    embedding = Counting()
    with Cormorant(embedding) as vs:
        with pytest.raises(RecordError, match=says):
            vs.add_texts(**arguments)
        assert vs.store.count() == 0
        assert embedding.documents == 0


def test_documents_that_are_none_are_refused(vs: Cormorant) -> None:
    with pytest.raises(RecordError, match="add_texts"):
        vs.add_documents(["a string"])  # type: ignore[list-item]
    with pytest.raises(RecordError, match="Put it in a list"):
        vs.add_documents(Document(page_content="a"))  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="got 1 ids and 2 documents"):
        vs.add_documents([Document(page_content="a"), Document(page_content="b")], ids=["x"])


@pytest.mark.parametrize("planted", [
    lambda vectors: vectors[:-1],
    lambda vectors: [*vectors, vectors[0]],
    lambda vectors: None,
    lambda vectors: [*vectors[:-1], vectors[-1][:-1]],
    lambda vectors: [*vectors[:-1], [*vectors[-1][:-1], float("nan")]],
    lambda vectors: [*vectors[:-1], [*vectors[-1][:-1], float("inf")]],
    lambda vectors: [*vectors[:-1], [*vectors[-1][:-1], 1e300]],
    lambda vectors: [*vectors[:-1], None],
    lambda vectors: [[] for _ in vectors],
    lambda vectors: [["x"] * 6 for _ in vectors],
    lambda vectors: np.zeros((len(vectors), 2, 3)),
    lambda vectors: "nonsense",
    ValueError("the provider is down"),
])  # fmt: skip
async def test_what_an_embedder_should_not_return_is_refused_and_nothing_stored(
    planted: Any,
) -> None:
    with Cormorant(Counting(planted)) as vs:
        with pytest.raises(EmbeddingError, match=r"Counting.*Nothing was stored") as caught:
            vs.add_texts(["a", "b", "c"])
        with pytest.raises(EmbeddingError):
            await vs.aadd_texts(["a", "b", "c"])
        assert "Counting" in caught.value.model
        assert vs.store.count() == 0


def test_vectors_of_another_size_than_the_store_are_refused() -> None:
    embedding = Counting()
    with Cormorant(embedding) as vs:
        vs.add_texts(["a"])
        embedding.planted = lambda vectors: [vector[:5] for vector in vectors]
        with pytest.raises(DimensionError, match="6"):
            vs.add_texts(["b"])
        assert vs.store.count() == 1
    with Store.open(":memory:", dim=4) as store:
        with pytest.raises(DimensionError, match="6"):
            Cormorant(FAKE, store=store).add_texts(["a"])
        with pytest.raises(DimensionError, match="6"):
            Cormorant(FAKE, store=store, check_embedder=False).add_texts(["a"])
        assert store.count() == 0
        assert store.fingerprint is None


def test_a_zero_vector_is_refused_under_cosine() -> None:
    planted = Counting(lambda vectors: [[0.0] * 6 for _ in vectors])
    with Cormorant(planted) as vs:
        with pytest.raises(CormorantError, match="zero"):
            vs.add_texts(["a"])
        assert vs.store.count() == 0


@pytest.mark.parametrize(
    ("failure", "retryable"),
    [(TimeoutError("slow"), True), (ConnectionError("gone"), True), (ValueError("no"), False)],
)
def test_whether_a_failed_embedding_may_be_tried_again_is_said(
    failure: Exception, retryable: bool
) -> None:
    with Cormorant(Counting(failure)) as vs, pytest.raises(EmbeddingError) as caught:
        vs.add_texts(["a"])
    assert caught.value.retryable is retryable
    assert caught.value.__cause__ is failure


def test_a_rate_limit_may_be_tried_again() -> None:
    failure = RuntimeError("429")
    failure.status_code = 429  # type: ignore[attr-defined]
    with Cormorant(Counting(failure)) as vs, pytest.raises(EmbeddingError) as caught:
        vs.add_texts(["a"])
    assert caught.value.retryable


def test_arrays_from_an_embedder_are_fine() -> None:
    with Cormorant(Counting(lambda vectors: np.asarray(vectors, dtype=np.float16))) as vs:
        vs.add_texts(["a", "b"])
        assert vs.store.count() == 2


def test_an_unknown_argument_is_refused_everywhere(vs: Cormorant) -> None:
    for call in (
        lambda: vs.add_texts(["a"], colour="red"),
        lambda: vs.add_documents([Document(page_content="a")], namespace="x"),
        lambda: vs.delete(["a"], where={}),
        lambda: Cormorant(FAKE, persist_directory="x"),
        lambda: Cormorant.from_texts(["a"], FAKE, collection_name="x"),
    ):
        with pytest.raises(UsageError, match="does not take"):
            call()
    assert vs.store.count() == 0


async def test_an_unknown_argument_is_refused_by_the_async_twins(vs: Cormorant) -> None:
    with pytest.raises(UsageError, match="does not take 'colour'"):
        await vs.aadd_texts(["a"], colour="red")
    with pytest.raises(UsageError, match="does not take 'namespace'"):
        await vs.aadd_documents([Document(page_content="a")], namespace="x")
    with pytest.raises(UsageError, match="does not take 'where'"):
        await vs.adelete(["a"], where={})
    with pytest.raises(UsageError, match="does not take 'collection_name'"):
        await Cormorant.afrom_texts(["a"], FAKE, collection_name="x")


def test_what_the_constructor_cannot_use_is_refused(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="embed_documents"):
        Cormorant("text-embedding-3-small", path=tmp_path / "kb")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="instance"):
        Cormorant(DeterministicFakeEmbedding, path=tmp_path / "kb")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="path="):
        Cormorant(FAKE, store=str(tmp_path))  # type: ignore[arg-type]
    with Store.open(":memory:") as store:
        with pytest.raises(UsageError, match="already open"):
            Cormorant(FAKE, store=store, path=tmp_path / "kb")
        with pytest.raises(UsageError, match="metric"):
            Cormorant(FAKE, store=store, metric="dot")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_from_texts_leaves_no_store_open(tmp_path: Any) -> None:
    with pytest.raises(RecordError):
        Cormorant.from_texts(["a"], FAKE, ids=["x", "y"], path=tmp_path / "kb")
    with Cormorant(FAKE, path=tmp_path / "kb", lock_timeout_s=0.1) as vs:
        vs.add_texts(["a"])
        assert vs.store.count() == 1


def test_a_read_only_store_is_searched_and_not_written(tmp_path: Any) -> None:
    with Cormorant.from_texts(["a"], FAKE, ids=["x"], path=tmp_path / "kb"):
        pass
    with Cormorant(FAKE, path=tmp_path / "kb", read_only=True) as vs:
        assert [doc.id for doc in vs.similarity_search("a")] == ["x"]
        with pytest.raises(StoreError, match="read-only"):
            vs.add_texts(["b"])


# Deleting


def test_delete_by_ids_skips_the_unknown(vs: Cormorant) -> None:
    vs.add_texts(["a", "b"], ids=["x", "y"])
    assert vs.delete(["x", "unknown"]) is True
    assert vs.delete([]) is True
    assert [doc.id for doc in vs.get_by_ids(["x", "y"])] == ["y"]


def test_delete_of_nothing_named_says_how_to_delete_all(vs: Cormorant) -> None:
    vs.add_texts(["a", "b"])
    with pytest.raises(UsageError, match=r"delete\(filter=\{\}\)"):
        vs.delete()
    assert vs.store.count() == 2
    vs.delete(filter={})
    assert vs.store.count() == 0


def test_delete_takes_every_kind_of_filter(vs: Cormorant) -> None:
    vs.add_texts(list("abcd"), [{"n": n} for n in range(4)], ids=list("abcd"))
    vs.delete(filter={"n": 0})
    vs.delete(filter=lambda doc: doc.metadata["n"] == 1)
    vs.delete(filter=Comparison(Comparator.EQ, "n", 2))
    assert [doc.id for doc in vs.get_by_ids(list("abcd"))] == ["d"]


def test_delete_by_ids_and_filter_needs_both(vs: Cormorant) -> None:
    vs.add_texts(["a", "b"], [{"n": 1}, {"n": 2}], ids=["a", "b"])
    vs.delete(["a", "b"], filter={"n": 2})
    assert [doc.id for doc in vs.get_by_ids(["a", "b"])] == ["a"]


def test_delete_of_a_bare_string_is_refused(vs: Cormorant) -> None:
    vs.add_texts(["a", "b"], ids=["a", "ab"])
    with pytest.raises(RecordError, match="Put it in a list"):
        vs.delete("ab")
    assert vs.store.count() == 2


async def test_adelete_deletes(vs: Cormorant) -> None:
    vs.add_texts(["a", "b"], ids=["a", "b"])
    assert await vs.adelete(["a"]) is True
    with pytest.raises(UsageError):
        await vs.adelete()
    assert await vs.adelete(filter={}) is True
    assert vs.store.count() == 0


# Getting


async def test_get_by_ids_keeps_the_order_asked_and_drops_repeats(vs: Cormorant) -> None:
    vs.add_texts(["a", "b", "c"], ids=["a", "b", "c"])
    asked = ["c", "unknown", "a", "c"]
    assert [doc.id for doc in vs.get_by_ids(asked)] == ["c", "a"]
    assert [doc.id for doc in await vs.aget_by_ids(asked)] == ["c", "a"]


# Making one


async def test_every_way_to_make_one_with_documents() -> None:
    texts, metadatas, ids = ["a", "b"], [{"n": 1}, {"n": 2}], ["x", "y"]
    documents = [
        Document(page_content=t, metadata=m, id=i)
        for t, m, i in zip(texts, metadatas, ids, strict=True)
    ]
    for made in (
        Cormorant.from_texts(texts, FAKE, metadatas, ids=ids, metric="dot"),
        Cormorant.from_documents(documents, FAKE, metric="dot"),
        await Cormorant.afrom_texts(texts, FAKE, metadatas, ids=ids, metric="dot"),
        await Cormorant.afrom_documents(documents, FAKE, metric="dot"),
        Cormorant.from_documents(
            [Document(page_content=d.page_content, metadata=d.metadata) for d in documents],
            FAKE,
            ids=ids,
            metric="dot",
        ),
    ):
        with made:
            assert made.get_by_ids(ids) == documents
            assert made.store.metric == "dot"
            assert made.embeddings is FAKE
            assert made.embedding is FAKE


def test_a_store_on_disk_is_there_the_next_time(tmp_path: Any) -> None:
    with Cormorant.from_texts(["a fish"], FAKE, ids=["x"], path=tmp_path / "kb"):
        pass
    with Cormorant(FAKE, path=tmp_path / "kb") as vs:
        assert [doc.id for doc in vs.similarity_search("a fish")] == ["x"]


def test_a_store_passed_in_stays_open() -> None:
    with Store.open(":memory:") as store:
        with Cormorant(FAKE, store=store) as vs:
            vs.add_texts(["a"])
        assert store.count() == 1


def test_without_an_embedder_text_alone_is_searched() -> None:
    with Cormorant.from_texts(["a fish", "a boat"], None) as vs:
        assert [doc.page_content for doc in vs.search("boat", "text")] == ["a boat"]
        with pytest.raises(UsageError, match="search_type='text'"):
            vs.similarity_search("boat")
        assert vs.embeddings is None
