"""Parents in one store, children in another: what is said when one of them fails.

What state they are left in is in tests/property/test_parents_model.py.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore

from cormorant.errors import StoreError
from cormorant.langchain.retrievers import (
    AutoMergingRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
)

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Lines, Plain, Unwilling, ids, lines

FISH = lines("a fish swims", "a boat sails", id="fish")
KITE = lines("a kite flies", id="fish")


class Stubborn(Plain):
    """Deletes nothing more once told so, by an error or by saying no."""

    says: Any = None

    def delete(self, ids: Any = None, **kwargs: Any) -> Any:
        if self.says is False:
            return False
        if self.says is not None:
            raise self.says
        super().delete(ids, **kwargs)
        return True

    async def adelete(self, ids: Any = None, **kwargs: Any) -> Any:
        return self.delete(ids, **kwargs)


def over(vs: Any, docs: Any, kind: Any = ParentDocumentRetriever, **values: Any) -> Any:
    return kind(vectorstore=vs, docstore=docs, child_splitter=Lines(), **values)


def kept(vs: Any) -> list[str]:
    return sorted(each["text"] for each in vs.store.values())


@pytest.fixture(params=["sync", "async"])
def call(request):
    async def asked(owner: Any, name: str, *args: Any) -> Any:
        if request.param == "async":
            return await getattr(owner, f"a{name}")(*args)
        return await asyncio.to_thread(getattr(owner, name), *args)

    return asked


@pytest.mark.parametrize("says", [OSError, False])
async def test_old_children_that_cannot_be_deleted_are_told_of_and_go_later(call, says):
    vs = Stubborn()
    retriever = over(vs, InMemoryStore())
    await call(retriever, "add_documents", [FISH])
    vs.says = says
    with pytest.raises((OSError, StoreError)) as raised:
        await call(retriever, "add_documents", [KITE])
    (note,) = raised.value.__notes__
    assert "are stored; 2 old children of theirs are still in the vector store" in note
    assert kept(vs) == ["a boat sails", "a fish swims", "a kite flies"]
    vs.says = None
    await call(retriever, "delete", ["fish"])
    assert kept(vs) == []


@pytest.mark.parametrize("says", [OSError, False])
async def test_a_delete_that_fails_deletes_nothing_and_can_be_done_again(call, says):
    vs, docs = Stubborn(), InMemoryStore()
    retriever = over(vs, docs)
    await call(retriever, "add_documents", [FISH])
    vs.says = says
    with pytest.raises((OSError, StoreError)) as raised:
        await call(retriever, "delete", ["fish"])
    assert "Delete again" in raised.value.__notes__[0]
    assert ids(await call(retriever, "invoke", "boat")) == ["fish"]
    vs.says = None
    await call(retriever, "delete", ["fish"])
    assert (kept(vs), list(docs.yield_keys())) == ([], [])


async def test_where_both_fail_the_first_error_is_raised_with_what_is_left(call):
    vs, docs = Stubborn(), Unwilling()
    retriever = over(vs, docs)
    docs.full, vs.says = True, ConnectionError("gone too")
    with pytest.raises(OSError, match="docstore is away") as raised:
        await call(retriever, "add_documents", [FISH])
    (note,) = raised.value.__notes__
    assert "2 new children could not be deleted either (gone too)" in note
    assert all(id in note for id in vs.store)


async def test_a_docstore_that_kept_some_is_put_back(call):
    class Half(InMemoryStore):
        full = False

        def mset(self, key_value_pairs: Any) -> None:
            super().mset(list(key_value_pairs)[: 1 if self.full else None])
            if self.full:
                self.full = False
                raise OSError("half way")

        async def amset(self, key_value_pairs: Any) -> None:
            self.mset(key_value_pairs)

    vs, docs = Plain(), Half()
    retriever = over(vs, docs)
    await call(retriever, "add_documents", [FISH])
    before = (kept(vs), docs.mget(["fish", "new"]))
    docs.full = True
    with pytest.raises(OSError, match="half way") as raised:
        await call(retriever, "add_documents", [KITE, lines("new", id="new")])
    assert not hasattr(raised.value, "__notes__")
    assert (kept(vs), docs.mget(["fish", "new"])) == before


async def test_a_vector_store_that_fails_leaves_the_parents_and_says_so(call):
    class Down(Plain):
        def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> Any:
            raise ConnectionError("down")

        async def aadd_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> Any:
            raise ConnectionError("down")

    docs = InMemoryStore()
    with pytest.raises(ConnectionError) as raised:
        await call(over(Down(), docs), "add_documents", [FISH])
    assert "The parents are as they were" in raised.value.__notes__[0]
    assert list(docs.yield_keys()) == []


async def test_a_cancelled_call_is_undone(monkeypatch):
    class Slow(InMemoryStore):
        begun: asyncio.Event

        async def amset(self, key_value_pairs: Any) -> None:
            self.mset(list(key_value_pairs)[:1])
            self.begun.set()
            await asyncio.sleep(60)

    vs, docs = Plain(), Slow()
    docs.begun = asyncio.Event()
    adding = asyncio.ensure_future(over(vs, docs).aadd_documents([FISH, lines("new", id="new")]))
    await docs.begun.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert (kept(vs), docs.store) == ([], {})


async def test_children_that_took_the_places_of_old_ones_are_told_of(call):
    vs, docs = Plain(), Unwilling()
    retriever = MultiVectorRetriever(vectorstore=vs, docstore=docs)
    child = Document("a summary", id="s")
    await call(retriever, "add", [Document("one", id="a")], [[child]])
    docs.full = True
    with pytest.raises(OSError, match="away") as raised:
        await call(retriever, "add", [Document("two", id="a")], [[Document("another", id="s")]])
    assert "1 children have ids that their documents' old children had" in raised.value.__notes__[0]


def test_children_without_ids_are_told_of_and_not_counted(caplog):
    class Silent(Plain):
        def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> Any:
            super().add_documents(documents, ids, **kwargs)

    retriever = over(Silent(), InMemoryStore(), AutoMergingRetriever)
    with caplog.at_level(logging.WARNING):
        retriever.add_documents([FISH])
    assert "Silent returned 0 ids for 2 children" in caplog.text
    with pytest.raises(Exception, match="not known how many chunks"):
        retriever.invoke("boat")


def test_a_parent_from_elsewhere_that_is_replaced_is_told_of(caplog):
    vs, docs = Plain(), InMemoryStore()
    vs.add_documents([Document("a fish swims", metadata={"doc_id": "fish"})])
    docs.mset([("fish", Document("the whole text"))])
    with caplog.at_level(logging.WARNING):
        over(vs, docs).add_documents([KITE])
    assert "such as 'fish', do not say which children they have" in caplog.text
