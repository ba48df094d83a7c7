"""Within a deadline nothing that may get stuck runs in a thread that the program waits for.

Python cannot stop a thread. Those of pools, asyncio's among them, are few, shared, and waited for
at the program's end: one stuck call keeps its thread, some stuck calls starve everybody else, and
the program never ends. So every part notes which kind of thread it was asked in.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.stores import BaseStore, InMemoryStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Lengths, found
from retrieverlab import doc
from toolkitlab import ALL, COMPRESSORS, NOTES, QUESTION, Letters, Parts, Service, make

from cormorant.errors import DeadlineExceeded
from cormorant.langchain import Cormorant
from cormorant.langchain.replay import replaying
from cormorant.langchain.retrievers import MultiVectorRetriever, RePhraseQueryRetriever
from cormorant.langchain.retrievers import with_deadline as limited
from cormorant.langchain.retrievers.document_compressors import LLMListwiseRerank

LONG_S = 60.0


class Notes:
    """Who was asked in which kind of thread, while it is open."""

    def __init__(self) -> None:
        self.open = False
        self.seen: list[tuple[str, bool]] = []

    def note(self, who: str) -> None:
        if self.open:
            self.seen.append((who, threading.current_thread().daemon))


class NotedLetters(Letters):
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.notes.note("embeddings")
        return [Letters.embed_query(self, text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.notes.note("embeddings")
        return super().embed_query(text)


class NotedLengths(Lengths):
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.notes.note("cross-encoder")
        return super().score(text_pairs)


class NotedService(Service):
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def rerank(self, **request: Any) -> Any:
        self.notes.note("client")
        return super().rerank(**request)


class NotedModel(BaseChatModel):
    """A model with no async method of its own, as many a local one."""

    notes: Any
    reply: str

    @property
    def _llm_type(self) -> str:
        return "noted"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        self.notes.note("model")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply))])


def parts(notes: Notes) -> Parts:
    def child(retriever: Any) -> Any:
        def ask(query: str, **kwargs: Any) -> Any:
            notes.note("child")
            return retriever.invoke(query, **kwargs)

        return RunnableLambda(ask)

    return Parts(
        embeddings=NotedLetters(notes),
        cross_encoder=NotedLengths(notes),
        client=NotedService(notes),
        llm=lambda reply: NotedModel(notes=notes, reply=reply),
        child=child,
    )


def functions(notes: Notes) -> dict[str, dict[str, Any]]:
    """What users' own functions may do, too."""

    def boost(query: str, document: Any) -> float:
        notes.note("boost")
        return 1.0

    def length(text: str) -> int:
        notes.note("length")
        return len(text)

    return {
        "BoostRetriever": {"boosts": [boost]},
        "TokenBudgetPacker": {"length_function": length},
    }


# Nothing in them is anybody's but ours, or they are not asked as a stage.
OURS = {
    "BM25Retriever",
    "HypotheticalDocumentEmbedder",
    "LongContextReorder",
    "SentenceSplitter",
}
NAMES = [name for name in ALL if name not in OURS]


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("name", NAMES)
async def test_what_may_get_stuck_has_a_thread_nobody_waits_for(name, how):
    notes = Notes()
    given = parts(notes)
    made = limited(make(name, given, **functions(notes).get(name, {})), seconds=LONG_S)
    documents = found("a fish", "fish", "boats")
    asked: Any = QUESTION
    if name in COMPRESSORS:
        asked = {"query": QUESTION, "documents": documents}
    notes.open = True
    await made.ainvoke(asked) if how == "async" else made.invoke(asked)
    notes.open = False
    given.close()
    assert notes.seen, "no part was asked: the test tells nothing"
    kept = {who for who, left_alone in notes.seen if not left_alone}
    assert not kept, f"{name} asks these in threads the program waits for: {kept}"


async def test_nor_a_docstore_a_recorded_model_or_a_fallback(tmp_path):
    notes = Notes()

    class Kept(InMemoryStore):
        amget = BaseStore.amget  # as LocalFileStore has it

        def mget(self, keys: Any) -> Any:
            notes.note("docstore")
            return super().mget(keys)

    given = parts(notes)
    families = MultiVectorRetriever(vectorstore=given.empty(), docstore=Kept())
    families.add(NOTES[:1], [["fish"]])
    model = replaying(given.llm("fish"), tmp_path / "recording", "auto")
    rephrasing = RePhraseQueryRetriever.from_llm(given.words(), model.with_retry())
    order = LLMListwiseRerank.from_llm(given.llm("[1] > [0]").with_fallbacks([given.llm("[0]")]))
    notes.open = True
    stages: list[tuple[Runnable[Any, Any], Any]] = [
        (families, "fish"),
        (rephrasing, "fish"),
        (order, {"query": "fish", "documents": [doc("one"), doc("two")]}),
    ]
    for stage, asked in stages:
        await limited(stage, seconds=LONG_S).ainvoke(asked)
    given.close()
    assert {who for who, _ in notes.seen} >= {"docstore", "model"}
    assert {who for who, left_alone in notes.seen if not left_alone} == set()


async def test_stuck_embedders_starve_nobody():
    until = threading.Event()

    class Stuck(Letters):
        stuck = False

        def embed_query(self, text: str) -> list[float]:
            if self.stuck:
                until.wait(20)
            return super().embed_query(text)

    embeddings = Stuck()
    with Cormorant.from_documents(NOTES, embeddings, pool_size=2) as store:
        embeddings.stuck = True
        late = limited(store.as_retriever(), seconds=0.02)
        for _ in range(4):
            with pytest.raises(DeadlineExceeded):
                await late.ainvoke("fish")
        assert await store.as_retriever(search_type="text").ainvoke("fish")
        until.set()


PROGRAM = """
import asyncio, sys, threading
sys.path.insert(0, {tests!r})
from toolkitlab import NOTES, Letters
from cormorant.errors import DeadlineExceeded
from cormorant.langchain.retrievers import with_deadline
from cormorant.langchain.retrievers.document_compressors import EmbeddingsFilter

class Stuck(Letters):
    def embed_documents(self, texts):
        threading.Event().wait()

async def main():
    late = with_deadline(EmbeddingsFilter(embeddings=Stuck()), seconds=0.05)
    try:
        await late.ainvoke({{"query": "fish", "documents": NOTES}})
    except DeadlineExceeded:
        print("late")

asyncio.run(main())
"""


def test_a_program_ends_with_work_that_never_does():
    program = PROGRAM.format(tests=str(Path(__file__).parents[1]))
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stdout, ended.returncode) == ("late\n", 0), ended.stderr


def test_a_long_time_is_no_error():
    made = limited(RunnableLambda(lambda question: question), seconds=1e300)
    assert made.invoke("fish") == "fish"
