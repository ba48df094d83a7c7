"""MultiVectorRetriever: any children, any parents."""

from __future__ import annotations

import asyncio
import pickle
import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from cormorant.errors import QueryError, RecordError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.calls.steps import Call, arun, run
from cormorant.langchain.retrievers import MultiVectorRetriever
from cormorant.langchain.retrievers.multi_vector import SearchType

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Plain, Words, ids


@pytest.fixture(params=["one store", "two stores"])
def retriever(request):
    if request.param == "two stores":
        yield MultiVectorRetriever(vectorstore=Plain(), docstore=InMemoryStore())
    else:
        with Cormorant(Words()) as vs:
            yield MultiVectorRetriever(vectorstore=vs)


@pytest.fixture
def vs():
    with Cormorant(Words()) as store:
        yield store


REPORT = Document("A long report.", id="report", metadata={"year": 2026})
LEDGER = Document("A ledger.", id="ledger")


def test_summaries_and_questions_lead_to_their_document(retriever):
    children = [["how do birds hunt", Document("wings get wet", metadata={"kind": "q"})], ["sums"]]
    assert retriever.add([REPORT, LEDGER], children) == ["report", "ledger"]
    assert retriever.invoke("wings get wet", k=1) == [REPORT]
    assert retriever.invoke("how do birds hunt", k=1) == [REPORT]
    assert ids(retriever.invoke("sums", k=2)) == ["ledger", "report"]


async def test_adding_again_and_deleting_take_the_children_along(retriever):
    await retriever.aadd([REPORT, LEDGER], [["birds"], ["sums"]])
    await retriever.aadd([REPORT], [["boats"]])
    found = await retriever.aretrieve("birds", k=5)
    assert {hit.id for hit in found} == {"report", "ledger"}
    assert found.degraded == ()
    await retriever.adelete(["report"])
    assert ids(await retriever.ainvoke("birds boats sums", k=5)) == ["ledger"]
    retriever.delete(["ledger"])
    assert retriever.invoke("birds boats sums", k=5) == []


def test_children_added_by_hand_lead_to_parents_kept_by_hand(retriever):
    """LangChain's own way."""
    children = [Document(text, metadata={"doc_id": "r"}) for text in ("birds", "x")]
    retriever.vectorstore.add_documents(children)
    retriever.docstore.mset([("r", Document("the report"))])
    (found,) = retriever.invoke("birds")
    assert (found.id, found.page_content) == ("r", "the report")


def test_a_document_that_names_no_parent_stands_for_itself_and_is_told_of(retriever):
    retriever.add([REPORT], [["birds hunt"]])
    retriever.vectorstore.add_documents([Document("birds fly", id="loose")])
    result = retriever.retrieve("birds fly", k=3)
    assert [hit.id for hit in result] == ["loose", "report"]
    assert result.degraded == (
        "1 of 2 documents found name no parent under 'doc_id' and stand for themselves.",
    )


def test_another_id_key_is_read(vs):
    retriever = MultiVectorRetriever(vectorstore=vs, id_key="parent")
    retriever.add([REPORT], [["birds"]])
    assert vs.store.count({"parent": "report"}) == 1
    assert retriever.invoke("birds") == [REPORT]


def test_more_children_are_asked_for_only_while_parents_are_missing(vs):
    retriever = MultiVectorRetriever(vectorstore=vs)
    heavy = [Document(f"{n}", id=f"h{n}") for n in range(3)]
    retriever.add(heavy, [[f"bird {n}"] * 60 for n in range(3)])
    retriever.add([REPORT], [["a bird among others, at last"]])
    vs.embeddings.questions = 0
    assert len(retriever.invoke("bird", k=4)) == 4
    assert 1 < vs.embeddings.questions <= 4
    vs.embeddings.questions = 0
    assert len(retriever.invoke("bird", k=1)) == 1
    assert vs.embeddings.questions == 1


def test_an_answer_says_whether_there_may_be_more(monkeypatch):
    from cormorant.langchain.retrievers import multi_vector

    retriever = MultiVectorRetriever(vectorstore=Plain(), docstore=InMemoryStore())
    retriever.add([REPORT, LEDGER], [["bird"] * 60, ["sums"]])
    assert retriever.retrieve("bird", k=2).complete
    assert retriever.retrieve("bird", k=9).complete
    monkeypatch.setattr(multi_vector, "_MOST", 30)
    assert not retriever.retrieve("bird", k=2).complete


