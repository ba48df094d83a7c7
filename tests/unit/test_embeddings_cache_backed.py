"""CacheBackedEmbeddings: langchain-classic's name, arguments and keys, in any LangChain store."""

from __future__ import annotations

import asyncio
import json
import time
import warnings

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.stores import InMemoryByteStore, InMemoryStore

import cormorant
from cormorant.errors import ConfigError, CorruptionError, EmbeddingError, UsageError
from cormorant.langchain.embeddings import (
    CacheBackedEmbeddings,
    HypotheticalDocumentEmbedder,
    cache,
    identity,
    model_name,
)
from cormorant.langchain.embeddings.naming import uncached
from cormorant.langchain.storage import CormorantByteStore, LocalFileStore


class Counting(Embeddings):
    """Remembers what it was asked; the two sides of a text differ."""

    def __init__(self, model="m", dim=3):
        self.model, self.dim = model, dim
        self.documents, self.queries, self.awaited = [], [], 0

    def _vector(self, text, side):
        seed = abs(hash((text, side, self.model))) % 2**32
        return np.random.default_rng(seed).normal(size=self.dim)

    def embed_documents(self, texts):
        self.documents.append(list(texts))
        return [self._vector(text, "document").tolist() for text in texts]

    def embed_query(self, text):
        self.queries.append(text)
        return self._vector(text, "query").tolist()

    async def aembed_documents(self, texts):
        self.awaited += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        self.awaited += 1
        return self.embed_query(text)


def made(inner, store=None, **settings):
    given = {"key_encoder": "sha256", **settings}
    return CacheBackedEmbeddings.from_bytes_store(
        inner, InMemoryByteStore() if store is None else store, **given
    )


@pytest.fixture(params=["sync", "async"])
def call(request):
    async def asked(owner, name, *args):
        if request.param == "async":
            return await getattr(owner, f"a{name}")(*args)
        return getattr(owner, name)(*args)

    return asked


@pytest.fixture(params=["memory", "files", "cormorant"])
def store(request, tmp_path):
    if request.param == "memory":
        yield InMemoryByteStore()
    elif request.param == "files":
        yield LocalFileStore(tmp_path / "vectors")
    else:
        with cormorant.open(tmp_path / "kb") as opened:
            yield CormorantByteStore(opened)


async def test_each_distinct_text_is_embedded_once(store, call):
    inner = Counting()
    cached = made(inner, store)
    first = await call(cached, "embed_documents", ["a", "b", "a"])
    second = await call(cached, "embed_documents", ["b", "c", "a", "c"])
    assert inner.documents == [["a", "b"], ["c"]]
    assert first[0] == first[2] == second[2]
    assert first[1] == second[0]
    assert (cached.hits, cached.misses) == (2, 3)
    assert np.array_equal(np.float32(first[1]), np.float32(inner._vector("b", "document")))
    assert await call(made(Counting(), store), "embed_documents", ["a", "b", "a"]) == first
    assert await call(cached, "embed_documents", []) == []


async def test_two_models_share_no_vector_though_no_namespace_is_given(store, call):
    one, two = Counting("m", dim=4), Counting("n", dim=8)
    await call(made(one, store), "embed_documents", ["a"])
    (vector,) = await call(made(two, store), "embed_documents", ["a"])
    assert len(vector) == 8
    assert two.documents == [["a"]]


async def test_an_embedder_without_a_name_needs_a_namespace_once_it_is_used(call):
    nameless = DeterministicFakeEmbedding(size=3)
    cached = made(nameless, query_embedding_cache=True)
    for name, given in (("embed_documents", ["a"]), ("embed_query", "a")):
        with pytest.raises(ConfigError, match="namespace='name-of-the-model'"):
            await call(cached, name, given)
    named = made(nameless, namespace="fake-3")
    assert len((await call(named, "embed_documents", ["a"]))[0]) == 3


@pytest.mark.parametrize("kept", [None, [0.5] * 4])
async def test_another_models_vectors_of_another_size_are_noticed(call, kept):
    """Under one namespace or one key function, nothing else tells two models apart."""
    store = InMemoryByteStore()
    for settings in ({"namespace": "same"}, {"key_encoder": str.upper}):
        if kept is None:
            await call(made(Counting(dim=4), store, **settings), "embed_documents", ["a"])
        else:
            store.mset([("A", json.dumps(kept).encode())])
            store.mset([(made_key("same", "a"), json.dumps(kept).encode())])
        wide = made(Counting(dim=8), store, **settings)
        await call(wide, "embed_documents", ["b"])
        with pytest.raises(EmbeddingError, match=r"of 8 numbers.*cache has 4.*own namespace"):
            await call(wide, "embed_documents", ["a"])
        mixed = made(Counting(dim=8), store, **settings)
        with pytest.raises(EmbeddingError, match=r"of 4 numbers.*embedder has 8"):
            await call(mixed, "embed_documents", ["a", "c"])
        assert store.mget([made_key("same", "c"), "C"]) == [None, None]


