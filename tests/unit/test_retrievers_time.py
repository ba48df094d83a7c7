"""Does time count as it is told to: by age, by last access, whatever form dates come in?"""

from __future__ import annotations

import pickle
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Fixed, Told, doc, texts

from cormorant.errors import QueryError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import FreshnessRetriever
from cormorant.langchain.retrievers.moments import moment, moment_in

NOW = datetime(2024, 6, 1, tzinfo=UTC)
FIFTH = datetime(2024, 1, 5, tzinfo=UTC)


def now() -> datetime:
    return NOW


class TestMoments:
    @pytest.mark.parametrize(
        "value",
        [
            FIFTH,
            FIFTH.replace(tzinfo=None),
            datetime(2024, 1, 5, 8, tzinfo=timezone(timedelta(hours=8))),
            date(2024, 1, 5),
            1704412800,
            1704412800.0,
            1704412800_000,
            1704412800_000_000,
            1704412800_000_000_000,
            "1704412800",
            "1704412800.0",
            "2024-01-05",
            "2024-01-05T00:00:00Z",
            "2024-01-05T08:00:00+08:00",
            "2024-01-05 00:00",
            "20240105",
            "2024/1/5",
            "2024.01.05",
            "2024年1月5日",
            "January 5, 2024",
            "Jan 5, 2024",
            "5 Jan 2024",
            "5 January 2024",
            "Fri, 05 Jan 2024 00:00:00 GMT",
            " 2024-01-05 ",
        ],
    )
    def test_every_form_of_a_date_is_read(self, value: Any) -> None:
        assert moment(value) == FIFTH

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (2024, datetime(2024, 1, 1, tzinfo=UTC)),
            ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
            ("2024-03", datetime(2024, 3, 1, tzinfo=UTC)),
            ("2024年3月", datetime(2024, 3, 1, tzinfo=UTC)),
            ("Mar 2024", datetime(2024, 3, 1, tzinfo=UTC)),
            (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ],
    )
    def test_years_and_months_begin(self, value: Any, expected: datetime) -> None:
        assert moment(value) == expected

    @pytest.mark.parametrize(
        "value",
        [
            None,
            "",
            "yesterday",
            "01/02/2024",
            "2024-02-30",
            "20240230",
            "2024/13/01",
            True,
            float("nan"),
            float("inf"),
            1e300,
            {},
            object(),
        ],
    )
    def test_what_says_no_date_says_none(self, value: Any) -> None:
        assert moment(value) is None

    def test_fields_are_reached_by_dots_and_of_several_the_latest_counts(self) -> None:
        assert moment_in({"meta": {"day": "2024-01-05"}}, "meta.day") == FIFTH
        assert moment_in({"meta.day": "2024-01-05"}, "meta.day") == FIFTH
        assert moment_in({"day": ["2020", "2024-01-05", "?"]}, "day") == FIFTH
        assert moment_in({"day": []}, "day") is None
        assert moment_in({"meta": 1}, "meta.day") is None


def fresh(*docs: Document, **settings: Any) -> FreshnessRetriever:
    return FreshnessRetriever(
        retriever=Fixed(docs=list(docs)), date_field="day", clock=now, **settings
    )


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


