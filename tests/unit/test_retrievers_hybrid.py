"""Are vectors and words fused as documented, over any retrievers and inside a store?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Failing, Fixed, Told, doc, texts

from cormorant.errors import QueryError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import BM25Retriever, HybridRetriever
from cormorant.store.door import Door

FAKE = DeterministicFakeEmbedding(size=8)
WORDS = ["fish", "boat", "net", "sea", "gull", "tide", "sail"]
WRITTEN = [" ".join(WORDS[(n * step) % 7] for step in (1, 2, 4)) for n in range(120)]


def hybrid(vector: Any, keyword: Any, **settings: Any) -> HybridRetriever:
    return HybridRetriever(vector_retriever=vector, keyword_retriever=keyword, **settings)


@pytest.fixture(scope="module")
def vs() -> Iterator[Cormorant]:
    metadatas = [{"n": n, "even": n % 2 == 0} for n in range(len(WRITTEN))]
    ids = [str(n) for n in range(len(WRITTEN))]
    with Cormorant.from_texts(WRITTEN, FAKE, metadatas, ids=ids) as store:
        yield store


def test_defaults_are_the_documented_ones() -> None:
    made = hybrid(Fixed(docs=[]), Fixed(docs=[]))
    assert (made.vector_weight, made.keyword_weight) == (0.7, 0.3)
    assert (made.top_k, made.rrf_k) == (5, 60)


async def test_scores_are_weighted_reciprocal_ranks() -> None:
    made = hybrid(
        Fixed(docs=[doc("a", "1"), doc("b", "2")]), Fixed(docs=[doc("b", "2"), doc("c", "3")])
    )
    for result in (made.retrieve("q"), await made.aretrieve("q")):
        assert [(hit.id, hit.score) for hit in result] == [
            ("2", pytest.approx(0.7 / 62 + 0.3 / 61)),
            ("1", pytest.approx(0.7 / 61)),
            ("3", pytest.approx(0.3 / 62)),
        ]
        assert {name: leg.rank for name, leg in result.hits[0].legs.items()} == {
            "vector": 2,
            "text": 1,
        }


@pytest.mark.parametrize("settings", [{}, {"top_k": 12}, {"fetch_k": 20}, {"rrf_k": 0}])
async def test_the_store_fuses_as_the_legs_would(
    vs: Cormorant, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[str] = []
    search = Door.search

    def counted(door: Any, query: Any) -> Any:
        modes.append(query.resolved_mode)
        return search(door, query)

    monkeypatch.setattr(Door, "search", counted)
    vector, text = vs.as_retriever(), vs.as_retriever(search_type="text")
    inside = hybrid(vector, text, **settings)
    outside = hybrid(vector.with_config(tags=["w"]), text.with_config(tags=["w"]), **settings)
    for question in ("fish", "boat tide", "gull net sail", "whale fish"):
        for call in ({}, {"filter": {"even": True}}, {"k": 3}):
            modes.clear()
            expected = outside.retrieve(question, **call)
            assert sorted(modes) == ["text", "vector"]
            modes.clear()
            result = inside.retrieve(question, **call)
            assert modes == ["hybrid"]
            assert [(h.id, h.score) for h in result] == [(h.id, h.score) for h in expected]
            assert [(h.id, h.score) for h in await inside.aretrieve(question, **call)] == [
                (h.id, h.score) for h in expected
            ]
            assert len(result) == call.get("k", settings.get("top_k", 5))


def test_over_other_stores_and_bm25() -> None:
    """Their ids differ or are missing; equal texts are still found to be one document."""
    store = InMemoryVectorStore(FAKE)
    documents = [doc(text, n=n) for n, text in enumerate(["a fish", "a boat", "a net"])]
    store.add_documents(documents)
    made = hybrid(store.as_retriever(), BM25Retriever.from_documents(documents))
    result = made.retrieve("boat")
    assert len(result) == 3
    (boat,) = [hit for hit in result if hit.text == "a boat"]
    assert set(boat.legs) == {"vector", "text"}


async def test_legs_are_asked_deeply_unless_told_otherwise(vs: Cormorant) -> None:
    told, plain = Told(docs=[doc("a")]), Fixed(docs=[doc("b")])
    hybrid(told, plain).invoke("q")
    assert told.heard.pop() == {"k": 50}
    hybrid(told, plain, top_k=20).invoke("q")
    assert told.heard.pop() == {"k": 80}
    both = hybrid(told, told, fetch_k=7)
    both.invoke("q")
    assert told.heard == [{"k": 7}] * 2
    told.heard.clear()
    await both.ainvoke("q", k=3, fetch_k=9)
    assert told.heard == [{"k": 9}] * 2
    own = BM25Retriever.from_texts(WRITTEN, k=6)
    counters = hybrid(own, Told(docs=[])).retrieve("fish").counters
    assert counters["documents"] == 6


def test_a_calls_arguments_reach_both_or_are_refused() -> None:
    told = Told(docs=[doc("a", t=1), doc("b", t=1)])
    assert len(hybrid(told, told).invoke("q", k=1, filter={"t": 1})) == 1
    assert all(heard["filter"] == {"t": 1} for heard in told.heard)
    assert len(hybrid(told, told).invoke("q", top_k=1)) == 1
    with pytest.raises(UsageError, match="Fixed takes no k"):
        hybrid(told, Fixed(docs=[])).invoke("q", k=1)
    with pytest.raises(QueryError, match="the same thing"):
        hybrid(told, told).invoke("q", k=1, top_k=2)


async def test_a_failing_leg_is_left_out_when_asked_to() -> None:
    legs = (Failing(), Fixed(docs=[doc("a")]))
    with pytest.raises(RuntimeError):
        hybrid(*legs).invoke("q")
    result = await hybrid(*legs, on_error="degrade").aretrieve("q")
    assert [hit.text for hit in result] == ["a"]
    assert result.degraded == ("vector failed and was left out: RuntimeError: the index is away",)


def test_a_scope_narrows_both_legs(vs: Cormorant) -> None:
    made = hybrid(vs.as_retriever(), BM25Retriever(vectorstore=vs))
    config: Any = {"configurable": {"scope": {"even": True}}}
    found = made.invoke("fish", config)
    assert len(found) == 5
    assert all(d.metadata["even"] for d in found)


@pytest.mark.parametrize(
    "settings",
    [
        {"vector_weight": 0, "keyword_weight": 0},
        {"vector_weight": -0.1},
        {"top_k": 0},
        {"rrf_k": -1},
        {"fetch_k": 4},
        {"alpha": 0.5},
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        hybrid(Fixed(docs=[]), Fixed(docs=[]), **settings)


def test_a_leg_of_weight_0_changes_no_score(vs: Cormorant) -> None:
    made = hybrid(vs.as_retriever(), vs.as_retriever(search_type="text"), keyword_weight=0)
    expected = vs.similarity_search("fish", k=5)
    assert texts(made.invoke("fish")) == texts(expected)


def test_k_is_another_name_for_top_k_when_it_is_made_too() -> None:
    parts = {"vector_retriever": Fixed(docs=[]), "keyword_retriever": Fixed(docs=[])}
    assert HybridRetriever(**parts, k=3).top_k == 3
    assert HybridRetriever(**parts, k=3, top_k=3).top_k == 3
    with pytest.raises(QueryError, match="k and top_k are the same thing"):
        HybridRetriever(**parts, k=3, top_k=4)
    with pytest.raises(UsageError, match="Did you mean 'vector_weight'"):
        HybridRetriever(**parts, alpha=0.5)


def test_the_store_that_fuses_tells_the_journey_in_order() -> None:
    with Cormorant.from_texts(
        [f"fish {n}" for n in range(9)], DeterministicFakeEmbedding(size=8)
    ) as vs:
        hybrid = HybridRetriever(
            vector_retriever=vs.as_retriever(),
            keyword_retriever=vs.as_retriever(search_type="text"),
            top_k=2,
        )
        found = hybrid.retrieve("fish")
        assert found.plan[0].startswith("fuse: rrf inside the store")
        for hit in found:
            stages = [step.stage for step in hit.journey]
            assert stages[-2:] == ["hybrid", "fuse"]
            assert set(stages[:-2]) <= {"vector", "text"}
            assert stages[:-2]