def made_key(namespace, text):
    keys = InMemoryByteStore()
    made(Counting(), keys, namespace=namespace).embed_documents([text])
    (key,) = keys.yield_keys()
    return key


async def test_numpy_vectors_are_taken(call):
    class Arrays(Counting):
        def embed_documents(self, texts):
            return np.array(super().embed_documents(texts), dtype=np.float32)

        def embed_query(self, text):
            return np.array(super().embed_query(text), dtype=np.float32)

    cached = made(Arrays(), query_embedding_cache=True)
    for _ in range(2):
        (vector,) = await call(cached, "embed_documents", ["a"])
        asked = await call(cached, "embed_query", "a")
        assert {type(number) for number in (*vector, *asked)} == {float}
    plain = made(Arrays())
    assert type((await call(plain, "embed_query", "a"))[0]) is float


async def test_a_question_is_kept_only_where_a_store_for_it_is_given(call):
    inner = Counting()
    cached = made(inner)
    assert cached.query_embedding_store is None
    assert await call(cached, "embed_query", "a") == await call(cached, "embed_query", "a")
    assert inner.queries == ["a", "a"]
    for given in (True, InMemoryByteStore()):
        inner = Counting()
        cached = made(inner, query_embedding_cache=given)
        assert await call(cached, "embed_query", "a") == await call(cached, "embed_query", "a")
        assert inner.queries == ["a"]


async def test_a_question_never_gets_a_documents_vector(store, call):
    inner = Counting()
    cached = made(inner, store, query_embedding_cache=True)
    (document,) = await call(cached, "embed_documents", ["tide"])
    query = await call(cached, "embed_query", "tide")
    assert document != query
    assert (inner.documents, inner.queries) == ([["tide"]], ["tide"])
    assert await call(cached, "embed_query", "tide") == query
    assert await call(cached, "embed_documents", ["tide"]) == [document]
    direct = CacheBackedEmbeddings(
        inner,
        shared := InMemoryStore(),
        query_embedding_store=shared,
    )
    assert await call(direct, "embed_documents", ["tide"]) == [document]
    assert await call(direct, "embed_query", "tide") == query


async def test_what_langchain_classic_kept_is_found(call):
    """Keys as its 1.0.8 makes them, vectors as JSON of doubles."""
    store = InMemoryByteStore()
    store.mset([("ns812b86c1-8ebf-5483-95c6-c95cf2b52d12", b"[0.1, 2]")])
    inner = Counting(dim=2)
    cached = made(inner, store, namespace="ns", key_encoder="sha1")
    assert await call(cached, "embed_documents", ["1"]) == [np.float32([0.1, 2]).tolist()]
    assert inner.documents == []


def test_sha1_is_warned_of_once_where_nobody_chose_it(monkeypatch):
    monkeypatch.setattr(cache, "_warned_about_sha1", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made(Counting(), key_encoder="sha1")
        made(Counting(), key_encoder="blake2b")
        assert caught == []
        for _ in range(2):
            CacheBackedEmbeddings.from_bytes_store(Counting(), InMemoryByteStore())
    (warned,) = caught
    assert "SHA-1" in str(warned.message)
    assert warned.filename == __file__


async def test_batches_are_kept_one_by_one(call):
    class FailsAtC(Counting):
        def embed_documents(self, texts):
            if "c" in texts:
                raise TimeoutError("later")
            return super().embed_documents(texts)

    inner = FailsAtC()
    cached = made(inner, batch_size=2)
    with pytest.raises(TimeoutError):
        await call(cached, "embed_documents", ["a", "a", "b", "c"])
    assert len(list(cached.document_embedding_store.yield_keys())) == 2
    assert len(await call(cached, "embed_documents", ["a", "b"])) == 2
    assert inner.documents == [["a", "b"]]


@pytest.mark.parametrize(
    "returned", [[], [[1.0, 2.0]] * 3, [[1.0, float("nan")], [1.0, 2.0]], [[1.0], [1.0, 2.0]], None]
)
async def test_unusable_vectors_are_refused_and_nothing_is_kept(call, returned):
    class Broken(Counting):
        def embed_documents(self, texts):
            return returned

    cached = made(Broken())
    with pytest.raises(EmbeddingError):
        await call(cached, "embed_documents", ["a", "b"])
    assert list(cached.document_embedding_store.yield_keys()) == []


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"\xff", CorruptionError), (b"[1, ", CorruptionError), (b"", CorruptionError)]
    + [(data, EmbeddingError) for data in (b"{}", b"[]", b'["a"]', b"[NaN]", b"[[1]]", b"7")],
)
async def test_a_damaged_value_is_an_error_and_never_a_vector(call, data, error):
    store = InMemoryByteStore()
    cached = made(Counting(), store)
    cached.embed_documents(["a"])
    store.mset([(key, data) for key in store.yield_keys()])
    with pytest.raises(error, match="cached"):
        await call(cached, "embed_documents", ["a"])


