"""Is what was meant searched for, with what went before in its place?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import Away, ByQuestion, says
from retrieverlab import Fixed, doc, texts

from cormorant.errors import UsageError
from cormorant.langchain.retrievers import RePhraseQueryRetriever

HISTORY = [("human", "What is a cormorant?"), ("ai", "A bird.")]


@pytest.mark.parametrize("reply", ["food", "Sure! Here is the query:\n1. food", '"food"'])
def test_the_query_alone_is_searched(reply: str) -> None:
    child = ByQuestion(answers={"food": [doc("fish")]})
    result = RePhraseQueryRetriever.from_llm(child, says(reply)).retrieve("hi! its food, please?")
    assert child.asked == ["food"]
    assert [hit.text for hit in result] == ["fish"]
    assert result.plan[0] == "re-phrased: food"


async def test_async_works() -> None:
    child = ByQuestion(answers={"food": [doc("fish")]})
    found = await RePhraseQueryRetriever.from_llm(child, says("food")).ainvoke("its food?")
    assert texts(found) == ["fish"]


@pytest.mark.parametrize(
    "history", [HISTORY, [HumanMessage("What is a cormorant?"), AIMessage("A bird.")]]
)
def test_the_model_sees_the_conversation(history: Any) -> None:
    heard = []
    model = RunnableLambda(lambda prompt: heard.append(prompt.to_string()) or "food")
    child = ByQuestion()
    RePhraseQueryRetriever.from_llm(child, model).invoke("its food?", chat_history=history)
    assert "Human: What is a cormorant?\nAI: A bird." in heard[0]
    assert "its food?" in heard[0]
    assert child.asked == ["food"]
    assert child.heard == [{}]


def test_a_history_that_is_none_is_refused() -> None:
    retriever = RePhraseQueryRetriever.from_llm(ByQuestion(), says("food"))
    with pytest.raises(UsageError, match="chat_history takes messages"):
        retriever.invoke("its food?", chat_history=[object()])


@pytest.mark.parametrize("model", [Away(), says(""), says("I'm sorry, I can't do that.")])
def test_a_failing_model_leaves_the_question_and_says_so(model: Any) -> None:
    child = ByQuestion(answers={"its food?": [doc("fish")]})
    result = RePhraseQueryRetriever.from_llm(child, model).retrieve("its food?")
    assert [hit.text for hit in result] == ["fish"]
    assert "searched as it was put" in result.degraded[0]


def test_the_failure_can_be_raised() -> None:
    with pytest.raises(ConnectionError):
        RePhraseQueryRetriever.from_llm(ByQuestion(), Away(), on_llm_error="raise").invoke("q")


def test_k_and_filter_reach_the_retriever_or_are_refused() -> None:
    child = ByQuestion()
    RePhraseQueryRetriever.from_llm(child, says("food")).invoke("q", k=2, filter={"n": 1})
    assert child.heard == [{"k": 2, "filter": {"n": 1}}]
    with pytest.raises(UsageError, match="filter"):
        RePhraseQueryRetriever.from_llm(Fixed(docs=[]), says("food")).invoke("q", filter={"n": 1})


def test_a_k_of_its_own_reaches_a_retriever_that_takes_one() -> None:
    child = ByQuestion(answers={"food": [doc("1"), doc("2"), doc("3")]})
    retriever = RePhraseQueryRetriever.from_llm(child, says("food"), k=2)
    assert texts(retriever.invoke("q")) == ["1", "2"]
    assert texts(retriever.invoke("q", k=1)) == ["1"]
    assert [heard["k"] for heard in child.heard] == [2, 1]


async def test_and_cuts_what_another_brings() -> None:
    child = Fixed(docs=[doc("1"), doc("2"), doc("3")])
    retriever = RePhraseQueryRetriever.from_llm(child, says("food"), k=2)
    assert texts(retriever.invoke("q")) == ["1", "2"]
    assert texts(await retriever.ainvoke("q")) == ["1", "2"]
    with pytest.raises(UsageError, match="k must be"):
        RePhraseQueryRetriever.from_llm(child, says("food"), k=0)
