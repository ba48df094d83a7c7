"""Where a list is wanted: generators are read, and one alone is refused, never read by letters."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from cormorant.errors import RecordError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    AutoMergingRetriever,
    BM25Retriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
    SentenceSplitter,
    SentenceWindowRetriever,
    TimeWeightedVectorStoreRetriever,
)
from cormorant.langchain.storage import (
    CormorantByteStore,
    CormorantDocstore,
    LocalFileStore,
    create_kv_docstore,
)

TEXTS = {"a": "One gull.", "b": "Two gulls.", "ab": "Three gulls."}


def _cut(kind):
    return lambda vs: kind(vectorstore=vs, child_splitter=SentenceSplitter(), search_type="text")


TAKES_DOCUMENTS = {
    "Cormorant": lambda vs: vs,
    "BM25Retriever": lambda vs: BM25Retriever(vectorstore=vs),
    "ParentDocumentRetriever": _cut(ParentDocumentRetriever),
    "ParentStore": lambda vs: _cut(ParentDocumentRetriever)(vs).as_vectorstore(),
    "AutoMergingRetriever": _cut(AutoMergingRetriever),
    "SentenceWindowRetriever": _cut(SentenceWindowRetriever),
    "TimeWeightedVectorStoreRetriever": lambda vs: TimeWeightedVectorStoreRetriever(vectorstore=vs),
}


def documents():
    return (Document(text, id=id) for id, text in TEXTS.items())


@pytest.fixture
def vs():
    with Cormorant(DeterministicFakeEmbedding(size=8)) as made:
        yield made


@pytest.fixture(params=TAKES_DOCUMENTS)
def taker(request, vs):
    return TAKES_DOCUMENTS[request.param](vs)


def test_documents_and_ids_may_come_from_generators(taker):
    assert taker.add_documents(documents()) == list(TEXTS)
    assert taker.add_documents(documents(), ids=iter("xyz")) == list("xyz")
    if hasattr(taker, "aadd_documents"):
        assert asyncio.run(taker.aadd_documents(documents())) == list(TEXTS)


@pytest.mark.parametrize("given", [Document("One."), ["One."], "One.", None, [None]])
def test_what_is_no_list_of_documents_is_refused_with_what_came(taker, vs, given):
    with pytest.raises(RecordError, match=r"^documents takes .*; got "):
        taker.add_documents(given)
    assert vs.store.count() == 0


def test_one_id_is_not_read_by_its_letters(taker, vs):
    taker.add_documents(documents())
    with pytest.raises(RecordError, match="ids takes a list"):
        taker.delete("ab")
    if hasattr(taker, "adelete"):
        with pytest.raises(RecordError, match="ids takes a list"):
            asyncio.run(taker.adelete("ab"))
    assert vs.store.count() == len(TEXTS)
    taker.delete(iter(["a", "b"]))
    assert vs.store.count() == 1


def test_one_child_is_not_read_by_its_letters(vs):
    retriever = MultiVectorRetriever(vectorstore=vs)
    for wrong in ("hello", Document("hello"), 3, None):
        with pytest.raises(RecordError, match=r"position 0 it got a .* Put it in a list"):
            retriever.add([Document("a page")], [wrong])
    with pytest.raises(RecordError, match="A child is a string or a Document"):
        retriever.add([Document("a page")], [[3]])
    with pytest.raises(RecordError, match="a list of lists, one for each document; got a str"):
        retriever.add([Document("a page")], "h")
    assert vs.store.count() == 0
    pages = documents()
    assert retriever.add(pages, (iter([f"child {n}"]) for n in range(3))) == list(TEXTS)
    assert sorted(record.text for record in vs.store.records()) == ["child 0", "child 1", "child 2"]


STORES = {
    "CormorantDocstore": (lambda vs, path: CormorantDocstore(vs), Document("x")),
    "CormorantByteStore": (lambda vs, path: CormorantByteStore(vs), b"x"),
    "LocalFileStore": (lambda vs, path: LocalFileStore(path), b"x"),
    "create_kv_docstore": (
        lambda vs, path: create_kv_docstore(LocalFileStore(path)),
        Document("x"),
    ),
}


@pytest.mark.parametrize("name", STORES)
def test_one_key_is_not_read_by_its_letters(name, tmp_path, vs):
    make, value = STORES[name]
    store = make(vs, tmp_path)
    store.mset([("a", value), ("b", value), ("ab", value)])
    for wrong in (store.mget, store.mdelete):
        with pytest.raises(RecordError, match="Put it in a list"):
            wrong("ab")
    assert sorted(store.yield_keys()) == ["a", "ab", "b"]
    store.mdelete(iter(["a", "b"]))
    assert list(store.yield_keys()) == ["ab"]


def test_documents_among_texts_and_texts_among_documents_are_sent_to_the_other_method(vs):
    for take in (BM25Retriever.from_texts, vs.add_texts):
        with pytest.raises(RecordError, match=r"got a Document at position 0\. For Documents use"):
            take([Document("One.")])
    for take in (BM25Retriever.from_documents, vs.add_documents):
        with pytest.raises(RecordError, match=r"got a str at position 0\. For plain strings use"):
            take(["One."])


def test_a_splitter_is_made_not_named(vs):
    with pytest.raises(UsageError, match=r"got the class SentenceSplitter\. Make one"):
        ParentDocumentRetriever(vectorstore=vs, child_splitter=SentenceSplitter)
