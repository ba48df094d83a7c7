"""No async call of the toolkit holds the event loop, whatever below it only knows how to block.

Every part that may be slow (model, child, client, formula, the store itself) sleeps or computes,
and counts how often the loop came round meanwhile. Nothing here asserts a time: a part that ran
on the loop's own thread saw it stand still, however fast the machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Lengths, found
from retrieverlab import Fixed, doc
from toolkitlab import ALL, COMPRESSORS, NOTES, QUESTION, Letters, Parts, Service, make, public

from cormorant.langchain.retrievers import (
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    merger_retriever,
)
from cormorant.langchain.retrievers.asking import chatter, several_questions
from cormorant.langchain.retrievers.document_compressors.vectors import cosines
from cormorant.langchain.retrievers.fusing import base as fusing
from cormorant.langchain.retrievers.rescoring.moments import utc_now
from cormorant.store.core import Core

TRIES = 3  # the best counts: a busy machine may keep any thread waiting


def sleeps() -> None:
    time.sleep(0.02)


def computes() -> None:
    """Without the interpreter lock, as numpy and models do."""
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 40_000)


class Watch:
    """Slow work, and what the event loop did meanwhile."""

    def __init__(self, work: Any) -> None:
        self.work = work
        self.rounds = 0
        self.loop: int | None = None
        self.seen: list[tuple[str, int, bool]] = []  # who, rounds meanwhile, on the loop's thread

    def slowly(self, who: str) -> None:
        if self.loop is None:
            return
        before, on_loop = self.rounds, threading.get_ident() == self.loop
        self.work()
        self.seen.append((who, self.rounds - before, on_loop))

    async def over(self, call: Any) -> None:
        """Run one async call, with the loop's rounds counted."""

        async def turn() -> None:
            while True:
                self.rounds += 1
                await asyncio.sleep(0.001)

        self.loop = threading.get_ident()
        self.seen.clear()
        turning = asyncio.create_task(turn())
        try:
            await call()
        finally:
            turning.cancel()
            self.loop = None


