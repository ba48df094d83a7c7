"""Is another embedder noticed, and the same one left in peace?"""

import gc
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings, FakeEmbeddings

from cormorant import Record, Store
from cormorant.errors import EmbeddingError, EmbeddingMismatch
from cormorant.langchain import Cormorant, probed
from cormorant.langchain.embedder import Embedder

FAKE = DeterministicFakeEmbedding(size=32)


class Changed(Embeddings):
    """The fake embedder, its vectors changed; counts the probings."""

    def __init__(self, change: Callable[[np.ndarray], np.ndarray] = lambda v: v) -> None:
        self.change = change
        self.probings = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.probings += len(texts) == 8
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return list(self.change(np.array(FAKE.embed_query(text))))


def rolled(vector: np.ndarray) -> np.ndarray:
    return np.roll(vector, 1)


def noisy(amount: float) -> Callable[[np.ndarray], np.ndarray]:
    """The same noise for the same vector, so that a query and its document move alike."""

    def add(vector: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(int(abs(vector[0]) * 1e6)).normal(size=vector.size)
        return vector + amount * np.linalg.norm(vector) * noise / np.linalg.norm(noise)

    return add


@pytest.fixture
def store() -> Any:
    with Store.open(":memory:") as made:
        Cormorant(Changed(), store=made).add_texts(["a fish", "a boat"])
        yield made


def test_another_model_of_the_same_size_is_refused(store: Store) -> None:
    """In other stores it is silent, and results turn to noise."""
    other = Cormorant(Changed(rolled), store=store)
    for call in (
        lambda: other.similarity_search("fish"),
        lambda: other.search("fish", "hybrid"),
        lambda: other.max_marginal_relevance_search("fish"),
        lambda: other.add_texts(["b"]),
        lambda: other.explain("fish", "x"),
        lambda: other.as_retriever().invoke("fish"),
        lambda: other.scope(tenant="acme").similarity_search("fish"),
    ):
        with pytest.raises(EmbeddingMismatch, match="Another embedder"):
            call()
    assert store.count() == 2


async def test_another_model_is_refused_by_the_async_twins(store: Store) -> None:
    other = Cormorant(Changed(rolled), store=store)
    with pytest.raises(EmbeddingMismatch):
        await other.asimilarity_search("fish")
    with pytest.raises(EmbeddingMismatch):
        await other.aadd_texts(["b"])
    with pytest.raises(EmbeddingMismatch):
        await other.as_retriever().ainvoke("fish")


def test_text_search_asks_no_embedder(store: Store) -> None:
    embedding = Changed(rolled)
    assert len(Cormorant(embedding, store=store).search("fish", "text")) == 1
    assert embedding.probings == 0


def test_a_model_of_another_size_is_refused(store: Store) -> None:
    other = Cormorant(DeterministicFakeEmbedding(size=31), store=store)
    for call in (lambda: other.similarity_search("fish"), lambda: other.add_texts(["b"])):
        with pytest.raises(EmbeddingMismatch, match="32 numbers"):
            call()


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.astype(np.float32),
        lambda v: v.astype(np.float16),
        lambda v: v + 1e-6,
        lambda v: v * 3.0,
        lambda v: np.round(v / np.abs(v).max() * 127) / 127,
    ],
)
def test_rounding_length_and_noise_do_not_trip_it(store: Store, change: Any) -> None:
    again = Cormorant(Changed(change), store=store)
    assert len(again.similarity_search("fish")) == 2
    again.add_texts(["b"])


def test_it_is_noticed_in_the_next_process_too(tmp_path: Any) -> None:
    with Cormorant.from_texts(["a"], Changed(), path=tmp_path / "kb"):
        pass
    with (
        Cormorant(Changed(rolled), path=tmp_path / "kb") as vs,
        pytest.raises(EmbeddingMismatch),
    ):
        vs.similarity_search("a")
    with Cormorant(Changed(), path=tmp_path / "kb", read_only=True) as vs:
        assert len(vs.similarity_search("a")) == 1


