"""Whose threads does an async call use, and what does a cancelled one leave?"""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from cormorant.errors import EmbeddingError
from cormorant.langchain import Cormorant

FAKE = DeterministicFakeEmbedding(size=6)
POOL = "cormorant-store"


class Refusing(ThreadPoolExecutor):
    """A default executor nobody may use."""

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the default executor was used")


@pytest.fixture
async def closed_default_executor() -> None:
    asyncio.get_running_loop().set_default_executor(Refusing())


class Sync(Embeddings):
    """Has no async method of its own, and remembers the threads it was called in."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.threads.add(threading.current_thread().name)
        return FAKE.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.threads.add(threading.current_thread().name)
        return FAKE.embed_query(text)


class Async(Embeddings):
    """Must be awaited."""

    def __init__(self) -> None:
        self.awaited: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("the sync method was called")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("the sync method was called")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.awaited.append("documents" if len(texts) != 8 else "probes")
        await asyncio.sleep(0)
        return FAKE.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        self.awaited.append("query")
        await asyncio.sleep(0)
        return FAKE.embed_query(text)


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    texts = [f"a fish, number {number}" for number in range(50)]
    with Cormorant.from_texts(texts, FAKE, [{"n": n} for n in range(50)]) as store:
        yield store


async def everything(vs: Cormorant) -> None:
    """Every async method once."""
    vector = FAKE.embed_query("fish")
    (id_,) = await vs.aadd_texts(["one more"])
    await vs.aadd_documents([Document(page_content="another", id="x")])
    await vs.aget_by_ids([id_, "x"])
    for search_type in ("similarity", "similarity_score_threshold", "mmr", "hybrid", "text"):
        await vs.asearch("fish", search_type)
        await vs.asearch_result("fish", search_type)
    await vs.asimilarity_search("fish")
    await vs.asimilarity_search_with_score("fish")
    await vs.asimilarity_search_with_relevance_scores("fish")
    await vs.asimilarity_search_by_vector(vector)
    await vs.asimilarity_search_with_score_by_vector(vector)
    await vs.amax_marginal_relevance_search("fish")
    await vs.amax_marginal_relevance_search_by_vector(vector)
    await vs.as_retriever(search_type="hybrid").ainvoke("fish")
    await vs.adelete(["x"])


@pytest.mark.usefixtures("closed_default_executor")
async def test_no_async_method_uses_the_default_executor(vs: Cormorant) -> None:
    await everything(vs)


@pytest.mark.usefixtures("closed_default_executor")
async def test_a_sync_embedder_runs_in_the_stores_threads() -> None:
    embedding = Sync()
    with Cormorant(embedding) as vs:
        await everything(vs)
    assert embedding.threads
    assert all(name.startswith(POOL) for name in embedding.threads)


@pytest.mark.usefixtures("closed_default_executor")
async def test_an_async_embedder_is_awaited() -> None:
    embedding = Async()
    with Cormorant(embedding) as vs:
        await everything(vs)
    assert embedding.awaited.count("probes") == 1
    assert "documents" in embedding.awaited
    assert "query" in embedding.awaited


@pytest.mark.usefixtures("closed_default_executor")
async def test_an_embedder_with_one_async_method_is_awaited_there() -> None:
    class Half(Sync):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError("the sync method was called")

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            return FAKE.embed_documents(texts)

    embedding = Half()
    with Cormorant(embedding) as vs:
        await everything(vs)
    assert all(name.startswith(POOL) for name in embedding.threads)


@pytest.mark.usefixtures("closed_default_executor")
async def test_200_concurrent_requests_leave_the_default_executor_free(vs: Cormorant) -> None:
    retriever = vs.as_retriever(search_type="hybrid", k=3)
    threads: set[str] = set()

    def note(document: Document) -> bool:
        threads.add(threading.current_thread().name)
        return True

    answers = await asyncio.gather(
        *(retriever.ainvoke(f"number {n % 50}", filter=note) for n in range(200))
    )
    assert all(len(answer) == 3 for answer in answers)
    assert all(name.startswith(POOL) for name in threads)
    assert 1 <= len(threads) <= 4


async def test_the_pool_has_the_size_it_was_given() -> None:
    barrier = threading.Barrier(3, timeout=10)
    with Cormorant.from_texts(["a"], FAKE, pool_size=3) as vs:

        def meet(document: Document) -> bool:
            barrier.wait()  # passes only if three searches run at once
            return True

        await asyncio.gather(*(vs.asimilarity_search("a", filter=meet) for _ in range(3)))


async def test_context_variables_reach_the_threads(vs: Cormorant) -> None:
    tenant: contextvars.ContextVar[int] = contextvars.ContextVar("tenant")

    async def ask(number: int) -> list[Document]:
        tenant.set(number)
        return await vs.asimilarity_search(
            "fish", k=1, filter=lambda document: document.metadata["n"] == tenant.get()
        )

    answers = await asyncio.gather(*(ask(number) for number in range(20)))
    assert [doc.metadata["n"] for (doc,) in answers] == list(range(20))


async def test_the_loop_goes_on_while_a_search_runs(vs: Cormorant) -> None:
    """The search cannot end before the loop has turned."""
    turned = threading.Event()

    def wait(document: Document) -> bool:
        assert turned.wait(10), "the event loop was held"
        return True

    asyncio.get_running_loop().call_later(0.01, turned.set)
    for search_type in ("similarity", "mmr", "hybrid", "text"):
        await vs.asearch("fish", search_type, filter=wait)


async def test_the_loop_goes_on_while_documents_are_prepared() -> None:
    turned = threading.Event()

    def slow_texts() -> Iterator[str]:
        assert turned.wait(10), "the event loop was held"
        yield "a"

    asyncio.get_running_loop().call_later(0.01, turned.set)
    with Cormorant(FAKE) as vs:
        await vs.aadd_texts(slow_texts())


async def test_stop_iteration_in_a_filter_is_an_error_and_no_hang(vs: Cormorant) -> None:
    def stop(document: Document) -> bool:
        raise StopIteration

    with pytest.raises(Exception, match=r"StopIteration|filter"):
        await asyncio.wait_for(vs.asimilarity_search("fish", filter=stop), 10)


# Cancellation


async def test_a_cancelled_search_leaves_the_store_usable(vs: Cormorant) -> None:
    started, release = threading.Event(), threading.Event()

    def block(document: Document) -> bool:
        started.set()
        return release.wait(10)

    task = asyncio.create_task(vs.asimilarity_search("fish", filter=block))
    assert await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert len(await vs.asimilarity_search("fish")) == 4


async def test_an_add_cancelled_while_embedding_stores_nothing() -> None:
    reached = asyncio.Event()

    class Hanging(Async):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            if len(texts) != 8:
                reached.set()
                await asyncio.Event().wait()
            return FAKE.embed_documents(texts)

    with Cormorant(Hanging()) as vs:
        task = asyncio.create_task(vs.aadd_texts(["a", "b"]))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert vs.store.count() == 0


@pytest.mark.parametrize("turns", range(0, 12, 2))
async def test_a_cancelled_add_is_stored_whole_or_not_at_all(turns: int) -> None:
    with Cormorant(FAKE, pool_size=1) as vs:
        await vs.aadd_texts(["first"])
        task = asyncio.create_task(vs.aadd_texts([f"text {n}" for n in range(200)]))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        vs.store.executor.submit(int).result()  # what had begun has ended
        assert vs.store.count() in {1, 201}
        assert len(await vs.asimilarity_search("text")) in {1, 4}


# Probing


async def test_many_cold_requests_probe_once() -> None:
    first = Async()
    with Cormorant(first) as vs:
        await vs.aadd_texts(["a"])
        second = Async()
        other = Cormorant(second, store=vs.store)
        await asyncio.gather(*(other.asimilarity_search("a") for _ in range(50)))
        assert second.awaited.count("probes") == 1


async def test_a_cancelled_probing_is_taken_over_by_another() -> None:
    reached = asyncio.Event()

    class Slow(Async):
        hang = True

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.hang:
                self.hang = False
                reached.set()
                await asyncio.Event().wait()
            return await super().aembed_documents(texts)

    embedding = Slow()
    with Cormorant(embedding) as vs:
        first = asyncio.create_task(vs.aadd_texts(["a"]))
        await reached.wait()
        second = asyncio.create_task(vs.aadd_texts(["b"]))
        await asyncio.sleep(0.01)
        first.cancel()
        assert len(await asyncio.wait_for(second, 10)) == 1
        assert first.cancelled()


async def test_a_failed_probing_is_tried_again() -> None:
    class Flaky(Async):
        fails = 1

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.fails:
                self.fails -= 1
                raise TimeoutError("slow")
            return await super().aembed_documents(texts)

    with Cormorant(Flaky()) as vs:
        with pytest.raises(EmbeddingError):
            await vs.aadd_texts(["a"])
        assert vs.store.count() == 0
        assert len(await vs.aadd_texts(["a"])) == 1


async def test_a_blocking_call_on_the_loop_does_not_wait_for_an_awaited_probing() -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    class Both(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return FAKE.embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            return FAKE.embed_query(text)

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            reached.set()
            await go.wait()
            return FAKE.embed_documents(texts)

    with Cormorant(Both()) as vs:
        task = asyncio.create_task(vs.aadd_texts(["a"]))
        await reached.wait()
        vs.add_texts(["b"])  # would hang for ever if it waited
        go.set()
        await task
        assert vs.store.count() == 2
