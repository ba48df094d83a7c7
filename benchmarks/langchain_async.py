"""How long does an async call hold the event loop, and what does LangChain's layer cost?

Two figures for each kind of call on a store of 20,000 documents. *Held*: the most CPU time
one callback took on the loop's own thread, which no load of the machine can lengthen. *Late*:
how late a heartbeat of 1 ms came at worst, on the wall clock; compare it with the idle line,
since whatever else the machine does is in it. InMemoryVectorStore is measured alike.

Run: ``python benchmarks/langchain_async.py [DOCUMENTS]``
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from asyncio import events
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from cormorant import Query
from cormorant.langchain import Cormorant

DIM = 384
DOCUMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000


class Given(Embeddings):
    """Hands out arrays made beforehand: lists of floats would keep the garbage collector busy."""

    def __init__(self, texts: list[str]) -> None:
        vectors = np.random.default_rng(1).normal(size=(len(texts), DIM)).astype(np.float32)
        self.vectors = dict(zip(texts, vectors, strict=True))
        self.spare = np.random.default_rng(2).normal(size=(64, DIM)).astype(np.float32)

    def embed_query(self, text: str) -> Any:
        found = self.vectors.get(text)
        return self.spare[len(text) % 64] if found is None else found

    def embed_documents(self, texts: list[str]) -> list[Any]:
        return [self.embed_query(text) for text in texts]

    async def aembed_query(self, text: str) -> Any:
        await asyncio.sleep(0)
        return self.embed_query(text)

    async def aembed_documents(self, texts: list[str]) -> list[Any]:
        made = []
        for text in texts:
            await asyncio.sleep(0)
            made.append(self.embed_query(text))
        return made


class Loop:
    """Watches the running event loop."""

    held_s = 0.0

    def __init__(self) -> None:
        run = events.Handle._run  # noqa: SLF001 - there is no public place to look

        def watched(handle: Any) -> None:
            before = time.thread_time()
            run(handle)
            self.held_s = max(self.held_s, time.thread_time() - before)

        events.Handle._run = watched  # noqa: SLF001 - the same

    async def measure(self, what: str, work: Callable[[], Awaitable[Any]]) -> None:
        late: list[float] = [0.0]
        going = True

        async def beat() -> None:
            while going:
                before = time.perf_counter()
                await asyncio.sleep(0.001)
                late.append(time.perf_counter() - before - 0.001)

        heart = asyncio.create_task(beat())
        await asyncio.sleep(0.01)
        self.held_s = 0.0
        await asyncio.create_task(_awaiting(work))  # its own callbacks, not this one
        held_s = self.held_s
        going = False
        await heart
        print(f"{what:42} held {held_s * 1e3:8.2f} ms   late {max(late) * 1e3:8.1f} ms")


async def _awaiting(work: Callable[[], Awaitable[Any]]) -> None:
    await work()


async def loop_figures(texts: list[str], metadatas: list[dict[str, Any]]) -> None:
    loop = Loop()
    embedding = Given(texts)
    await loop.measure("idle for 2 s", lambda: asyncio.sleep(2))
    with Cormorant(embedding) as vs:
        await loop.measure(f"aadd_texts, {len(texts):,}", lambda: vs.aadd_texts(texts, metadatas))
        for search_type in ("similarity", "mmr", "hybrid", "text"):

            async def some(kind: str = search_type) -> None:
                for number in range(50):
                    await vs.asearch(f"word{number} word{number + 1}", kind)

            await loop.measure(f"50 × asearch, {search_type}", some)
        retriever = vs.as_retriever(search_type="hybrid", k=5)
        await loop.measure(
            "200 concurrent ainvoke, hybrid",
            lambda: asyncio.gather(
                *(retriever.ainvoke(f"word{n} word{n + 7}") for n in range(200))
            ),
        )
        await loop.measure(
            "asimilarity_search, callable filter",
            lambda: vs.asimilarity_search("word1", filter=lambda d: d.metadata["n"] % 3 == 0),
        )
        await loop.measure(
            f"adelete, {len(texts) // 2:,}", lambda: vs.adelete(filter={"half": True})
        )
    theirs = InMemoryVectorStore(embedding)
    await theirs.aadd_texts(texts, metadatas)
    await loop.measure(
        "InMemoryVectorStore.asimilarity_search", lambda: theirs.asimilarity_search("word1")
    )


def layer_figures(texts: list[str], metadatas: list[dict[str, Any]]) -> None:
    embedding = Given(texts)
    with Cormorant.from_texts(texts, embedding, metadatas) as vs:
        for search_type, mode in (("similarity", "vector"), ("hybrid", "hybrid"), ("text", "text")):
            with_layer, engine = [], []
            for number in range(100):
                question = f"word{number} word{number + 1}"
                vector = None if mode == "text" else embedding.embed_query(question)
                query = Query(text=question, vector=vector, mode=mode, top_k=4)  # type: ignore[arg-type]
                start = time.thread_time()
                vs.search(question, search_type)
                middle = time.thread_time()
                vs.store.search(query)
                with_layer.append(middle - start)
                engine.append(time.thread_time() - middle)
            print(
                f"{search_type:12} CPU {statistics.median(with_layer) * 1e3:6.2f} ms "
                f"through LangChain, {statistics.median(engine) * 1e3:6.2f} ms the engine alone"
            )


def main() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(5000)])
    texts = [
        f"{number} {' '.join(row)}"
        for number, row in enumerate(rng.choice(words, size=(DOCUMENTS, 40)))
    ]
    metadatas = [{"n": number, "half": number % 2 == 1} for number in range(DOCUMENTS)]
    layer_figures(texts, metadatas)
    asyncio.run(loop_figures(texts, metadatas))


if __name__ == "__main__":
    main()