def test_a_variant_is_refused_unless_it_is_accepted(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    variant = Changed(noisy(0.2))
    with pytest.raises(EmbeddingMismatch, match="accept_variant=True"):
        Cormorant(variant, store=store).similarity_search("fish")
    with pytest.raises(EmbeddingMismatch, match="accept_variant=True"):
        Cormorant(variant, store=store).add_texts(["b"])
    with caplog.at_level(logging.WARNING, logger="cormorant.langchain"):
        accepting = Cormorant(variant, store=store, accept_variant=True)
        assert len(accepting.similarity_search("fish")) == 2
        accepting.add_texts(["b"])
    assert "variant" in caplog.text
    with pytest.raises(EmbeddingMismatch):
        Cormorant(Changed(rolled), store=store, accept_variant=True).similarity_search("fish")
    assert len(Cormorant(Changed(), store=store).similarity_search("fish")) == 3


def test_the_same_vectors_under_another_name_are_the_same_model(store: Store) -> None:
    class Renamed(Changed):
        model = "another-name"

    assert len(Cormorant(Renamed(), store=store).similarity_search("fish")) == 2


def test_random_embedders_need_the_check_switched_off() -> None:
    with Cormorant(FakeEmbeddings(size=6), check_embedder=False) as vs:
        vs.add_texts(["a", "b"])
        assert len(vs.similarity_search("a")) == 2
        assert vs.store.fingerprint is None
        Cormorant(FakeEmbeddings(size=6), store=vs.store).add_texts(["c"])
        with pytest.raises(EmbeddingMismatch):
            Cormorant(FakeEmbeddings(size=6), store=vs.store).add_texts(["d"])


def test_a_store_emptied_of_vectors_takes_another_model(store: Store) -> None:
    vs = Cormorant(Changed(rolled), store=store)
    store.delete(filter={})
    vs.add_texts(["a fish"])
    assert len(vs.similarity_search("fish")) == 1
    with pytest.raises(EmbeddingMismatch):
        Cormorant(Changed(), store=store).similarity_search("fish")


def test_the_model_swapped_under_a_living_object_is_noticed() -> None:
    with Store.open(":memory:") as store:
        ours = Cormorant(Changed(), store=store)
        ours.add_texts(["a"])
        store.delete(filter={})
        Cormorant(Changed(rolled), store=store).add_texts(["b"])
        with pytest.raises(EmbeddingMismatch):
            ours.similarity_search("a")


def test_raw_vectors_cannot_be_compared_and_are_taken() -> None:
    with Store.open(":memory:") as store:
        store.add([Record(id="raw", text="a fish", vector=FAKE.embed_query("a fish"))])
        vs = Cormorant(Changed(), store=store)
        assert [doc.id for doc in vs.similarity_search("a fish")] == ["raw"]
        assert store.fingerprint is None
        vs.add_texts(["b"])
        assert store.fingerprint is not None


def test_the_specification_the_store_remembers_is_kept() -> None:
    with Store.open(":memory:", embedder="local") as store:
        Cormorant(Changed(), store=store).add_texts(["a"])
        assert store.embedder == "local"


def test_an_embedder_that_refuses_the_probes_is_told_what_to_do() -> None:
    class Short(Changed):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if max(map(len, texts)) > 1000:
                raise ValueError("input too long")
            return super().embed_documents(texts)

    with Cormorant(Short()) as vs, pytest.raises(EmbeddingError, match="check_embedder=False"):
        vs.add_texts(["a"])
    with Cormorant(Short(), check_embedder=False) as vs:
        vs.add_texts(["a"])


# What it costs


def test_probing_is_lazy_and_done_once_per_embedder(store: Store) -> None:
    embedding = Changed()
    assert embedding.probings == 0
    for _ in range(3):  # as a web handler makes one for each request
        vs = Cormorant(embedding, store=store)
        vs.add_texts(["b"])
        vs.similarity_search("fish")
        vs.scope(tenant="acme").similarity_search("fish")
    with Cormorant(embedding) as another_store:
        another_store.add_texts(["b"])
    assert embedding.probings == 1


def test_a_query_of_an_empty_store_costs_no_probing() -> None:
    embedding = Changed()
    with Cormorant(embedding) as vs:
        assert vs.similarity_search("fish") == []
        vs.get_by_ids(["x"])
    assert embedding.probings == 0


def test_switched_off_it_costs_nothing(store: Store) -> None:
    embedding = Changed(rolled)
    vs = Cormorant(embedding, store=store, check_embedder=False)
    vs.similarity_search("fish")
    vs.add_texts(["b"])
    assert embedding.probings == 0


def test_many_threads_probe_once() -> None:
    class Slow(Changed):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            gate.wait(0.05)
            return super().embed_documents(texts)

    gate = threading.Event()
    embedding = Slow()
    with Cormorant(embedding) as vs, ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(lambda n: vs.add_texts([f"text {n}"]), range(8)))
        assert len(ids) == 8
        assert vs.store.count() == 8
    assert embedding.probings == 1


def test_an_embedder_that_is_gone_is_forgotten() -> None:
    embedding = Changed()
    embedder = Embedder(embedding, lambda: pytest.fail("no thread is needed"))
    key = probed._key(embedder)
    probed.probed(embedder)
    assert key in probed._known
    del embedding, embedder
    gc.collect()
    assert key not in probed._known


def test_an_embedder_that_cannot_be_watched_is_probed_for_each_store() -> None:
    class Bare:
        __slots__ = ("probings",)

        def __init__(self) -> None:
            self.probings = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.probings += len(texts) == 8
            return FAKE.embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            return FAKE.embed_query(text)

    embedding = Bare()
    with Cormorant(embedding) as vs:  # type: ignore[arg-type]
        vs.add_texts(["a"])
        vs.add_texts(["b"])
        assert len(vs.similarity_search("a")) == 2
    assert embedding.probings == 1
