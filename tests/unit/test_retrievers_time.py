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

from cormorant.errors import QueryError, RecordError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.provenance import Provenance, attach
from cormorant.langchain.retrievers import (
    FreshnessRetriever,
    TimeWeightedVectorStoreRetriever,
)
from cormorant.langchain.retrievers.rescoring.moments import moment, moment_in

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

    @pytest.mark.parametrize("told", [-0.5, 7.5, float("nan"), None])
    def test_nor_is_what_a_retriever_tells_outside_of_0_to_1(self, told: float | None) -> None:
        first = attach(doc("first", day=NOW), Provenance(relevance=told))
        second = attach(doc("second", day=NOW), Provenance(relevance=0.9))
        result = fresh(first, second).retrieve("q")
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


FAKE = DeterministicFakeEmbedding(size=8)


class Clock:
    """A clock that stands until it is told to tick."""

    def __init__(self) -> None:
        self.at = datetime(2024, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def tick(self, delta: timedelta) -> None:
        self.at += delta


def weighted(store: Any, **settings: Any) -> TimeWeightedVectorStoreRetriever:
    return TimeWeightedVectorStoreRetriever(vectorstore=store, **settings)


@pytest.fixture(params=["cormorant", "another"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "another":
        yield InMemoryVectorStore(FAKE)
        return
    with Cormorant(FAKE) as made:
        yield made


class TestTimeWeighted:
    def test_what_was_accessed_lately_comes_first(self, store: Any) -> None:
        clock = Clock()
        retriever = weighted(store, k=1, decay_rate=0.5, clock=clock)
        retriever.add_documents([doc("old", "1"), doc("new", "2")], current_time=days_ago(900))
        assert texts(retriever.invoke("old")) == ["old"]
        clock.tick(timedelta(days=30))
        retriever.add_documents([doc("newer", "3")])
        assert texts(retriever.invoke("new")) == ["newer"], "recency outweighs relevance here"
        assert texts(weighted_again(retriever, decay_rate=0).invoke("new")) == ["new"]

    def test_returned_memories_count_as_accessed(self, store: Any) -> None:
        clock = Clock()
        retriever = weighted(store, k=1, decay_rate=0.9, recent=0, clock=clock)
        retriever.add_documents([doc("a", "1"), doc("b", "2")])
        clock.tick(timedelta(hours=5))
        (found,) = retriever.invoke("a")
        accessed = moment(found.metadata["last_accessed_at"])
        assert accessed == datetime(2024, 1, 1, 5, tzinfo=UTC)
        clock.tick(timedelta(hours=1))
        hits = retriever.retrieve("b", k=2).hits
        says = {hit.text: hit.journey[-1].says for hit in hits}
        assert "last accessed 1.0 hours ago" in says["a"]
        assert "last accessed 6.0 hours ago" in says["b"]

    def test_reading_leaves_no_trace_where_it_must_not(self, store: Any) -> None:
        clock = Clock()
        retriever = weighted(store, touch=False, clock=clock)
        retriever.add_documents([doc("a", "1")])
        clock.tick(timedelta(hours=5))
        for _ in range(2):
            hit = retriever.retrieve("a").hits[0]
            assert "last accessed 5.0 hours ago" in hit.journey[-1].says

    def test_the_memories_added_last_are_candidates_unless_told_otherwise(self, store: Any) -> None:
        retriever = weighted(store, search_kwargs={"k": 1}, k=4)
        retriever.add_documents([doc(f"{n}", f"{n}") for n in range(9)])
        (nearest,) = store.similarity_search("0", k=1)
        assert set(texts(weighted_again(retriever, recent=3).invoke("0"))) == {"0", "6", "7", "8"}
        assert texts(weighted_again(retriever, recent=0).invoke("0")) == [nearest.page_content]

    async def test_async_finds_the_same(self, store: Any) -> None:
        retriever = weighted(store, k=2)
        ids = await retriever.aadd_documents([doc("a", "1"), doc("b", "2")])
        assert ids == ["1", "2"]
        assert texts(await retriever.ainvoke("a")) == texts(retriever.invoke("a")) == ["a", "b"]

    def test_deleted_memories_are_not_returned(self, store: Any) -> None:
        retriever = weighted(store)
        retriever.add_documents([doc("a", "1"), doc("b", "2"), doc("c", "3")])
        store.delete(["2"])
        assert sorted(texts(retriever.invoke("b"))) == ["a", "c"]
        retriever.delete(["3"])
        assert texts(retriever.invoke("b")) == ["a"]

    def test_nothing_is_remembered_when_the_store_failed(self, store: Any) -> None:
        retriever = weighted(store)
        with pytest.raises((TypeError, UsageError)):
            retriever.add_documents([doc("a", "1")], ids=3)
        assert retriever.memory_stream == []

    @pytest.mark.parametrize(
        "accessed", ["2024-01-01", NOW, NOW.replace(tzinfo=None), 1704412800.0, date(2024, 1, 1)]
    )
    def test_any_form_of_date_is_taken(self, store: Any, accessed: Any) -> None:
        retriever = weighted(store)
        retriever.add_documents([doc("a", "1", last_accessed_at=accessed)])
        assert texts(retriever.invoke("a")) == ["a"]

    def test_a_restart_forgets_nothing_the_store_has(self, store: Any) -> None:
        weighted(store).add_documents([doc("a", "1"), doc("b", "2")])
        assert sorted(texts(weighted(store).invoke("a"))) == ["a", "b"]

    def test_added_documents_are_not_changed(self, store: Any) -> None:
        given = doc("a", "1", tags=["x"])
        retriever = weighted(store)
        retriever.add_documents([given])
        retriever.invoke("a")[0].metadata["tags"].append("y")
        assert given.metadata == {"tags": ["x"]}
        assert retriever.invoke("a")[0].metadata["tags"] == ["x"]

    def test_other_scores_are_added(self, store: Any) -> None:
        retriever = weighted(store, other_score_keys=["importance"], k=1)
        retriever.add_documents([doc("a", "1"), doc("b", "2", importance=9)])
        assert texts(retriever.invoke("a")) == ["b"]
        retriever.add_documents([doc("c", "3", importance="high")])
        with pytest.raises(UsageError, match="must be a number"):
            retriever.invoke("a")

    def test_a_filter_holds_for_the_memories_added_last_too(self) -> None:
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs)
            retriever.add_documents([doc("a", "1", n=1), doc("b", "2", n=2)])
            assert texts(retriever.invoke("a", filter={"n": 2})) == ["b"]
            fixed = weighted(vs, search_kwargs={"k": 9, "filter": {"n": 1}})
            assert texts(fixed.invoke("b")) == ["a"]
        other = weighted(InMemoryVectorStore(FAKE))
        other.add_documents([doc("a", "1", n=1), doc("b", "2", n=2)])
        assert texts(other.invoke("a", filter=lambda each: each.metadata["n"] == 2)) == ["b"]

    def test_a_store_that_gives_distances_is_ranked_by_its_places(self) -> None:
        class Distances(InMemoryVectorStore):
            def _similarity_search_with_relevance_scores(
                self, query: str, k: int = 4, **kwargs: Any
            ) -> Any:
                return [(each, -140.0) for each in self.similarity_search(query, k)]

        retriever = weighted(Distances(FAKE))
        retriever.add_documents([doc("a", "1"), doc("b", "2")])
        result = retriever.retrieve("a")
        assert [hit.relevance for hit in result] == [1, 0.5]
        assert "its places stand for relevance" in result.degraded[0]

    @pytest.mark.parametrize(
        "wrong", [{"k": 0}, {"decay_rate": 2}, {"decay_rate": "x"}, {"recent": -1}, {"decay": 1}]
    )
    def test_wrong_arguments_are_refused(self, store: Any, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            weighted(store, **wrong)


class TestMemoriesInAStore:
    def test_access_times_survive_a_restart(self, tmp_path: Path) -> None:
        clock = Clock()
        with Cormorant(FAKE, path=tmp_path / "kb") as vs:
            weighted(vs, clock=clock).add_documents([doc("a", "1"), doc("b", "2")])
            clock.tick(timedelta(hours=5))
            weighted(vs, k=1, recent=0, clock=clock).invoke("a")
        clock.tick(timedelta(hours=1))
        with Cormorant(FAKE, path=tmp_path / "kb") as vs:
            hits = weighted(vs, clock=clock).retrieve("a").hits
        says = {hit.text: hit.journey[-1].says for hit in hits}
        assert "last accessed 1.0 hours ago" in says["a"]
        assert "last accessed 6.0 hours ago" in says["b"]

    def test_a_reading_changes_no_record_and_brings_back_none(self) -> None:
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs)
            retriever.add_documents([doc("a", "1")])
            (before,) = vs.get_by_ids(["1"])
            retriever.invoke("a")
            assert vs.get_by_ids(["1"]) == [before]
            vs.delete(["1"])
            assert retriever.invoke("a") == []
            assert vs.store.count() == 0

    def test_deleting_forgets_when_it_was_accessed(self) -> None:
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs)
            retriever.add_documents([doc("a", "1")])
            retriever.invoke("a")
            assert len(vs.store.document_ids("accessed:")) == 1
            retriever.delete(["1"])
            assert vs.store.document_ids("accessed:") == []

    def test_deleting_forgets_it_for_every_scope_that_asked(self) -> None:
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs)
            retriever.add_documents(
                [doc("a", "1", tenant="acme", team="red"), doc("b", "2", tenant="acme")]
            )
            retriever.invoke("a")
            for scope in ({"tenant": "acme"}, {"tenant": "acme", "team": "red"}):
                retriever.invoke("a", {"configurable": {"scope": scope}})
            assert len(vs.store.document_ids("accessed:")) == 5
            acme = weighted(vs.scope(tenant="acme"))
            acme.delete(["2"])  # what was noted outside its scope is not its to delete
            assert len(vs.store.document_ids("accessed:")) == 4
            retriever.delete(["1", "2"])
            assert vs.store.document_ids("accessed:") == []

    def test_the_stores_own_delete_leaves_the_access_time_and_nothing_of_the_memory(self) -> None:
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs)
            retriever.add_documents([doc("a secret", "1", secret="x")])
            retriever.invoke("a")
            vs.delete(["1"])
            (left,) = vs.store.documents(vs.store.document_ids("accessed:"))
            assert (left.text, set(left.metadata)) == ("", {"at"})
            assert retriever.invoke("a") == []
            retriever.delete(["1"])
            assert vs.store.document_ids("accessed:") == []

    def test_a_memory_added_again_begins_anew(self) -> None:
        clock = Clock()
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs, touch=True, clock=clock)
            retriever.add_documents([doc("a", "1")])
            retriever.invoke("a")
            vs.delete(["1"])
            clock.tick(timedelta(hours=900))
            retriever.add_documents([doc("another", "1")])
            hit = retriever.retrieve("another").hits[0]
            assert "last accessed 0.0 hours ago" in hit.journey[-1].says
            clock.tick(timedelta(hours=2))
            (hit,) = retriever.retrieve("another").hits
            assert "last accessed 2.0 hours ago" in hit.journey[-1].says

    async def test_async_deletes_the_same(self, store: Any) -> None:
        retriever = weighted(store)
        await retriever.aadd_documents([doc("a", "1"), doc("b", "2")])
        await retriever.ainvoke("a")
        await retriever.adelete(["1"])
        assert texts(await retriever.ainvoke("a")) == ["b"]
        if isinstance(store, Cormorant):
            assert len(store.store.document_ids("accessed:")) == 1

    def test_what_one_tenant_reads_shows_in_nobody_elses_ranking(self) -> None:
        clock = Clock()
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs, clock=clock)
            retriever.add_documents(
                [doc("a", "1", tenant="acme", secret="x"), doc("b", "2", tenant="other")]
            )
            clock.tick(timedelta(hours=5))
            config = {"configurable": {"scope": {"tenant": "acme"}}}
            assert texts(retriever.invoke("b", config)) == ["a"]
            clock.tick(timedelta(hours=1))
            says = [hit.journey[-1].says for hit in retriever.retrieve("a", config)]
            assert "last accessed 1.0 hours ago" in says[0]
            everyone = retriever.retrieve("a").hits
            assert all("6.0 hours ago" in hit.journey[-1].says for hit in everyone)
            kept = vs.scope(tenant="acme").store.documents(vs.store.document_ids("accessed:"))
            assert all("secret" not in each.metadata for each in kept)

    def test_the_last_are_found_among_many_and_after_deletions(self) -> None:
        with Cormorant(FAKE) as vs:
            retriever = weighted(vs, search_kwargs={"k": 1}, k=4, touch=False)
            retriever.add_documents([doc(f"t{n}", f"{n}") for n in range(50)])
            vs.delete([str(n) for n in range(40, 49)])
            assert set(texts(retriever.invoke("t0", k=4))) >= {"t49", "t39", "t38"}
            retriever.add_documents([doc("next", "next")])
            (found,) = vs.get_by_ids(["next"])
            assert found.metadata["buffer_idx"] == 50

    def test_a_read_only_store_is_read_and_the_answer_says_so(self, tmp_path: Path) -> None:
        with Cormorant(FAKE, path=tmp_path / "kb") as vs:
            weighted(vs).add_documents([doc("a", "1")])
        with Cormorant(FAKE, path=tmp_path / "kb", read_only=True) as vs:
            result = weighted(vs).retrieve("a")
        assert [hit.text for hit in result] == ["a"]
        assert "accessed was not kept" in result.degraded[0]

    def test_a_memory_stream_is_refused(self) -> None:
        with Cormorant(FAKE) as vs, pytest.raises(UsageError, match="add_documents"):
            weighted(vs, memory_stream=[doc("a")])


def weighted_again(
    retriever: TimeWeightedVectorStoreRetriever, **changes: Any
) -> TimeWeightedVectorStoreRetriever:
    return retriever.model_copy(update=changes)


@pytest.mark.parametrize("field", ["created_at", "last_accessed_at"])
def test_a_moment_that_utc_has_no_year_for_is_refused(field: str) -> None:
    with Cormorant(DeterministicFakeEmbedding(size=8)) as vs:
        retriever = TimeWeightedVectorStoreRetriever(vectorstore=vs)
        east = timezone(timedelta(hours=8))
        first = datetime(1, 1, 1, tzinfo=east)
        with pytest.raises(RecordError, match=field):
            retriever.add_documents([Document("a fish", metadata={field: first})])
        assert vs.store.count() == 0


@pytest.mark.parametrize("most", [0, -1, "2", True, 1.5])
def test_a_config_that_allows_nothing_at_once_is_refused(most: Any) -> None:
    vs = Cormorant.from_texts(["a fish"], DeterministicFakeEmbedding(size=8))
    with vs, pytest.raises(UsageError, match="max_concurrency"):
        vs.as_retriever().invoke("fish", {"max_concurrency": most})