@pytest.mark.parametrize("k", [1, 2, 3])
def test_diversity_is_among_children(vs, k):
    retriever = MultiVectorRetriever(
        vectorstore=vs, search_type="mmr", search_kwargs={"lambda_mult": 0.1, "fetch_k": 10}
    )
    near = [Document(f"near {n}", id=f"near{n}") for n in range(2)]
    retriever.add([*near, LEDGER], [["birds hunt fish"], ["birds hunt fish"], ["birds and sums"]])
    found = ids(retriever.invoke("birds hunt fish", k=k))
    assert found == ["near0", "ledger", "near1"][:k]


@pytest.mark.parametrize("children", [[["x"]], [["x"], ["y"], ["z"]]])
def test_children_must_be_as_many_lists_as_documents(retriever, children):
    with pytest.raises(RecordError, match="as many lists"):
        retriever.add([REPORT, LEDGER], children)


def test_a_document_without_children_is_refused(retriever):
    with pytest.raises(RecordError, match="no children"):
        retriever.add([REPORT, LEDGER], [["x"], []])
    assert list(retriever.docstore.yield_keys()) == []
    with pytest.raises(RecordError, match="Put it in a list"):
        retriever.delete("report")


def test_langchains_doc_id_is_taken_where_it_means_nothing():
    given = {"vectorstore": Plain(), "docstore": InMemoryStore()}
    assert MultiVectorRetriever(**given, doc_id="doc_id").id_key == "doc_id"
    with pytest.raises(UsageError, match="Say id_key='other'"):
        MultiVectorRetriever(**given, doc_id="other")


def test_the_search_types_are_langchains_and_two_more():
    assert [*SearchType] == ["similarity", "similarity_score_threshold", "mmr", "hybrid", "text"]
    with pytest.raises(QueryError, match="search_type must be one of"):
        MultiVectorRetriever(vectorstore=Plain(), docstore=InMemoryStore(), search_type="cosine")


def test_a_call_takes_what_the_search_takes(retriever):
    retriever.add([REPORT], [["x"]])
    with pytest.raises(UsageError, match="Did you mean 'filter'"):
        retriever.invoke("x", fliter={})
    with pytest.raises(QueryError, match="k must be"):
        retriever.invoke("x", k=0)
    assert retriever.accepts("k")
    assert retriever.accepts("filter")
    assert not retriever.accepts("lambda_mult")


def test_a_threshold_at_the_call(vs):
    retriever = MultiVectorRetriever(vectorstore=vs)
    retriever.add([REPORT, LEDGER], [["birds hunt"], ["birds and sums"]])
    assert ids(retriever.invoke("birds hunt", score_threshold=0.95)) == ["report"]
    assert ids(retriever.invoke("birds hunt", score_threshold=0)) == ["report", "ledger"]


async def test_no_async_call_holds_the_loop(vs):
    import time

    class Slow(InMemoryStore):
        def mget(self, keys):
            time.sleep(0.2)
            return super().mget(keys)

        async def amget(self, keys):
            return await asyncio.to_thread(self.mget, keys)

    retriever = MultiVectorRetriever(vectorstore=vs, docstore=Slow())
    await retriever.aadd([REPORT], [["birds"]])
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    assert ids(await retriever.ainvoke("birds")) == ["report"]
    ticking.cancel()
    assert ticks > 20


def test_a_configured_retriever_pickles_or_says_why_not(vs):
    docs = InMemoryStore()
    docs.mset([("r", REPORT)])
    plain = MultiVectorRetriever(vectorstore=Plain(), docstore=docs)
    again = pickle.loads(pickle.dumps(plain))
    assert again.docstore.mget(["r"]) == [REPORT]
    with pytest.raises((UsageError, TypeError)):
        pickle.dumps(MultiVectorRetriever(vectorstore=vs))


def test_a_procedure_gets_errors_where_they_happen():
    def failing():
        raise OSError("no")

    async def afailing():
        failing()

    def steps():
        try:
            yield Call(failing, afailing)
        except OSError:
            return (yield Call(lambda: 1, lambda: asyncio.sleep(0, 1)))

    assert run(steps()) == 1
    assert asyncio.run(arun(steps())) == 1


class TestConformance(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return MultiVectorRetriever

    @property
    def retriever_constructor_params(self):
        vs = Cormorant(Words())
        documents = [Document(f"text {n}", id=str(n)) for n in range(6)]
        MultiVectorRetriever(vectorstore=vs).add(documents, [["bird", "fish"]] * 6)
        return {"vectorstore": vs}

    @property
    def retriever_query_example(self):
        return "bird"
