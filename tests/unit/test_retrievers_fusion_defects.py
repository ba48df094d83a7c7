"""What must hold where other libraries' fusion went wrong: each test is named after it."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Scores, found
from retrieverlab import Fixed, doc, texts

from cormorant.langchain.provenance import Provenance, attach, of
from cormorant.langchain.retrievers import (
    BoostRetriever,
    ContextualCompressionRetriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
)
from cormorant.langchain.retrievers.document_compressors import CrossEncoderReranker


def ensemble(*lists: list[Any], **settings: Any) -> EnsembleRetriever:
    return EnsembleRetriever(retrievers=[Fixed(docs=each) for each in lists], **settings)


def merger(*lists: list[Any], **settings: Any) -> MergerRetriever:
    return MergerRetriever(retrievers=[Fixed(docs=each) for each in lists], **settings)


@pytest.mark.parametrize("kind", [ensemble, merger])
def test_the_first_view_of_a_document_is_kept_and_not_the_last(kind: Any) -> None:
    full, stub = doc("the full text", "a", title="Fish"), doc("stub", "a", title="?", extra=1)
    (kept,) = kind([full], [stub]).invoke("q")
    assert (kept.page_content, kept.metadata["title"]) == ("the full text", "Fish")
    assert "extra" not in kept.metadata, "it describes another text"


@pytest.mark.parametrize("kind", [ensemble, merger])
def test_nor_is_the_last_of_one_list(kind: Any) -> None:
    full, stub = doc("the full text", "a", title="Fish"), doc("stub", "a", title="?")
    (kept,) = kind([full, stub]).invoke("q")
    assert (kept.page_content, kept.metadata["title"]) == ("the full text", "Fish")


@pytest.mark.parametrize("weights", [[0, 1], [1, 0], [0.2, 0.8]])
def test_weights_decide(weights: list[float]) -> None:
    made = ensemble([doc("a", "a")], [doc("b", "b")], weights=weights)
    scores = {hit.id: hit.score for hit in made.retrieve("q")}
    assert scores == pytest.approx({"a": weights[0] / 61, "b": weights[1] / 61})
    assert made.invoke("q")[0].id == ("a" if weights[0] > weights[1] else "b")


def test_a_document_in_one_list_alone_keeps_its_whole_score() -> None:
    alone = ensemble([doc("a", "a")], [], weights=[0.5, 0.5]).retrieve("q").hits[0]
    beside = ensemble([doc("a", "a")], [doc("b", "b")], weights=[0.5, 0.5]).retrieve("q").hits[0]
    assert alone.score == beside.score == 0.5 / 61


def test_lists_of_one_document_or_of_equal_scores_are_not_worth_nothing() -> None:
    same = [attach(doc(id, id), Provenance(score=3.0)) for id in "abc"]
    hits = ensemble(same, [same[2]]).retrieve("q").hits
    assert all(hit.score > 0 for hit in hits)
    assert hits[0].id == "c"


def test_a_score_of_zero_is_a_score() -> None:
    zero = attach(doc("a", "a"), Provenance(score=0.0, relevance=0.0))
    hit = ensemble([zero], [doc("b", "b")]).retrieve("q").hits[0]
    assert hit.legs["Fixed"].score == 0.0
    assert hit.relevance == 0.0
    assert math.isnan(ensemble([doc("b", "b")]).retrieve("q").hits[0].relevance), "unknown is not 0"
    boosted = BoostRetriever(retriever=Fixed(docs=[zero]), boosts=[]).retrieve("q")
    assert boosted.hits[0].score == 0.0
    assert not boosted.degraded


def test_a_rerank_score_of_zero_or_less_drops_no_document() -> None:
    reranker = CrossEncoderReranker(model=Scores(-3.0, 0.0, -1.0), top_n=None)
    out = reranker.invoke({"query": "q", "documents": found("a", "b", "c")})
    assert [of(document).rerank_score for document in out] == [0.0, -1.0, -3.0]


def test_a_threshold_on_the_search_does_not_stand_for_one_on_the_reranker() -> None:
    """What the reranker finds best may have been last before."""
    base = Fixed(docs=found("a", "b", "c"))
    reranker = CrossEncoderReranker(model=Scores(0.1, 0.2, 0.96), min_rerank_score=0.5)
    made = ContextualCompressionRetriever(base_retriever=base, base_compressor=reranker)
    assert texts(made.invoke("q")) == ["c"]


def test_no_leg_is_shown_the_others_documents() -> None:
    """Fusing returns new objects; children keep theirs as they were."""
    shared = doc("a", "a", tags=["x"])
    ensemble([shared], [shared], id_key="n").invoke("q")[0].metadata["tags"].append("y")
    merger([shared], [shared]).invoke("q")[0].metadata["tags"].append("y")
    assert shared.metadata == {"tags": ["x"]}
    assert "_cormorant" not in shared.__dict__


def test_a_zero_k_is_refused_and_not_turned_into_another() -> None:
    for made in (ensemble([doc("a")]), merger([doc("a")])):
        with pytest.raises(ValueError, match="k must be a whole number of at least 1; got 0"):
            made.invoke("q", k=0)
    with pytest.raises(ValueError, match="top_k must be a whole number of at least 1; got 0"):
        HybridRetriever(vector_retriever=Fixed(docs=[]), keyword_retriever=Fixed(docs=[]), top_k=0)