async def test_async_awaits_embedder_and_store_and_holds_no_loop(monkeypatch):
    awaited = []

    class Store(InMemoryByteStore):
        async def amget(self, keys):
            awaited.append("get")
            return self.mget(keys)

        async def amset(self, pairs):
            awaited.append("set")
            self.mset(pairs)

    def slow(data):  # stands for the JSON of thousands of vectors
        time.sleep(0.2)
        return json.loads(data)

    monkeypatch.setattr(cache, "_from_json", slow)
    inner = Counting()
    cached = made(inner, Store())
    await cached.aembed_documents(["a"])
    assert (awaited, inner.awaited) == (["get", "set"], 1)
    ticks = 0
    reading = asyncio.ensure_future(cached.aembed_documents(["a"]))
    while not reading.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert len(await reading) == 1
    assert ticks > 2, "the loop was held while values were decoded"


def test_a_cache_speaks_for_the_embedder_under_it():
    inner = Counting()
    cached = made(inner)
    assert cached.underlying_embeddings is inner
    assert identity(cached) == identity(inner)
    assert model_name(cached) == "m"
    assert uncached(cached) is inner


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"key_encoder": "md5"}, "sha1, blake2b, sha256, sha512"),
        ({"key_encoder": 7}, "callable from text to key"),
        ({"key_encoder": str.upper, "namespace": "n"}, "put it into the keys"),
        ({"namespace": None}, "namespace must be a string"),
        ({"batch_size": 0}, "batch_size"),
        ({"query_embedding_cache": {}}, "query_embedding_cache must be a LangChain BaseStore"),
        ({"query_embedding_cache": None}, "query_embedding_cache must be a LangChain BaseStore"),
    ],
)
def test_wrong_arguments_are_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        made(Counting(), **settings)


def test_what_is_no_embedder_or_store_is_refused():
    with pytest.raises(ConfigError, match="Embeddings; got str"):
        made("openai:text-embedding-3-small")
    with pytest.raises(ConfigError, match="document_embedding_cache must be"):
        made(Counting(), {})
    with pytest.raises(ConfigError, match="document_embedding_store must be"):
        CacheBackedEmbeddings(Counting(), {})
    with pytest.raises(ConfigError, match="query_embedding_store must be"):
        CacheBackedEmbeddings(Counting(), InMemoryStore(), query_embedding_store={})


async def test_what_is_no_text_is_refused(call):
    inner = Counting()
    cached = made(inner, query_embedding_cache=True)
    for wrong in ("one string", ["a", 1], iter(["a"])):
        with pytest.raises(UsageError):
            await call(cached, "embed_documents", wrong)
    with pytest.raises(UsageError):
        await call(cached, "embed_query", None)
    assert (inner.documents, inner.queries) == ([], [])


def test_odd_texts_have_keys_of_their_own():
    texts = ["", " ", "\x00", "\ud800", "é", "e\u0301", "x" * 100_000]
    for algorithm in ("sha1", "sha256", "sha512", "blake2b"):
        inner = Counting()
        cached = made(inner, key_encoder=algorithm)
        assert len({tuple(vector) for vector in cached.embed_documents(texts)}) == len(texts)
        cached.embed_documents(texts)
        assert len(inner.documents) == 1


def test_the_hypothetical_embedder_is_where_langchain_classic_had_it():
    from cormorant.langchain import retrievers

    assert HypotheticalDocumentEmbedder is retrievers.HypotheticalDocumentEmbedder
