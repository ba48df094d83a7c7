"""AutoMergingRetriever: chunks, or their document where enough of them were found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore

from cormorant.errors import QueryError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import AutoMergingRetriever

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Lines, Plain, Words, contents, ids, lines

BIRDS = lines("birds hunt", "birds fly", "birds swim", "nests", id="birds")
BOATS = lines("boats and birds", "masts", "sails", "ropes", id="boats")


@pytest.fixture(params=["one store", "two stores"])
def making(request):
    vs = Plain() if request.param == "two stores" else Cormorant(Words())
    more = {"docstore": InMemoryStore()} if request.param == "two stores" else {}

    def make(**values):
        return AutoMergingRetriever(vectorstore=vs, child_splitter=Lines(), **more, **values)

    yield make
    if isinstance(vs, Cormorant):
        vs.close()


def test_enough_chunks_become_their_document(making):
    retriever = making(fetch_k=4)
    retriever.add_documents([BIRDS, BOATS])
    assert contents(retriever.invoke("birds", k=2)) == [BIRDS.page_content, "boats and birds"]


def test_half_is_not_more_than_half(making):
    retriever = making(fetch_k=2, k=2)
    retriever.add_documents([BIRDS])
    found = contents(retriever.invoke("birds"))
    assert len(found) == len(set(found) & set(BIRDS.page_content.split("\n"))) == 2
    retriever.merge_ratio = 0.49
    assert ids(retriever.invoke("birds")) == ["birds"]


def test_with_ratio_zero_documents_alone_come_back(making):
    retriever = making(merge_ratio=0, fetch_k=4)
    retriever.add_documents([BIRDS, BOATS])
    assert ids(retriever.invoke("birds")) == ["birds", "boats"]


async def test_a_document_stands_where_its_best_chunk_stood(making):
    retriever = making(fetch_k=4)
    await retriever.aadd_documents([BIRDS, BOATS])
    found = await retriever.ainvoke("boats and birds", k=2)
    assert contents(found) == ["boats and birds", BIRDS.page_content]
    result = await retriever.aretrieve("birds", k=1)
    (hit,) = result
    assert "More than 0.5 of the 4 chunks of 'birds' of 3 children" in hit.journey[-1].says


def test_k_counts_what_is_returned(making):
    retriever = making(fetch_k=30)
    texts = {n: [f"birds {n} {m}" for m in range(30)] for n in ("aa", "bb")}
    retriever.add_documents([lines(*some, id=n) for n, some in texts.items()])
    assert len(retriever.invoke("birds", k=3)) == 3
    found = retriever.invoke("birds aa", k=25, filter=None)
    # All of one became one; chunks of the other, beyond the candidates too, fill up to k.
    assert found[0].page_content == "\n".join(texts["aa"])
    assert set(contents(found[1:])) < set(texts["bb"])
    assert len(found) == 25


def test_chunks_after_the_candidates_fill_up_to_k(making):
    retriever = making(fetch_k=4)
    retriever.add_documents([BIRDS, BOATS])
    found = contents(retriever.invoke("birds", k=4))
    assert found[:2] == [BIRDS.page_content, "boats and birds"]
    assert set(found[2:]) < {"masts", "sails", "ropes"}
    assert len(found) == 4


def test_a_lost_document_keeps_its_chunks_out(making):
    retriever = making(fetch_k=4)
    retriever.add_documents([BIRDS, BOATS])
    retriever.docstore.mdelete(["birds"])
    result = retriever.retrieve("birds")
    assert {hit.text for hit in result} <= set(BOATS.page_content.split("\n"))
    assert "not in the docstore" in result.degraded[0]


def test_a_document_of_unknown_size_is_refused():
    vs, docs = Plain(), InMemoryStore()
    vs.add_documents([Document("birds", metadata={"doc_id": "p"})])
    docs.mset([("p", Document("birds and more"))])
    retriever = AutoMergingRetriever(vectorstore=vs, docstore=docs, child_splitter=Lines())
    with pytest.raises(UsageError, match="not known how many chunks 'p' has"):
        retriever.invoke("birds")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"merge_ratio": 1}, "merge_ratio"),
        ({"merge_ratio": -0.1}, "merge_ratio"),
        ({"merge_ratio": True}, "merge_ratio"),
        ({"fetch_k": 0}, "fetch_k must be"),
    ],
)
def test_a_value_outside_its_range_is_refused(making, values, says):
    with pytest.raises(QueryError, match=says):
        making(**values)


def test_fewer_candidates_than_k_are_refused(making):
    with pytest.raises(QueryError, match="fetch_k must be at least k"):
        making(fetch_k=3).invoke("birds", k=4)


def test_a_scope_holds_for_the_count():
    with Cormorant(Words()) as vs:
        for tenant, more in (("acme", 1), ("other", 9)):
            documents = lines("birds", *["x"] * more, id=tenant)
            AutoMergingRetriever(
                vectorstore=vs.scope(tenant=tenant), child_splitter=Lines()
            ).add_documents([documents])
            # The same name of a parent, in another scope.
            vs.scope(tenant="other").add_texts(["birds"], [{"doc_id": "acme"}])
        acme = AutoMergingRetriever(
            vectorstore=vs.scope(tenant="acme"), child_splitter=Lines(), merge_ratio=0.9, fetch_k=4
        )
        assert ids(acme.invoke("birds")) == ["acme"]
