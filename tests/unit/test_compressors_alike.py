"""What holds for every compressor, whatever it does?"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Compass, Lengths, Runs, found, ids

from cormorant.errors import QueryError, UsageError
from cormorant.langchain import document_transformers
from cormorant.langchain.document_transformers import (
    EmbeddingsRedundantFilter,
    LongContextReorder,
)
from cormorant.langchain.provenance import Answer, attach, of
from cormorant.langchain.retrievers import document_compressors
from cormorant.langchain.retrievers.document_compressors import (
    CohereRerank,
    CrossEncoderReranker,
    DocumentCompressorPipeline,
    EmbeddingsFilter,
    HostedReranker,
    LLMChainExtractor,
    LLMChainFilter,
    LLMListwiseRerank,
    LLMPointwiseRerank,
    TokenBudgetPacker,
)


class Client:
    """A hosted service that scores by length."""

    def rerank(self, *, query, documents, top_n, model):
        order = sorted(range(len(documents)), key=lambda i: -len(documents[i]))
        results = [
            SimpleNamespace(index=i, relevance_score=len(documents[i]) / 100) for i in order[:top_n]
        ]
        return SimpleNamespace(results=results)


def chat(*replies):
    return FakeListChatModel(responses=list(replies))


TEXTS = ("one", "three", "seventeen")
ANGLES = {"one": 80.0, "three": 40.0, "seventeen": 0.0, "which?": 10.0}
# Each with the ids it must return.
ALL = {
    "cross_encoder": (
        lambda: CrossEncoderReranker(model=Lengths(), top_n=2),
        ["d2", "d1"],
    ),
    "hosted": (lambda: HostedReranker(client=Client(), model="m", top_n=2), ["d2", "d1"]),
    "cohere": (lambda: CohereRerank(client=Client(), model="m", top_n=1), ["d2"]),
    "listwise": (
        lambda: LLMListwiseRerank.from_llm(chat("[2] > [0] > [1]"), top_n=2),
        ["d2", "d0"],
    ),
    "pointwise": (lambda: LLMPointwiseRerank.from_llm(chat("2", "9", "5"), top_n=2), ["d1", "d2"]),
    "extractor": (
        lambda: LLMChainExtractor.from_llm(chat("on", "NO_OUTPUT", "seven")),
        ["d0", "d2"],
    ),
    "filter": (lambda: LLMChainFilter.from_llm(chat("NO", "YES", "YES")), ["d1", "d2"]),
    "embeddings": (
        lambda: EmbeddingsFilter(embeddings=Compass(**ANGLES), k=2),
        ["d2", "d1"],
    ),
    "redundant": (
        lambda: EmbeddingsRedundantFilter(
            embeddings=Compass(one=0.0, three=1.0, seventeen=90.0), similarity_threshold=0.9
        ),
        ["d0", "d2"],
    ),
    "reorder": (LongContextReorder, ["d0", "d2", "d1"]),
    "packer": (lambda: TokenBudgetPacker(token_budget=3), ["d0", "d1"]),
    "pipeline": (
        lambda: DocumentCompressorPipeline(
            transformers=[
                LLMChainFilter.from_llm(chat("YES", "YES", "YES")),
                CrossEncoderReranker(model=Lengths()),
                LongContextReorder(),
            ]
        ),
        ["d2", "d0", "d1"],
    ),
}
each = pytest.mark.parametrize(("make", "expected"), ALL.values(), ids=ALL)


def ask(documents):
    return {"query": "which?", "documents": documents}


@each
def test_it_is_a_compressor_and_a_runnable(make, expected):
    compressor = make()
    assert isinstance(compressor, BaseDocumentCompressor)
    assert isinstance(compressor, Runnable)
    if not compressor.needs_query and not isinstance(compressor, DocumentCompressorPipeline):
        assert isinstance(compressor, BaseDocumentTransformer)


@each
async def test_every_way_to_call_it_gives_the_same(make, expected):
    documents = found(*TEXTS)
    assert ids(make().invoke(ask(documents))) == expected
    assert ids(await make().ainvoke(ask(documents))) == expected
    assert ids(make().compress_documents(documents, "which?")) == expected
    assert ids(await make().acompress_documents(documents, "which?")) == expected
    assert [ids(chunk) for chunk in make().stream(ask(documents))] == [expected]
    assert [ids(chunk) async for chunk in make().astream(ask(documents))] == [expected]
    assert [ids(one) for one in make().batch([ask(documents)])] == [expected]
    assert [ids(one) for one in await make().abatch([ask(documents)])] == [expected]


@each
def test_documents_keep_their_ids_metadata_and_earlier_scores(make, expected):
    documents = {document.id: document for document in found(*TEXTS)}
    for document in make().invoke(ask(list(documents.values()))):
        before = documents[document.id]
        assert type(document) is Document
        assert document.metadata == before.metadata
        known, was = of(document), of(before)
        assert known.fusion_score == was.fusion_score
        assert known.legs == was.legs
        assert known.contributions == was.contributions
        assert known.journey[0] == was.journey[0]


@each
def test_each_stage_adds_itself_to_the_journey(make, expected):
    compressor = make()
    out = compressor.invoke(ask(found(*TEXTS)))
    for document in out:
        assert len(of(document).journey) > 1
        assert all(step.says for step in of(document).journey)
    assert out.stages[-1].name == compressor.get_name()
    assert out.stages[-1].counters == {"documents_in": 3, "documents_out": len(expected)}


@each
def test_nothing_that_was_given_is_changed_or_shared(make, expected):
    documents = found(*TEXTS)
    for document in make().invoke(ask(documents)):
        document.metadata["tags"].append("mine")
        document.metadata["page"] = -1
    assert [document.metadata for document in documents] == [
        {"page": rank, "tags": ["x"]} for rank in range(3)
    ]
    assert [len(of(document).journey) for document in documents] == [1, 1, 1]


@each
def test_no_documents_are_no_error_and_no_call(make, expected):
    assert make().invoke(ask([])) == []
    assert make().compress_documents([], "which?") == []


@each
def test_it_has_a_run_of_its_own(make, expected):
    runs = Runs()
    compressor = make()
    compressor.compress_documents(found(*TEXTS), "which?", callbacks=[runs])
    assert runs.runs[0] == (compressor.get_name(), None)
    assert ids(runs.outputs[compressor.get_name()]) == expected


@each
async def test_it_shows_in_the_events_of_a_chain(make, expected):
    compressor = make()
    chain = RunnablePassthrough.assign(documents=RunnableLambda(lambda _: found(*TEXTS)))
    chain |= compressor
    events = [event async for event in chain.astream_events({"query": "which?"}, version="v2")]
    mine = [event for event in events if event["name"] == compressor.get_name()]
    assert [mine[0]["event"], mine[-1]["event"]] == ["on_chain_start", "on_chain_end"]
    assert ids(mine[-1]["data"]["output"]) == expected
    assert mine[0]["parent_ids"]


@each
def test_inside_a_function_its_run_is_a_child_without_being_told(make, expected):
    runs = Runs()
    compressor = make()
    outer = RunnableLambda(lambda documents: compressor.compress_documents(documents, "which?"))
    outer.with_config(run_name="outer").invoke(found(*TEXTS), {"callbacks": [runs]})
    assert (compressor.get_name(), "outer") in runs.runs


@each
def test_with_scores_writes_them_under_one_key(make, expected):
    compressor = make()
    compressor.with_scores = True
    for rank, document in enumerate(compressor.invoke(ask(found(*TEXTS))), start=1):
        written = document.metadata["_cormorant"]
        assert written["rank"] == rank
        assert written["fusion_score"] == of(document).fusion_score
        assert written["rerank_score"] == of(document).rerank_score


@each
def test_what_was_said_of_the_list_stays_said(make, expected):
    answer = Answer(found(*TEXTS), degraded=["A leg was away."], complete=False)
    out = make().invoke(ask(answer))
    assert out.degraded[0] == "A leg was away."
    assert out.complete is False


@each
def test_an_argument_nobody_reads_is_refused(make, expected):
    compressor = make()
    fields = {name: getattr(compressor, name) for name in type(compressor).model_fields}
    with pytest.raises(UsageError, match="does not take 'nothing'"):
        type(compressor)(nothing=1, **fields)
    with pytest.raises(UsageError, match="does not take 'nothing'"):
        compressor.invoke(ask(found(*TEXTS)), nothing=1)
    with pytest.raises(UsageError, match="does not take 'run_type'"):
        compressor.invoke(ask(found(*TEXTS)), run_type="tool")


@each
@pytest.mark.parametrize(
    "documents",
    ["text", None, [1], ["text"], {"a": 1}],
    ids=["a string", "none", "a number", "strings", "a dict"],
)
def test_what_are_no_documents_is_refused(make, expected, documents):
    with pytest.raises(UsageError, match="documents must be"):
        make().invoke({"query": "which?", "documents": documents})


@each
def test_input_of_another_shape_is_refused_with_what_came(make, expected):
    with pytest.raises(UsageError, match="got a list"):
        make().invoke(found(*TEXTS))
    with pytest.raises(UsageError, match="without documents it got the keys 'query', 'docs'"):
        make().invoke({"query": "which?", "docs": []})
    if make().needs_query:
        with pytest.raises(UsageError, match="without query"):
            make().invoke({"question": "which?", "documents": found(*TEXTS)})
        with pytest.raises(QueryError, match="must not be empty"):
            make().invoke({"query": " ", "documents": found(*TEXTS)})


@pytest.mark.parametrize("name", [name for name in ALL if name not in {"hosted", "cohere"}])
def test_a_configured_one_can_be_pickled(name):
    make, expected = ALL[name]
    copy = pickle.loads(pickle.dumps(make()))
    assert ids(copy.invoke(ask(found(*TEXTS)))) == expected


def test_names_are_handed_on():
    for room in (document_compressors, document_transformers):
        assert room.__all__ == sorted(room.__all__)
        for name in dir(room):
            assert getattr(room, name).__name__ == name
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            room.nothing  # noqa: B018 - the access is the test


def test_scores_in_metadata_are_taken_up_from_a_retriever_that_wrote_them():
    written = Document(
        page_content="a", id="a", metadata={"_cormorant": {"score": 0.5, "fusion_score": 0.5}}
    )
    out = CrossEncoderReranker(model=Lengths()).invoke(ask([written]))
    assert out[0].metadata == {}
    assert of(out[0]).fusion_score == 0.5
    assert of(out[0]).rerank_score == 1.0


def test_documents_without_provenance_do_as_well():
    bare = attach(Document(page_content="a"), of(Document(page_content="b")))
    out = CrossEncoderReranker(model=Lengths()).invoke(ask([bare, Document(page_content="abc")]))
    assert [of(document).score for document in out] == [3.0, 1.0]
    assert ids(out) == [None, None]
