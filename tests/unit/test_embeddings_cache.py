"""The cache: each distinct text once per model and side, whatever happens around it."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from cormorant.errors import (
    ConfigError,
    CorruptionError,
    EmbeddingError,
    FormatError,
    StoreClosed,
    StoreError,
    UsageError,
)
from cormorant.langchain.embeddings import CachedEmbeddings, PrefixEmbeddings, identity


class Counting(Embeddings):
    """Remembers what it was asked; the two sides of a text differ."""

    def __init__(self, model="m", dim=3, sign=1.0):
        self.model, self.dim, self.sign = model, dim, sign
        self.documents, self.queries, self.awaited = [], [], 0

    def _vector(self, text, side):
        seed = abs(hash((text, side, self.model))) % 2**32
        return (self.sign * np.random.default_rng(seed).normal(size=self.dim)).tolist()

    def embed_documents(self, texts):
        self.documents.append(list(texts))
        return [self._vector(text, "document") for text in texts]

    def embed_query(self, text):
        self.queries.append(text)
        return self._vector(text, "query")

    async def aembed_documents(self, texts):
        self.awaited += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        self.awaited += 1
        return self.embed_query(text)


@pytest.fixture
def inner():
    return Counting()


def test_each_distinct_text_is_embedded_once(inner):
    with CachedEmbeddings(inner) as cached:
        first = cached.embed_documents(["a", "b", "a"])
        second = cached.embed_documents(["b", "c", "a", "c"])
        assert inner.documents == [["a", "b"], ["c"]]
        assert first[0] == first[2] == second[2]
        assert first[1] == second[0]
        assert (cached.hits, cached.misses) == (2, 3)


def test_a_miss_and_a_hit_are_equal_and_right(inner):
    with CachedEmbeddings(inner) as cached:
        miss, hit = cached.embed_documents(["潮"]), cached.embed_documents(["潮"])
        assert miss == hit
        assert np.array_equal(np.float32(miss[0]), np.float32(inner._vector("潮", "document")))
        miss[0][0] = 99.0
        assert cached.embed_documents(["潮"]) == hit


def test_query_and_document_sides_are_kept_apart(inner):
    with CachedEmbeddings(inner) as cached:
        document, query = cached.embed_documents(["tide"])[0], cached.embed_query("tide")
        assert document != query
        assert (inner.documents, inner.queries) == ([["tide"]], ["tide"])
        assert cached.embed_query("tide") == query
        assert cached.embed_documents(["tide"])[0] == document
        assert (inner.documents, inner.queries) == ([["tide"]], ["tide"])


async def test_async_awaits_the_inner_embedders_own_methods(inner):
    with CachedEmbeddings(inner) as cached:
        documents = await cached.aembed_documents(["a", "a", "b"])
        query = await cached.aembed_query("a")
        assert inner.awaited == 2
        assert documents == cached.embed_documents(["a", "a", "b"])
        assert query == await cached.aembed_query("a") == cached.embed_query("a")
        assert await cached.aembed_documents([]) == []
        assert (inner.awaited, inner.documents, inner.queries) == (2, [["a", "b"]], ["a"])


async def test_async_touches_the_file_in_a_thread_of_its_own(inner, monkeypatch):
    with CachedEmbeddings(inner) as cached:
        names = []
        get, put = cached._file.get, cached._file.put
        monkeypatch.setattr(
            cached._file, "get", lambda *a: names.append(threading.current_thread().name) or get(*a)
        )
        monkeypatch.setattr(
            cached._file, "put", lambda *a: names.append(threading.current_thread().name) or put(*a)
        )
        await cached.aembed_documents(["a"])
        await cached.aembed_query("a")
    assert len(names) == 4
    assert all(name.startswith("cormorant-embedding-cache") for name in names)


def test_it_survives_a_restart(inner, tmp_path):
    path = tmp_path / "deep" / "vectors.sqlite"
    with CachedEmbeddings(inner, path) as cached:
        kept = cached.embed_documents(["a", "b"]), cached.embed_query("a")
    again = Counting()
    with CachedEmbeddings(again, str(path)) as cached:
        assert (cached.embed_documents(["a", "b"]), cached.embed_query("a")) == kept
    assert (again.documents, again.queries) == ([], [])


@pytest.mark.parametrize(
    "other",
    [
        Counting("n"),
        PrefixEmbeddings(Counting("m"), "q: ", "d: "),
        PrefixEmbeddings(Counting("m"), "q: ", "e: "),
        type("Other", (Counting,), {})("m"),
    ],
    ids=["model", "prefix", "other prefix", "class"],
)
def test_two_models_never_share_vectors(other, tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(Counting("m"), path) as one, CachedEmbeddings(other, path) as two:
        one.embed_documents(["a"])
        assert two.embed_documents(["a"]) == np.float32(other.embed_documents(["a"])).tolist()
        assert two.misses == 1


def test_a_given_name_is_added_to_the_embedders_own(tmp_path):
    path = tmp_path / "vectors.sqlite"
    with (
        CachedEmbeddings(Counting("m"), path, model="x") as one,
        CachedEmbeddings(Counting("n"), path, model="x") as two,
        CachedEmbeddings(Counting("m"), path) as three,
    ):
        for cached in (one, two, three):
            cached.embed_documents(["a"])
            assert cached.misses == 1
        assert one.model_name == two.model_name == "x"


def test_the_same_name_with_another_size_is_refused(tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(Counting(dim=3), path) as cached:
        cached.embed_documents(["a"])
    with CachedEmbeddings(Counting(dim=4), path) as cached:
        with pytest.raises(EmbeddingError, match=r"4 numbers.*have 3"):
            cached.embed_documents(["b"])
        with pytest.raises(EmbeddingError, match=r"4 numbers.*have 3"):
            cached.embed_query("b")
        assert cached._file.get(cached._key, "document", ["b"]) == {}


def test_an_embedder_without_a_name_is_refused_not_guessed():
    nameless = DeterministicFakeEmbedding(size=3)
    for model in (None, "", "  ", 7):
        with pytest.raises(ConfigError, match="model="):
            CachedEmbeddings(nameless, model=model)
    with CachedEmbeddings(nameless, model="fake-3") as cached:
        assert len(cached.embed_query("a")) == 3


class Broken(Counting):
    def __init__(self, returned):
        super().__init__()
        self.returned = returned

    def embed_documents(self, texts):
        super().embed_documents(texts)
        return self.returned

    def embed_query(self, text):
        super().embed_query(text)
        return self.returned[0] if self.returned else None


@pytest.mark.parametrize(
    "returned",
    [
        [],
        [[1.0, 2.0]],
        [[1.0, 2.0]] * 3,
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, 2.0], [1.0, float("inf")]],
        [[1.0, 1e39], [1.0, 2.0]],
        [[1.0], [1.0, 2.0]],
        [[], []],
        [1.0, 2.0],
        ["a", "b"],
        [None, [1.0]],
        None,
    ],
)
async def test_unusable_vectors_are_refused_and_nothing_is_cached(returned):
    broken = Broken(returned)
    with CachedEmbeddings(broken) as cached:
        with pytest.raises(EmbeddingError) as raised:
            cached.embed_documents(["a", "b"])
        assert raised.value.model == identity(broken)
        with pytest.raises(EmbeddingError):
            await cached.aembed_documents(["a", "b"])
        assert cached._file.get(cached._key, "document", ["a", "b"]) == {}


async def test_an_unusable_query_vector_is_refused_and_not_cached():
    with CachedEmbeddings(Broken([[float("nan")]])) as cached:
        with pytest.raises(EmbeddingError, match="finite"):
            cached.embed_query("a")
        with pytest.raises(EmbeddingError, match="finite"):
            await cached.aembed_query("a")
        assert cached._file.get(cached._key, "query", ["a"]) == {}


def test_batches_are_kept_one_by_one():
    class FailsAtC(Counting):
        def embed_documents(self, texts):
            if "c" in texts:
                raise TimeoutError("later")
            return super().embed_documents(texts)

    inner = FailsAtC()
    with CachedEmbeddings(inner, batch_size=2) as cached:
        with pytest.raises(TimeoutError):
            cached.embed_documents(["a", "b", "c"])
        assert set(cached._file.get(cached._key, "document", ["a", "b", "c"])) == {"a", "b"}
        assert inner.documents == [["a", "b"]]


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, True])
def test_a_batch_size_below_one_is_refused(inner, batch_size):
    with pytest.raises(ConfigError, match="batch_size"):
        CachedEmbeddings(inner, batch_size=batch_size)


def test_what_is_no_embedder_is_refused():
    with pytest.raises(ConfigError, match="Embeddings; got str"):
        CachedEmbeddings("openai:text-embedding-3-small")


async def test_what_is_no_text_is_refused(inner):
    with CachedEmbeddings(inner) as cached:
        for wrong in ("one string", ["a", 1], iter(["a"])):
            with pytest.raises(UsageError):
                cached.embed_documents(wrong)
            with pytest.raises(UsageError):
                await cached.aembed_documents(wrong)
        with pytest.raises(UsageError):
            cached.embed_query(None)
        with pytest.raises(UsageError):
            await cached.aembed_query(None)
    assert (inner.documents, inner.queries) == ([], [])


def test_more_texts_than_one_statement_takes(inner):
    texts = [f"t{i}" for i in range(1203)]
    with CachedEmbeddings(inner) as cached:
        first = cached.embed_documents(texts)
        assert cached.embed_documents(texts[::-1]) == first[::-1]
        assert len(inner.documents) == 1


def test_odd_texts_have_keys_of_their_own(inner):
    texts = ["", " ", "\x00", "\ud800", "é", "e\u0301", "x" * 100_000]
    with CachedEmbeddings(inner) as cached:
        assert len({tuple(vector) for vector in cached.embed_documents(texts)}) == len(texts)
        cached.embed_documents(texts)
        assert len(inner.documents) == 1


def test_clear_forgets_this_embedder_alone(tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(Counting("m"), path) as one, CachedEmbeddings(Counting("n"), path) as two:
        one.embed_documents(["a", "b"])
        one.embed_query("a")
        two.embed_documents(["a"])
        assert one.clear() == 3
        one.embed_documents(["a"])
        two.embed_documents(["a"])
        assert (one.misses, two.misses) == (4, 1)


def test_after_close_it_says_so(inner):
    cached = CachedEmbeddings(inner)
    cached.close()
    cached.close()
    with pytest.raises(StoreClosed):
        cached.embed_documents(["a"])


def test_texts_are_not_in_the_file_and_nothing_is_pickled(inner, tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(inner, path) as cached:
        cached.embed_documents(["a very private sentence"])
        blob = sqlite3.connect(path)
        try:
            ((stored,),) = blob.execute("SELECT vector FROM vectors").fetchall()
        finally:
            blob.close()
        expected = np.asarray(inner._vector("a very private sentence", "document"), dtype="<f4")
        assert stored == expected.tobytes()
    for file in tmp_path.iterdir():
        assert b"private" not in file.read_bytes()


def test_a_foreign_file_is_refused_and_not_changed(inner, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be looked at " * 50)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(FormatError, match="no embedding cache"):
            CachedEmbeddings(inner, path)
        assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes.txt", "other.sqlite"]


def test_a_newer_format_is_refused(inner, tmp_path):
    path = tmp_path / "vectors.sqlite"
    CachedEmbeddings(inner, path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(FormatError, match="format 2; this release reads 1"):
        CachedEmbeddings(inner, path)


def test_a_damaged_vector_is_reported(inner, tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(inner, path) as cached:
        cached.embed_documents(["a"])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE vectors SET vector = x'00'")
    connection.commit()
    connection.close()
    with CachedEmbeddings(inner, path) as cached:
        with pytest.raises(CorruptionError, match="1 bytes, not 12") as raised:
            cached.embed_documents(["a"])
        assert raised.value.path == str(path)


def test_a_folder_in_its_place_is_an_error_of_ours(inner, tmp_path):
    with pytest.raises(StoreError, match="cannot be used"):
        CachedEmbeddings(inner, tmp_path)


def test_many_threads(tmp_path):
    path = tmp_path / "vectors.sqlite"
    inner = Counting()
    with CachedEmbeddings(inner, path) as cached:
        texts = [f"t{i}" for i in range(40)]

        def work(seed):
            chosen = np.random.default_rng(seed).permutation(texts).tolist()
            return dict(zip(chosen, cached.embed_documents(chosen), strict=True))

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(work, range(24)))
        assert all(answer == answers[0] for answer in answers)
        assert cached.hits + cached.misses == 24 * len(texts)


def test_many_openers_of_one_new_file(tmp_path):
    for round_ in range(12):
        start = threading.Barrier(8)

        def work(path=tmp_path / f"{round_}.sqlite", start=start):
            start.wait()
            with CachedEmbeddings(Counting(), path) as cached:
                return len(cached.embed_documents(["a"]))

        with ThreadPoolExecutor(8) as pool:
            assert [done.result() for done in [pool.submit(work) for _ in range(8)]] == [1] * 8


def _fill(path, offset, queue):
    inner = Counting()
    inner._vector = lambda text, side: [float(int(text[1:])), 1.0, 2.0]
    with CachedEmbeddings(inner, path) as cached:
        for at in range(offset, offset + 40):
            assert cached.embed_documents([f"t{at}"]) == [[float(at), 1.0, 2.0]]
    queue.put(offset)


def test_many_processes_at_one_new_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    path = tmp_path / "vectors.sqlite"
    workers = [context.Process(target=_fill, args=(path, 10 * n, queue)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    inner = Counting()
    with CachedEmbeddings(inner, path) as cached:
        assert len(cached._file.get(cached._key, "document", [f"t{i}" for i in range(60)])) == 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_the_file_anew(inner, tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(inner, path) as cached:
        cached.embed_documents(["a"])
        pid = os.fork()
        if pid == 0:
            failed = True
            try:
                known = cached.embed_documents(["a", "b"])
                failed = known[0] != cached.embed_documents(["a"])[0] or len(inner.documents) != 2
            finally:
                os._exit(int(failed))
        assert os.waitpid(pid, 0)[1] == 0
        cached.embed_documents(["a", "b"])
        assert len(inner.documents) == 1, "the child's vector was not found"


def test_a_full_disk_is_an_error_of_ours(inner, tmp_path):
    path = tmp_path / "vectors.sqlite"
    with CachedEmbeddings(inner, path) as cached:
        cached.embed_documents(["a"])
        pages = cached._file._connection.execute("PRAGMA page_count").fetchone()[0]
        cached._file._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            cached.embed_documents([f"t{i}" for i in range(2000)])
        assert cached._file.get(cached._key, "document", ["t0", "t1999"]) == {}
        assert cached.embed_documents(["a"])
