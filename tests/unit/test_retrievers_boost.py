"""Do priorities and titles count as they are told to, and no other way?"""

from __future__ import annotations

import pickle
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Fixed, Told, doc, texts

from cormorant.errors import QueryError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import BoostRetriever, FreshnessRetriever
from cormorant.langchain.retrievers.boost import Priority, TitleHit

DOCS = [doc("a", rank=1), doc("b", rank=2, kind="manual"), doc("c", rank=3, kind="forum")]


def boosted(*boosts: Any, **settings: Any) -> BoostRetriever:
    return BoostRetriever(retriever=Fixed(docs=DOCS), boosts=list(boosts), **settings)


class TestRanking:
    def test_a_priority_multiplies_relevance(self) -> None:
        result = boosted(Priority("kind", {"manual": 2, "forum": 0.5})).retrieve("q")
        scores = [(hit.text, hit.score) for hit in result]
        assert scores == [
            ("b", pytest.approx(2 * 2 / 3)),
            ("a", pytest.approx(1)),
            ("c", pytest.approx(0.5 / 3)),
        ]

    def test_places_stand_for_relevance_that_nobody_told_and_it_is_said(self) -> None:
        (sentence,) = boosted(lambda q, d: 1).retrieve("q").degraded
        assert "places stand for relevance" in sentence

    def test_relevance_that_is_told_is_used_and_kept(self) -> None:
        with Cormorant.from_texts(
            ["fish fish", "fish of note"], None, [{"pin": 0}, {"pin": 1}]
        ) as vs:
            base = vs.as_retriever(search_type="text")
            plain = {
                hit.text: hit.relevance
                for hit in BoostRetriever(retriever=base, boosts=[lambda q, d: 1]).retrieve("fish")
            }
            result = BoostRetriever(retriever=base, boosts=[Priority("pin", {1: 10})]).retrieve(
                "fish"
            )
            assert [hit.text for hit in result] == ["fish of note", "fish fish"]
            assert not result.degraded
            for hit in result:
                assert hit.relevance == pytest.approx(plain[hit.text])
                assert hit.score == pytest.approx(
                    plain[hit.text] * (10 if hit.metadata["pin"] else 1)
                )

    def test_boosts_multiply_and_the_journey_shows_them(self) -> None:
        hit = boosted(Priority("kind", {"manual": 2}), lambda q, d: 1.5).retrieve("q").hits[0]
        assert hit.text == "b"
        assert hit.journey[-1].stage == "boost"
        assert "0.6667 × 2 (Priority) × 1.5 (<lambda>) = 2.0000" in hit.journey[-1].says

    def test_ties_keep_the_retrievers_order(self) -> None:
        assert texts(boosted(lambda q, d: 0).invoke("q")) == ["a", "b", "c"]

    def test_k_is_5_of_30_candidates(self) -> None:
        child = Told(docs=[doc(str(n)) for n in range(40)])
        retriever = BoostRetriever(retriever=child, boosts=[lambda q, d: 1])
        assert len(retriever.invoke("q")) == 5
        assert len(retriever.invoke("q", k=35)) == 35
        assert len(retriever.invoke("q", k=2, fetch_k=3)) == 2
        assert [heard["k"] for heard in child.heard] == [30, 35, 3]

    async def test_async_ranks_the_same(self) -> None:
        retriever = boosted(Priority("kind", {"manual": 2}))
        assert texts(await retriever.ainvoke("q")) == texts(retriever.invoke("q"))


class TestBoosts:
    @pytest.mark.parametrize(
        ("value", "factor"),
        [("manual", 2), (["x", "manual"], 2), ("x", 1), (None, 1), ({"a": 1}, 1), ([], 1)],
    )
    def test_priority_by_value(self, value: Any, factor: float) -> None:
        boost = Priority("kind", {"manual": 2})
        assert boost("q", Document(page_content="", metadata={"kind": value})) == factor

    @pytest.mark.parametrize(
        ("query", "title", "factor"),
        [
            ("which bird dives?", "Diving birds", 1.5),
            ("which bird dives?", "Birds", 1.25),
            ("which bird dives?", "Boats", 1),
            ("which bird dives?", None, 1),
            ("潜水", "潜水的鸟", 1.5),
            ("???", "Birds", 1),
        ],
    )
    def test_title_by_the_share_of_terms_it_has(
        self, query: str, title: Any, factor: float
    ) -> None:
        found = TitleHit()(query, Document(page_content="", metadata={"title": title}))
        assert found == pytest.approx(factor)

    def test_they_are_pickled(self) -> None:
        retriever = boosted(Priority("kind", {"manual": 2}), TitleHit())
        assert texts(pickle.loads(pickle.dumps(retriever)).invoke("q")) == ["b", "a", "c"]


class TestArguments:
    @pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "2", None, True])
    def test_a_boost_that_gives_no_factor_is_refused(self, wrong: Any) -> None:
        with pytest.raises(UsageError, match="at least 0"):
            boosted(lambda q, d: wrong).invoke("q")
        with pytest.raises(UsageError, match="at least 0"):
            Priority("kind", {"a": wrong})

    def test_no_boosts_leave_the_order_and_the_relevance(self) -> None:
        plain, made = boosted(lambda _, __: 1.0).retrieve("q"), boosted().retrieve("q")
        assert [(hit.text, hit.score) for hit in made] == [(hit.text, hit.score) for hit in plain]
        assert all("× 1 (no boost)" in hit.journey[-1].says for hit in made)

    @pytest.mark.parametrize("boosts", [None, TitleHit(), "x", [1], {TitleHit()}])
    def test_what_are_no_boosts_is_refused(self, boosts: Any) -> None:
        with pytest.raises(UsageError, match="boosts must be a list of functions"):
            BoostRetriever(retriever=Fixed(docs=[]), boosts=boosts)

    def test_less_candidates_than_documents_wanted_are_refused(self) -> None:
        with pytest.raises(QueryError, match="fetch_k"):
            boosted(TitleHit(), k=5, fetch_k=3)

    def test_a_filter_reaches_the_retriever_or_is_refused(self) -> None:
        with pytest.raises(UsageError, match="filter"):
            boosted(TitleHit()).invoke("q", filter={"a": 1})
        store = Cormorant.from_texts(
            ["a", "b"], DeterministicFakeEmbedding(size=4), [{"n": 1}, {"n": 2}]
        )
        with store as vs:
            found = BoostRetriever(retriever=vs.as_retriever(), boosts=[TitleHit()]).invoke(
                "a", filter={"n": 2}
            )
            assert texts(found) == ["b"]


def test_all_documents_of_a_question_are_aged_by_one_clock() -> None:
    """Two of one date tie, however long the ranking takes."""
    told: list[datetime] = []

    def clock() -> datetime:
        told.append(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=300 * len(told)))
        return told[-1]

    same = [doc(text, day="2025-12-02") for text in "abc"]
    retriever = FreshnessRetriever(retriever=Fixed(docs=same), date_field="day", clock=clock)
    factors = [hit.journey[-1].says.split(" = ")[0][-20:] for hit in retriever.retrieve("q")]
    assert len(set(factors)) == 1
    assert len(told) == 1
