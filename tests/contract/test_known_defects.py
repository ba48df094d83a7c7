"""What must hold where other libraries are known to go wrong, and no other test says so.

Each test is named after what must hold. Defects of one retriever, compressor or store stand in
that one's own tests.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

import cormorant

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Lines, Words, contents, lines
from retrieverlab import Fixed, doc, texts

from cormorant.langchain import Cormorant
from cormorant.langchain.embeddings import CachedEmbeddings
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers import (
    AutoMergingRetriever,
    BM25Retriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
    SentenceSplitter,
    TimeWeightedVectorStoreRetriever,
)
from cormorant.langchain.retrievers.fusing.duplicates import unique

FAKE = DeterministicFakeEmbedding(size=8)
PACKAGE = Path(cormorant.__file__).parent


def test_no_other_layer_of_langchain_is_imported() -> None:
    """A package that is wound down breaks who imports it: translators, EmbeddingsFilter."""
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    assert "langchain_core" in imported
    assert {name for name in imported if name.startswith("langchain")} == {"langchain_core"}


class Strict(InMemoryVectorStore):
    """Takes strings, numbers and truth values as metadata, as Chroma does, and says when asked."""

    away = False

    def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        if self.away:
            raise ConnectionError("the store is away")
        for document in documents:
            for name, value in document.metadata.items():
                if not isinstance(value, (str, int, float, bool)):
                    raise ValueError(f"{name} is a {type(value).__name__}")
        return super().add_documents(documents, ids, **kwargs)

    async def aadd_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        return self.add_documents(documents, ids, **kwargs)


async def test_memories_are_kept_by_a_store_that_takes_no_dates() -> None:
    retriever = TimeWeightedVectorStoreRetriever(vectorstore=Strict(FAKE), k=2)
    retriever.add_documents([doc("a", "1")])
    await retriever.aadd_documents([doc("b", "2")])
    assert sorted(texts(retriever.invoke("a"))) == ["a", "b"]
    again = TimeWeightedVectorStoreRetriever(vectorstore=retriever.vectorstore, k=2)
    assert sorted(texts(await again.ainvoke("a"))) == ["a", "b"]


async def test_a_memory_that_the_store_did_not_take_is_not_remembered() -> None:
    store = Strict(FAKE)
    retriever = TimeWeightedVectorStoreRetriever(vectorstore=store)
    store.away = True
    with pytest.raises(ConnectionError):
        retriever.add_documents([doc("a", "1")])
    with pytest.raises(ConnectionError):
        await retriever.aadd_documents([doc("a", "1")])
    assert retriever.memory_stream == []
    store.away = False
    await retriever.aadd_documents([doc("b", "2")])
    assert [each.metadata["buffer_idx"] for each in retriever.memory_stream] == [0]


class Ends(BaseCallbackHandler):
    """What the last retriever's end told."""

    def __init__(self) -> None:
        self.documents: Any = []

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.documents = documents


def legs() -> list[BM25Retriever]:
    return [BM25Retriever.from_documents([doc("a fish", "1"), doc("a boat", "2")])] * 2


def memories() -> TimeWeightedVectorStoreRetriever:
    made = TimeWeightedVectorStoreRetriever(vectorstore=InMemoryVectorStore(FAKE))
    made.add_documents([doc("a fish", "1")])
    return made