class TestFreshness:
    def test_relevance_is_halved_by_every_half_life(self) -> None:
        result = fresh(
            doc("new", day=NOW), doc("month", day=days_ago(30)), doc("two", day=days_ago(60))
        ).retrieve("q")
        assert [(hit.text, hit.score) for hit in result] == [
            ("new", pytest.approx(1)),
            ("month", pytest.approx(2 / 3 / 2)),
            ("two", pytest.approx(1 / 3 / 4)),
        ]
        week = fresh(doc("a", day=days_ago(14)), half_life_days=7).retrieve("q")
        assert week.hits[0].score == pytest.approx(1 / 4)

    def test_what_is_new_comes_before_what_is_a_little_more_relevant(self) -> None:
        found = fresh(doc("old", day=days_ago(300)), doc("new", day=days_ago(1))).invoke("q")
        assert texts(found) == ["new", "old"]

    def test_the_journey_shows_the_formula(self) -> None:
        hit = fresh(doc("a", day=days_ago(12))).retrieve("q").hits[0]
        assert hit.journey[-1].says == "Relevance 1.0000 × 2^(−12.0/30 days) = 0.7579."

    def test_a_date_to_come_counts_as_now(self) -> None:
        assert fresh(doc("a", day="2999-01-01")).retrieve("q").hits[0].score == 1

    @pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
    @pytest.mark.parametrize("search_type", ["similarity", "hybrid", "mmr"])
    def test_scores_are_in_0_to_1_whatever_the_metric(self, metric: str, search_type: str) -> None:
        with Cormorant.from_texts(
            ["a fish", "a boat", "the sea"],
            DeterministicFakeEmbedding(size=4),
            [{"day": days_ago(days)} for days in (0, 30, 400)],
            metric=metric,
        ) as vs:
            result = FreshnessRetriever(
                vectorstore=vs, search_type=search_type, date_field="day", clock=now
            ).retrieve("a fish")
            assert len(result) == 3
            assert not result.degraded
            for hit in result:
                age = (NOW - moment(hit.metadata["day"])) / timedelta(days=1)
                assert 0 <= hit.score <= 1
                assert hit.score == pytest.approx(hit.relevance * 2 ** (-age / 30))

    def test_a_store_without_relevance_scores_works(self) -> None:
        """InMemoryVectorStore raises NotImplementedError for them."""
        store = InMemoryVectorStore.from_texts(
            ["a fish", "a boat"],
            DeterministicFakeEmbedding(size=4),
            [{"day": "2024-06-01"}, {"day": "2024-06-01"}],
        )
        result = FreshnessRetriever(vectorstore=store, date_field="day", clock=now).retrieve(
            "a fish"
        )
        assert (result.hits[0].text, result.hits[0].score) == ("a fish", pytest.approx(1))
        assert not result.degraded

    @pytest.mark.parametrize("scores", [(-140.4, -3.0), (0.2, 7.5), (0.1, float("nan"))])
    async def test_a_negative_score_or_a_distance_is_never_relevance(self, scores: Any) -> None:
        class Distances(InMemoryVectorStore):
            def _similarity_search_with_relevance_scores(
                self, query: str, k: int = 4, **kwargs: Any
            ) -> Any:
                return [(doc("first", day=NOW), scores[0]), (doc("second", day=NOW), scores[1])]

        store = Distances(DeterministicFakeEmbedding(size=4))
        retriever = FreshnessRetriever(vectorstore=store, date_field="day", clock=now)
        for result in (retriever.retrieve("q"), await retriever.aretrieve("q")):
            assert [(hit.text, hit.score) for hit in result] == [("first", 1), ("second", 0.5)]
            assert "its places stand for relevance" in result.degraded[0]

    def test_any_form_of_date_compares(self) -> None:
        forms = ["2024-06-01T00:00:00Z", NOW.timestamp(), date(2024, 6, 1), "2024/6/1", NOW]
        result = fresh(*(doc(str(n), day=form) for n, form in enumerate(forms))).retrieve("q")
        assert [hit.score for hit in result] == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])

    def test_a_missing_date_is_not_the_epoch(self) -> None:
        result = fresh(doc("none"), doc("bad", day="soon")).retrieve("q")
        assert [hit.score for hit in result] == [0.5, 0.25]
        assert "count as one half-life old" in result.degraded[-1]

    def test_what_a_missing_date_counts_as_can_be_said(self) -> None:
        docs = [doc("none"), doc("dated", day=NOW)]
        assert fresh(*docs, missing_date="new").retrieve("q").hits[0].score == 1
        dropped = fresh(*docs, missing_date="drop").retrieve("q")
        assert [hit.text for hit in dropped] == ["dated"]
        assert "were left out" in dropped.degraded[-1]
        with pytest.raises(UsageError, match="'none' has no date under 'day'"):
            fresh(*docs, missing_date="raise").invoke("q")

    def test_k_is_5_of_30_candidates(self) -> None:
        child = Told(docs=[doc(str(n), day=NOW) for n in range(40)])
        retriever = FreshnessRetriever(retriever=child, date_field="day")
        assert (retriever.k, retriever.fetch_k, retriever.half_life_days) == (5, 30, 30)
        assert len(retriever.invoke("q")) == 5
        assert child.heard[0]["k"] == 30

    async def test_async_ranks_the_same(self) -> None:
        retriever = fresh(doc("old", day=days_ago(300)), doc("new", day=days_ago(1)))
        assert texts(await retriever.ainvoke("q")) == ["new", "old"]

    def test_metadata_stays_clean_and_documents_are_copies(self) -> None:
        held = doc("a", day=NOW)
        (found,) = fresh(held).invoke("q")
        assert found.metadata == held.metadata == {"day": NOW}
        assert fresh(held).invoke("q", with_scores=True)[0].metadata["_cormorant"]["score"] == 1

    def test_a_scope_holds(self) -> None:
        config = {"configurable": {"scope": {"tenant": "acme"}}}
        with Cormorant.from_texts(
            ["a", "b"], DeterministicFakeEmbedding(size=4), [{"tenant": "acme"}, {"tenant": "x"}]
        ) as vs:
            retriever = FreshnessRetriever(vectorstore=vs, date_field="day")
            assert texts(retriever.invoke("b", config)) == ["a"]
        store = InMemoryVectorStore.from_texts(
            ["a", "b"], DeterministicFakeEmbedding(size=4), [{"tenant": "acme"}, {"tenant": "x"}]
        )
        with pytest.raises(ScopeError, match="outside"):
            FreshnessRetriever(vectorstore=store, date_field="day").invoke("b", config)

    def test_it_is_pickled(self) -> None:
        retriever = fresh(doc("a", day=NOW))
        assert texts(pickle.loads(pickle.dumps(retriever)).invoke("q")) == ["a"]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"half_life_days": 0},
            {"half_life_days": -1},
            {"half_life_days": "30"},
            {"missing_date": "epoch"},
            {"date_field": ""},
            {"date_field": None},
            {"k": 0},
            {"k": 5, "fetch_k": 4},
            {"halflife": 3},
            {"search_type": "mmr"},
            {"retriever": None},
        ],
    )
    def test_wrong_arguments_are_refused(self, wrong: dict[str, Any]) -> None:
        good = {"retriever": Fixed(docs=[]), "date_field": "day"}
        with pytest.raises(UsageError):
            FreshnessRetriever(**{**good, **wrong})
        assert issubclass(QueryError, UsageError)