class SlowLetters(Letters):
    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.watch.slowly("embeddings")
        return [Letters.embed_query(self, text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.watch.slowly("embeddings")
        return super().embed_query(text)


class SlowLengths(Lengths):
    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.watch.slowly("cross-encoder")
        return super().score(text_pairs)


class SlowService(Service):
    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def rerank(self, **request: Any) -> Any:
        self.watch.slowly("client")
        return super().rerank(**request)


class SlowModel(FakeListChatModel):
    watch: Any

    def _call(self, *args: Any, **kwargs: Any) -> str:
        self.watch.slowly("model")
        return super()._call(*args, **kwargs)


def parts(watch: Watch) -> Parts:
    def child(retriever: Any) -> Any:
        def ask(query: str, **kwargs: Any) -> Any:
            watch.slowly("child")
            return retriever.invoke(query, **kwargs)

        return RunnableLambda(ask)

    return Parts(
        embeddings=SlowLetters(watch),
        cross_encoder=SlowLengths(watch),
        client=SlowService(watch),
        llm=lambda reply: SlowModel(responses=[reply], watch=watch),
        child=child,
    )


def functions(watch: Watch) -> dict[str, dict[str, Any]]:
    """What users' own functions may do, too."""

    def boost(query: str, document: Any) -> float:
        watch.slowly("boost")
        return 1.0

    def likeness(rows: Any, columns: Any) -> Any:
        watch.slowly("likeness")
        return cosines(rows, columns)

    def length(text: str) -> int:
        watch.slowly("length")
        return len(text)

    def clock() -> Any:
        watch.slowly("clock")
        return utc_now()

    return {
        "BoostRetriever": {"boosts": [boost]},
        "EmbeddingsFilter": {"similarity_fn": likeness},
        "EmbeddingsRedundantFilter": {"similarity_fn": likeness},
        "FreshnessRetriever": {"clock": clock},
        "TokenBudgetPacker": {"length_function": length},
    }


@pytest.fixture
def slow_store(monkeypatch: pytest.MonkeyPatch):
    """Every read and write of a store takes its time while it is watched."""
    watches: list[Watch] = []
    read, write = Core._read, Core._write

    def slow_read(self: Core, *args: Any) -> Any:
        watches[0].slowly("store: read")
        return read(self, *args)

    def slow_write(self: Core, *args: Any) -> Any:
        watches[0].slowly("store: write")
        return write(self, *args)

    monkeypatch.setattr(Core, "_read", slow_read)
    monkeypatch.setattr(Core, "_write", slow_write)
    return watches


WITHOUT_PARTS = {"LongContextReorder", "SentenceSplitter"}
NAMES = [name for name in ALL if name not in WITHOUT_PARTS]


@pytest.mark.parametrize("work", [sleeps, computes])
@pytest.mark.parametrize("name", NAMES)
async def test_the_loop_goes_round_while_a_part_works(name, work, slow_store):
    watch = Watch(work)
    slow_store.append(watch)
    given = parts(watch)
    made = make(name, given, **functions(watch).get(name, {}))

    async def ask() -> None:
        if name in COMPRESSORS:
            await made.ainvoke({"query": QUESTION, "documents": found("a fish", "fish", "boats")})
        elif isinstance(made, Runnable):
            await made.ainvoke(QUESTION)
        else:
            await made.aembed_query(QUESTION)

    seen: list[tuple[str, int, bool]] = []
    for _ in range(TRIES):
        await watch.over(ask)
        seen = list(watch.seen)
        if all(rounds >= 2 for _, rounds, _ in seen):
            break
    given.close()
    assert seen, "no part was asked: the test tells nothing"
    held = [who for who, _, on_loop in seen if on_loop]
    assert not held, f"{name} asks these on the event loop's own thread: {held}"
    assert all(rounds >= 2 for _, rounds, _ in seen), seen


ADDING = [name for name in ALL if hasattr(public()[name], "aadd_documents")]


@pytest.mark.parametrize("name", ADDING)
async def test_nor_does_adding_hold_it(name, slow_store):
    watch = Watch(sleeps)
    slow_store.append(watch)
    given = parts(watch)
    made = make(name, given)
    for _ in range(TRIES):
        await watch.over(lambda: made.aadd_documents(NOTES))
        if all(rounds >= 2 for _, rounds, _ in watch.seen):
            break
    given.close()
    assert {"embeddings", "store: write"} <= {who for who, _, _ in watch.seen}
    assert not [who for who, _, on_loop in watch.seen if on_loop]
    assert all(rounds >= 2 for _, rounds, _ in watch.seen), watch.seen


async def test_a_part_on_the_loop_would_be_seen():
    watch = Watch(sleeps)

    async def ask() -> None:
        watch.slowly("here")
        await asyncio.sleep(0)

    await watch.over(ask)
    assert watch.seen == [("here", 0, True)]


LONG = [
    (fusing, "fused", EnsembleRetriever),
    (merger_retriever, "zip_longest", MergerRetriever),
    (several_questions, "fused", MultiQueryRetriever),
]


@pytest.mark.parametrize(("module", "function", "kind"), LONG)
async def test_long_lists_become_one_beside_the_loop(module, function, kind, monkeypatch):
    """Two lists of a thousand take longer than a loop may stand still."""
    threads: list[int] = []
    real = getattr(module, function)

    def noted(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.get_ident())
        return real(*args, **kwargs)

    monkeypatch.setattr(module, function, noted)
    docs = [doc(f"text {number}", str(number)) for number in range(20)]
    legs = [Fixed(docs=docs), Fixed(docs=docs[::-1])]
    if kind is MultiQueryRetriever:
        made = kind.from_llm(legs[0], FakeListChatModel(responses=["which boats?"]))
    else:
        made = kind(retrievers=legs)
    assert len(await made.ainvoke(QUESTION)) == 20
    assert threads
    assert threading.get_ident() not in threads


LONG_LISTS = [
    *("BoostRetriever", "ContextualCompressionRetriever", "EnsembleRetriever"),
    *("FreshnessRetriever", "HybridRetriever", "MergerRetriever", "MultiQueryRetriever"),
    *("RePhraseQueryRetriever", "ScopedRetriever", *COMPRESSORS),
]


@pytest.mark.parametrize("name", LONG_LISTS)
async def test_long_lists_are_checked_and_copied_beside_the_loop(name, monkeypatch):
    """A thousand documents take tens of milliseconds to copy, at each stage they go through."""
    threads: list[int] = []
    real = Document.model_copy

    def noted(self: Document, **kwargs: Any) -> Document:
        threads.append(threading.get_ident())
        return real(self, **kwargs)

    docs = [doc(f"fish and boats {number}", str(number), year=2020) for number in range(200)]
    given = Parts(child=lambda _: Fixed(docs=docs))
    wide = {"BoostRetriever": 200, "FreshnessRetriever": 200, "HybridRetriever": 200}
    many: dict[str, Any] = {"scope": {}} if name == "ScopedRetriever" else {}
    if name in wide:
        many = {"top_k" if name == "HybridRetriever" else "k": 200}
        many |= {} if name == "HybridRetriever" else {"fetch_k": 200}
    made = make(name, given, with_scores=True, **many)
    monkeypatch.setattr(Document, "model_copy", noted)
    if name in COMPRESSORS:
        await made.ainvoke({"query": QUESTION, "documents": docs})
    else:
        await made.ainvoke(QUESTION)
        await made.aretrieve(QUESTION)
        await made.with_fallbacks([given.words()]).ainvoke(QUESTION)
    given.close()
    assert len(threads) >= 200
    on_loop = threads.count(threading.get_ident())
    # What a stage kept of them may be few enough to be handed on at once.
    assert on_loop <= 50, f"{name} copied {on_loop} of {len(threads)} on the event loop's thread"


@pytest.mark.parametrize(
    "name", ["DecompositionRetriever", "HyDERetriever", "RePhraseQueryRetriever"]
)
async def test_long_replies_are_read_beside_the_loop(name, monkeypatch):
    threads: list[int] = []
    real = chatter._plain

    def noted(text: str) -> str:
        threads.append(threading.get_ident())
        return real(text)

    monkeypatch.setattr(chatter, "_plain", noted)
    given = Parts()
    reply = "\n".join(f"{number}. what do fish number {number} eat?" for number in range(1, 1000))
    kind = public()[name]
    over = given.store() if name == "HyDERetriever" else given.words()
    llm = FakeListChatModel(responses=[reply])
    made = kind.from_llm(llm, over) if name == "HyDERetriever" else kind.from_llm(over, llm)
    await made.ainvoke(QUESTION)
    given.close()
    assert threads
    assert threading.get_ident() not in threads
