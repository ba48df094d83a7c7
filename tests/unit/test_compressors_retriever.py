"""Does a retriever with a compressor behind it pass everything on, both ways?"""

from __future__ import annotations

import logging
import math
import pickle
import sys
from pathlib import Path

import pytest
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Lengths, Runs, Scores, found, ids
from retrieverlab import Fixed, Told

from cormorant.errors import ConfigError, QueryError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.document_transformers import LongContextReorder
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers import (
    BM25Retriever,
    ContextualCompressionRetriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
    PreviousNextRetriever,
)
from cormorant.langchain.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
    LLMChainFilter,
    RerankError,
)

TEXTS = ("a", "bbb", "cc", "dddd")


def rerank(top_n=2):
    return CrossEncoderReranker(model=Lengths(), top_n=top_n)


PARTS = {"base_compressor": rerank(), "base_retriever": Fixed(docs=[])}


def over(base=None, compressor=None, **more):
    return ContextualCompressionRetriever(
        base_compressor=compressor or rerank(),
        base_retriever=base or Fixed(docs=found(*TEXTS)),
        **more,
    )


@pytest.fixture
def store():
    texts = [f"a fish {'and a fish ' * number}number {number}" for number in range(8)]
    metadatas = [{"tenant": "acme" if number % 2 else "other"} for number in range(8)]
    with Cormorant.from_texts(texts, None, metadatas, ids=[f"{n}" for n in range(8)]) as vs:
        yield vs


async def test_the_compressors_documents_come_back_with_all_their_scores():
    for hits in (over().retrieve("?").hits, (await over().aretrieve("?")).hits):
        assert [(hit.id, hit.score) for hit in hits] == [("d3", 4.0), ("d1", 3.0)]
        assert hits[0].legs["text"].rank == 4
        assert [step.stage for step in hits[0].journey] == ["hybrid", "rerank"]


async def test_no_documents_ask_no_compressor():
    model = Scores(math.nan)
    retriever = over(Fixed(docs=[]), CrossEncoderReranker(model=model))
    assert retriever.invoke("?") == []
    assert await retriever.ainvoke("?") == []
    assert model.pairs == []


async def test_both_have_runs_below_the_retrievers():
    runs = Runs()
    over().invoke("?", {"callbacks": [runs], "tags": ["t"]})
    expected = [
        ("ContextualCompressionRetriever", None),
        ("Fixed", "ContextualCompressionRetriever"),
        ("CrossEncoderReranker", "ContextualCompressionRetriever"),
    ]
    assert runs.runs == expected
    runs = Runs()
    await over().ainvoke("?", {"callbacks": [runs]})
    assert runs.runs == expected


