"""Is a question split, and does every part get its answer?"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import Away, ByQuestion, says
from retrieverlab import Slow, doc, texts

from cormorant.langchain.retrievers import DecompositionRetriever

ANSWERS = {
    "gulls?": [doc("g1", "g1"), doc("g2", "g2")],
    "cormorants?": [doc("c1", "c1"), doc("c2", "c2"), doc("g2", "g2")],
}


def test_every_part_comes_before_the_second_best_of_any() -> None:
    retriever = DecompositionRetriever.from_llm(
        ByQuestion(answers=ANSWERS), says("1. gulls?\n2. cormorants?"), include_original=False
    )
    assert texts(retriever.invoke("both", k=3)) == ["g2", "g1", "c1"]


def test_a_hit_says_which_parts_found_it() -> None:
    child = ByQuestion(answers=ANSWERS)
    retriever = DecompositionRetriever.from_llm(child, says("gulls?\ncormorants?"))
    result = retriever.retrieve("both")
    ranks = {hit.id: {name: leg.rank for name, leg in hit.legs.items()} for hit in result}
    assert ranks["g2"] == {"sub-question 1": 2, "sub-question 2": 3}
    assert ranks["c1"] == {"sub-question 2": 1}
    assert result.plan[:3] == (
        "original: both",
        "sub-question 1: gulls?",
        "sub-question 2: cormorants?",
    )
    assert [step.stage for step in result.hits[0].journey] == [
        "sub-question 1",
        "sub-question 2",
        "fuse",
    ]


def test_parts_are_retrieved_at_once() -> None:
    child = Slow(docs=[doc("x")], barrier=threading.Barrier(3))
    retriever = DecompositionRetriever.from_llm(child, says("gulls?\ncormorants?"))
    assert texts(retriever.invoke("both")) == ["x"]


async def test_async_finds_the_same() -> None:
    child = ByQuestion(answers=ANSWERS)
    retriever = DecompositionRetriever.from_llm(child, says("gulls?\ncormorants?"))
    assert texts(await retriever.ainvoke("both")) == texts(retriever.invoke("both"))


def test_a_simple_question_is_asked_once() -> None:
    child = ByQuestion()
    DecompositionRetriever.from_llm(child, says("Gulls?")).invoke("gulls?")
    assert child.asked == ["gulls?"]


@pytest.mark.parametrize("model", [Away(), says("I'm sorry, I can't do that."), says("")])
def test_a_failing_model_leaves_the_question_and_says_so(model: object) -> None:
    child = ByQuestion(answers={"both": [doc("found")]})
    result = DecompositionRetriever.from_llm(child, model).retrieve("both")
    assert [hit.text for hit in result] == ["found"]
    assert "the question alone was asked" in result.degraded[0]