def parents(kind: Any = ParentDocumentRetriever) -> Any:
    made = kind(
        vectorstore=InMemoryVectorStore(Words()),
        docstore=InMemoryStore(),
        child_splitter=Lines(),
    )
    made.add_documents([lines("a fish", "a boat", id="1")])
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: legs()[0],
        lambda: EnsembleRetriever(retrievers=legs()),
        lambda: HybridRetriever(vector_retriever=legs()[0], keyword_retriever=legs()[1]),
        lambda: MergerRetriever(retrievers=legs()),
        lambda: MultiQueryRetriever.from_llm(legs()[0], FakeListChatModel(responses=["a boat"])),
        memories,
    ],
    ids=["bm25", "ensemble", "hybrid", "merger", "multi-query", "memories"],
)
async def test_the_end_of_a_run_tells_callbacks_the_scores(make: Any) -> None:
    for awaited in (False, True):
        ends, retriever = Ends(), make()
        config: Any = {"callbacks": [ends]}
        if awaited:
            await retriever.ainvoke("a fish", config)
        else:
            retriever.invoke("a fish", config)
        assert ends.documents
        for document in ends.documents:
            told = of(document)
            # A merged list has places and no score of its own; its legs' scores are kept.
            assert isinstance(told.score, float) or told.legs["text"].score > 0
            assert told.journey
            assert "_cormorant" not in document.metadata


def test_what_is_found_twice_is_told_apart_without_comparing_each_with_each() -> None:
    compared = 0

    class Compared(Document):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = None  # type: ignore[assignment]

    many = [Compared(page_content=f"{n % 500}", metadata={"n": n}) for n in range(1000)]
    assert len(unique(many)) == 500
    assert compared < 2000, "a comparison with each would be 250,000"


@pytest.mark.parametrize("kind", [ParentDocumentRetriever, AutoMergingRetriever])
async def test_an_update_of_a_document_leaves_nothing_of_the_old_one(kind: Any) -> None:
    retriever = parents(kind)
    await retriever.aadd_documents([lines("a kite", id="1")])
    for query in ("a fish", "a boat", "a kite"):
        assert set(contents(await retriever.ainvoke(query))) == {"a kite"}
    await retriever.adelete(["1"])
    assert retriever.invoke("a kite") == []
    assert list(retriever.vectorstore.store) == []


def test_a_sentence_keeps_its_own_full_stop() -> None:
    """Splitters that cut before the separator begin the next chunk with it."""
    document = Document("鸬鹚捕鱼。哈哈哈！It rains. Wings dry.", id="d", metadata={"a": 1})
    chunks = SentenceSplitter().split_documents([document])
    assert contents(chunks) == ["鸬鹚捕鱼。", "哈哈哈！", "It rains.", "Wings dry."]
    for chunk in chunks:
        start = chunk.metadata["start_index"]
        assert document.page_content.startswith(chunk.page_content, start)


def test_a_repeated_chunk_says_where_each_stands() -> None:
    chunks = SentenceSplitter().split_documents([Document("Ha. Ha. Ha.")])
    assert [chunk.metadata["start_index"] for chunk in chunks] == [0, 4, 8]


def test_an_embedder_behind_a_cache_is_still_checked() -> None:
    """Another model of the same size is noticed though its cache answers for the first one."""

    class Model(DeterministicFakeEmbedding):
        model: str
        turned: bool = False

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            found = super().embed_documents(texts)
            return [each[::-1] for each in found] if self.turned else found

    with cormorant.open(":memory:") as store:
        first = CachedEmbeddings(Model(model="m", size=8))
        Cormorant(first, store=store).add_texts(["a fish"])
        second = CachedEmbeddings(Model(model="m", size=8, turned=True))
        with pytest.raises(cormorant.errors.EmbeddingMismatch):
            Cormorant(second, store=store).similarity_search("a fish")


def test_what_a_retriever_returns_is_nobodys_stored_document() -> None:
    held = doc("a fish", "1", tags=["x"])
    for made in (
        MergerRetriever(retrievers=[Fixed(docs=[held])]),
        EnsembleRetriever(retrievers=[Fixed(docs=[held])]),
        memories(),
        parents(),
    ):
        for _ in range(2):
            (found, *_) = made.invoke("a fish")
            assert found.metadata.get("tags", ["x"]) == ["x"]
            assert "changed" not in found.metadata
            found.metadata.setdefault("tags", ["x"]).append("y")
            found.metadata["changed"] = True
    assert held.metadata == {"tags": ["x"]}
