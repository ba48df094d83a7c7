"""Do several retrievers take turns, and does each document come once?"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Failing, Fixed, Slow, Told, doc, texts

from cormorant.errors import QueryError, UsageError
from cormorant.langchain.retrievers import BM25Retriever, MergerRetriever


def merger(*lists: list[Document], **settings: Any) -> MergerRetriever:
    return MergerRetriever(retrievers=[Fixed(docs=each) for each in lists], **settings)


def letters(word: str) -> list[Document]:
    return [doc(letter) for letter in word]


@pytest.mark.parametrize("lists", [["abc", "d", "ef"], ["", "ab"], ["a"], ["", ""]])
async def test_takes_turns_as_langchain_does(lists: list[str]) -> None:
    expected = [
        word[turn] for turn in range(max(map(len, lists))) for word in lists if turn < len(word)
    ]
    retriever = merger(*map(letters, lists), deduplicate=False)
    assert texts(retriever.invoke("q")) == expected
    assert texts(await retriever.ainvoke("q")) == expected


async def test_a_document_comes_once_where_it_comes_first() -> None:
    retriever = merger(letters("abc"), letters("bad"))
    assert texts(retriever.invoke("q")) == ["a", "b", "c", "d"]
    assert texts(await retriever.ainvoke("q")) == ["a", "b", "c", "d"]
    (hit, *_) = retriever.retrieve("q").hits
    assert {name: leg.rank for name, leg in hit.legs.items()} == {"Fixed": 1, "Fixed 2": 2}
    assert [step.stage for step in hit.journey] == ["Fixed", "Fixed 2", "merge"]


def test_or_as_often_as_it_is_found() -> None:
    found = merger(letters("ab"), letters("ba"), deduplicate=False).invoke("q")
    assert texts(found) == ["a", "b", "b", "a"]


def test_equal_texts_with_different_ids_are_both_returned() -> None:
    found = merger([doc("same", "1")], [doc("same", "2"), doc("same", "1")]).invoke("q")
    assert [d.id for d in found] == ["1", "2"]


def test_the_id_key_tells_documents_apart() -> None:
    found = merger([doc("a", n=1)], [doc("b", n=1), doc("c", n=2)], id_key="n").invoke("q")
    assert texts(found) == ["a", "c"]


async def test_a_calls_filter_is_never_dropped() -> None:
    """Else another tenant's document comes back."""
    told = [Told(docs=[doc("mine", t="acme")]), Told(docs=[doc("mine too", t="acme")])]
    retriever = MergerRetriever(retrievers=told)
    retriever.invoke("q", filter={"t": "acme"}, k=5)
    await retriever.ainvoke("q", filter={"t": "acme"}, k=5)
    assert all(leg.heard == [{"filter": {"t": "acme"}, "k": 5}] * 2 for leg in told)
    with pytest.raises(UsageError, match="Fixed takes no filter"):
        merger(letters("a")).invoke("q", filter={"t": "acme"})


def test_k_cuts_what_was_merged() -> None:
    assert texts(merger(letters("abc"), letters("def"), k=3).invoke("q")) == ["a", "d", "b"]
    legs = [BM25Retriever.from_texts([f"fish {leg} {n}" for n in range(3)]) for leg in range(2)]
    assert len(MergerRetriever(retrievers=legs).invoke("fish", k=2)) == 2


def test_any_runnable_will_do() -> None:
    lone = RunnableLambda(lambda query: [doc(query)])
    assert texts(MergerRetriever(retrievers=[lone]).invoke("q")) == ["q"]


def test_legs_run_at_once() -> None:
    barrier = threading.Barrier(2)
    legs = [Slow(docs=letters(word), barrier=barrier) for word in "ab"]
    assert texts(MergerRetriever(retrievers=legs).invoke("q")) == ["a", "b"]


async def test_a_failing_leg_is_left_out_when_asked_to() -> None:
    legs: list[Any] = [Failing(), Fixed(docs=letters("a"))]
    with pytest.raises(RuntimeError):
        MergerRetriever(retrievers=legs).invoke("q")
    lenient = MergerRetriever(retrievers=legs, on_error="degrade")
    for result in (lenient.retrieve("q"), await lenient.aretrieve("q")):
        assert [hit.text for hit in result] == ["a"]
        assert "Failing failed" in result.degraded[0]


def test_scores_come_when_asked_for() -> None:
    leg = BM25Retriever.from_texts(["a fish"])
    (found,) = MergerRetriever(retrievers=[leg, leg]).invoke("fish", with_scores=True)
    scores = found.metadata["_cormorant"]
    assert scores["retrieval_method"] == "merge"
    assert scores["score"] is None
    assert scores["legs"]["text"]["score"] == scores["legs"]["text 2"]["score"] > 0


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="retrievers must be a list"):
        MergerRetriever(retrievers=[])
    with pytest.raises(QueryError):
        merger(letters("a"), k=0)
    with pytest.raises(UsageError, match="Did you mean"):
        merger(letters("a"), dedup=True)