async def test_a_compressor_of_others_is_visible_in_the_events_too():
    class First(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            return documents[:1]

    events = [
        event["name"]
        async for event in over(compressor=First()).astream_events("?", version="v2")
        if event["event"].endswith("_start")
    ]
    assert events == ["ContextualCompressionRetriever", "Fixed", "First"]


class TestArguments:
    def test_k_is_what_comes_back_and_reaches_both(self):
        told = Told(docs=found(*TEXTS))
        assert ids(over(told).invoke("?", k=3)) == ["d3", "d1", "d2"]
        assert ids(over(told, k=1).invoke("?")) == ["d3"]
        assert told.heard == [{"k": 12}, {"k": 4}], "four candidates for each wanted"

    def test_a_retriever_that_was_told_how_many_brings_as_many(self, store):
        for k, brings in ((2, 5), (7, 7)):
            model = Scores(*range(brings))
            base = store.as_retriever(search_type="text", k=5)
            compressor = CrossEncoderReranker(model=model, top_n=1)
            assert len(over(base, compressor, k=k).invoke("fish")) == k
            assert len(model.pairs) == brings

    def test_fetch_k_is_what_the_retriever_is_asked_for(self):
        told = Told(docs=found(*TEXTS))
        assert len(over(told, fetch_k=20).invoke("?")) == 2
        assert len(over(told).invoke("?", fetch_k=30, k=1)) == 1
        assert told.heard == [{"k": 20}, {"k": 30}]

    def test_twenty_retrieved_five_kept(self, store):
        base = store.as_retriever(search_type="text", k=20)
        retriever = over(base, rerank(top_n=5))
        assert len(retriever.invoke("fish")) == 5
        assert ids(retriever.invoke("fish", k=2)) == ["7", "6"]

    @pytest.mark.parametrize(
        "wrong", [{"k": 0}, {"fetch_k": 0}, {"k": 3, "fetch_k": 2}, {"k": True}]
    )
    def test_numbers_that_contradict_each_other_are_refused(self, wrong):
        with pytest.raises(QueryError):
            over(**wrong)
        with pytest.raises(QueryError):
            over(Told(docs=[])).invoke("?", **wrong)

    async def test_a_filter_reaches_the_retriever(self, store):
        retriever = over(store.as_retriever(search_type="text"), rerank(9))
        assert set(ids(retriever.invoke("fish", filter={"tenant": "acme"}))) <= set("1357")
        assert set(ids(await retriever.ainvoke("fish", filter={"tenant": "acme"}))) <= set("1357")

    def test_what_cannot_reach_it_is_refused(self):
        for name, value in (("k", 2), ("filter", {"a": 1}), ("fetch_k", 9)):
            with pytest.raises(UsageError, match="would drop it"):
                over().invoke("?", **{name: value})
            assert not over().accepts(name)
        with pytest.raises(UsageError, match="does not take 'score_threshold'"):
            over().invoke("?", score_threshold=0.5)
        with pytest.raises(UsageError, match="does not take 'compressor'"):
            ContextualCompressionRetriever(compressor=rerank(), **PARTS)

    def test_the_scope_of_a_request_reaches_the_store(self, store):
        retriever = over(store.as_retriever(search_type="text"), rerank(9))
        config = {"configurable": {"scope": {"tenant": "acme"}}}
        assert set(ids(retriever.invoke("fish", config))) <= set("1357")
        with pytest.raises(ScopeError):
            over(on_error="degrade").invoke("fish", config)

    def test_k_holds_however_the_compressor_is_built(self, store):
        base = store.as_retriever(search_type="text", k=8)
        keep = RunnableLambda(lambda given: given["documents"])
        stages = DocumentCompressorPipeline(transformers=[rerank(1), LongContextReorder()])
        for compressor in (rerank(1), LongContextReorder(), keep, stages):
            assert len(over(base, compressor).invoke("fish", k=3)) == 3
        best = ids(over(base, LongContextReorder()).invoke("fish", k=3))
        assert sorted(best) == sorted(ids(base.invoke("fish", k=3)))


class TestFailure:
    async def test_a_failing_compressor_raises_unless_told_to_degrade(self, caplog):
        broken = CrossEncoderReranker(model=Scores(1.0), top_n=2)
        with pytest.raises(RerankError):
            over(compressor=broken).invoke("?")
        retriever = over(compressor=broken, on_error="degrade")
        with caplog.at_level(logging.WARNING):
            for result in (retriever.retrieve("?"), await retriever.aretrieve("?")):
                assert [hit.id for hit in result.hits] == ["d0", "d1"]
                (says,) = result.degraded
                assert "failed, the order is the retriever's own: RerankError: Scores" in says
                assert "1 scores for 4 documents" in says
        assert "CrossEncoderReranker failed" in caplog.text

    def test_a_failing_model_of_language_degrades_too(self):
        silent = LLMChainFilter.from_llm(FakeListChatModel(responses=["hm"]))
        result = over(compressor=silent, on_error="degrade", k=3).retrieve("?")
        assert [hit.id for hit in result.hits] == ["d0", "d1", "d2"]
        assert "LLMChainFilter failed" in result.degraded[0]

    def test_a_wrong_call_does_not_degrade(self):
        wrong = RunnableLambda(lambda _: "text")
        with pytest.raises(UsageError, match="must return a list of Documents"):
            over(compressor=wrong, on_error="degrade").invoke("?")

    def test_what_are_no_parts_is_refused(self):
        base = Fixed(docs=[])
        with pytest.raises(UsageError, match="needs base_compressor"):
            ContextualCompressionRetriever(base_retriever=base)
        with pytest.raises(UsageError, match=r"A stage must be"):
            ContextualCompressionRetriever(base_compressor="rerank", base_retriever=base)
        with pytest.raises(UsageError, match=r"base_retriever must be"):
            ContextualCompressionRetriever(base_compressor=rerank(), base_retriever=None)


def test_parts_in_each_others_places_are_refused_when_it_is_made(store):
    retriever, swapped = store.as_retriever(search_type="text"), rerank()
    for wrong in (swapped, swapped.with_retry(), swapped.with_config(tags=["t"])):
        with pytest.raises(ConfigError, match=r"base_retriever must be .* document compressor"):
            ContextualCompressionRetriever(base_compressor=rerank(), base_retriever=wrong)
        with pytest.raises(ConfigError, match=r"retrievers\[1\] must be .* document compressor"):
            EnsembleRetriever(retrievers=[retriever, wrong])
        with pytest.raises(ConfigError, match=r"retrievers\[0\] must be .* document compressor"):
            MergerRetriever(retrievers=[wrong])
        with pytest.raises(ConfigError, match=r"keyword_retriever must be .* document compressor"):
            HybridRetriever(vector_retriever=retriever, keyword_retriever=wrong)
        with pytest.raises(ConfigError, match=r"retriever must be .* document compressor"):
            PreviousNextRetriever(retriever=wrong, vectorstore=store)
    for wrong in (retriever, retriever.with_retry(), FakeListChatModel(responses=["x"])):
        with pytest.raises(ConfigError, match=r"A stage must be .* got a (retriever|language)"):
            ContextualCompressionRetriever(base_compressor=wrong, base_retriever=retriever)
        with pytest.raises(ConfigError, match=r"A stage must be"):
            DocumentCompressorPipeline(transformers=[wrong])


def test_with_scores_shows_rerank_and_search():
    written = over(with_scores=True).invoke("?")[0].metadata["_cormorant"]
    assert written["rerank_score"] == written["score"] == 4.0
    assert written["fusion_score"] == 0.25
    assert written["retrieval_method"] == "rerank"


def test_a_chain_as_retriever_and_one_around_it():
    base = RunnableLambda(lambda _: found(*TEXTS))
    chain = over(base) | (lambda documents: [of(document).score for document in documents])
    assert chain.invoke("?") == [4.0, 3.0]
    nested = over(over(base, rerank(3)), rerank(1))
    assert ids(nested.invoke("?")) == ["d3"]


def test_batch_keeps_questions_apart(store):
    retriever = over(store.as_retriever(search_type="text", k=8), rerank(1))
    assert [ids(found_) for found_ in retriever.batch(["number 3", "fish"])] == [["7"], ["7"]]


def test_it_can_be_pickled():
    copy = pickle.loads(pickle.dumps(over()))
    assert ids(copy.invoke("?")) == ["d3", "d1"]


class TestConformance(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return ContextualCompressionRetriever

    @property
    def retriever_constructor_params(self):
        texts = [f"a fish number {number}" for number in range(12)]
        return {
            "base_compressor": rerank(),
            "base_retriever": BM25Retriever.from_texts(texts, k=10),
        }

    @property
    def retriever_query_example(self):
        return "a fish"
