"""Do several retrievers become one list, and is nothing lost or counted twice?"""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Blocking, Failing, Fixed, Slow, Told, doc, texts

from cormorant.errors import QueryError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers import BM25Retriever, EnsembleRetriever, MergerRetriever
from cormorant.langchain.retrievers.fusing import in_store
from cormorant.store.door import Door

WORDS = ["fish", "boat", "net", "sea", "gull"]


def ensemble(*lists: list[Document], **settings: Any) -> EnsembleRetriever:
    return EnsembleRetriever(retrievers=[Fixed(docs=each) for each in lists], **settings)


class TestFusion:
    def test_scores_are_weighted_reciprocal_ranks(self) -> None:
        retriever = ensemble(
            [doc("a", "1"), doc("b", "2")], [doc("b", "2"), doc("c", "3")], weights=[0.7, 0.3], c=10
        )
        hits = retriever.retrieve("q").hits
        assert [(hit.id, hit.score) for hit in hits] == [
            ("2", pytest.approx(0.7 / 12 + 0.3 / 11)),
            ("1", pytest.approx(0.7 / 11)),
            ("3", pytest.approx(0.3 / 12)),
        ]
        assert hits[0].contributions == {
            "Fixed": pytest.approx(0.7 / 12),
            "Fixed 2": pytest.approx(0.3 / 11),
        }

    def test_c_is_60_and_weights_are_equal_by_default(self) -> None:
        retriever = ensemble([doc("a")], [doc("b")])
        assert (retriever.c, retriever.weights) == (60, [0.5, 0.5])
        assert retriever.retrieve("q").hits[0].score == pytest.approx(0.5 / 61)
        assert ensemble([doc("a")], [doc("b")], weights=None).weights == [0.5, 0.5]

    def test_ties_go_to_the_leg_that_comes_first(self) -> None:
        found = ensemble([doc("a"), doc("b")], [doc("c"), doc("d")]).invoke("q")
        assert texts(found) == ["a", "c", "b", "d"]

    def test_documents_with_equal_text_and_different_ids_are_both_returned(self) -> None:
        found = ensemble([doc("same", "1", n=1)], [doc("same", "2", n=2)]).invoke("q")
        assert [(d.id, d.metadata["n"]) for d in found] == [("1", 1), ("2", 2)]

    def test_id_and_metadata_of_a_later_twin_are_kept(self) -> None:
        (found,) = ensemble([doc("same", n=1)], [doc("same", "x", page=7)]).invoke("q")
        assert (found.id, found.metadata) == ("x", {"n": 1, "page": 7})

    def test_a_missing_id_key_is_no_key_error(self) -> None:
        found = ensemble([doc("a", key=1), doc("b")], [doc("c", key=1)], id_key="key").invoke("q")
        assert texts(found) == ["a", "b"]

    @pytest.mark.parametrize("id_key", [None, "source"])
    def test_duplicates_within_one_list_count_once_at_the_best_rank(
        self, id_key: str | None
    ) -> None:
        """A document in many chunks must not beat a top hit by adding up."""
        many = [doc("chunk", source="x") for _ in range(5)]
        retriever = ensemble(
            [doc("top", source="y"), *many], [doc("top", source="y")], id_key=id_key
        )
        hits = retriever.retrieve("q").hits
        assert [hit.text for hit in hits] == ["top", "chunk"]
        assert hits[1].score == pytest.approx(0.5 / 62)

    def test_duplicates_within_one_list_push_nothing_down(self) -> None:
        retriever = ensemble([doc("a", "a"), doc("a", "a"), doc("b", "b")])
        hits = retriever.retrieve("q").hits
        assert [hit.legs["Fixed"].rank for hit in hits] == [1, 2]
        assert hits[1].score == pytest.approx(1 / 62)

    def test_what_is_returned_is_a_copy(self) -> None:
        held = doc("a", tags=["x"])
        ensemble([held]).invoke("q")[0].metadata["tags"].append("y")
        assert held.metadata == {"tags": ["x"]}

    def test_lists_that_are_there_can_be_fused(self) -> None:
        retriever = ensemble([], [], weights=[0.5, 0.5])
        found = retriever.weighted_reciprocal_rank([[doc("a"), doc("b")], [doc("b")]])
        assert texts(found) == ["b", "a"]
        with pytest.raises(QueryError, match="1 lists and 2 weights"):
            retriever.weighted_reciprocal_rank([[doc("a")]])

    def test_a_leg_of_weight_0_adds_its_documents_and_no_score(self) -> None:
        retriever = ensemble([doc("a")], [doc("b")], weights=[1, 0])
        assert [(h.text, h.score > 0) for h in retriever.retrieve("q").hits] == [
            ("a", True),
            ("b", False),
        ]


class TestJourney:
    def test_legs_and_steps_are_told(self) -> None:
        one = BM25Retriever.from_texts(["a fish", "a boat"], ids=["1", "2"])
        retriever = EnsembleRetriever(retrievers=[one, Fixed(docs=[doc("a fish", "1")])])
        (hit,) = retriever.retrieve("fish").hits
        assert hit.legs["text"].rank == 1
        assert hit.legs["text"].score > 0
        assert hit.legs["text"].standard == pytest.approx(1 / 61)
        assert hit.legs["Fixed"].rank == 1
        assert [step.stage for step in hit.journey] == ["text", "text", "Fixed", "fuse"]
        assert sum(hit.contributions.values()) == pytest.approx(hit.score)

    def test_stages_and_plan_are_told(self) -> None:
        result = ensemble([doc("a")], [doc("b")]).retrieve("q")
        assert [stage.name for stage in result.stages] == ["Fixed", "Fixed 2", "fuse"]
        assert result.counters["candidates"] == 2
        assert "fuse: rrf over 2 candidates" in result.plan[-1]

    def test_scores_come_under_one_key_when_asked_for(self) -> None:
        (found,) = ensemble([doc("a", n=1)]).invoke("q", with_scores=True)
        scores = found.metadata["_cormorant"]
        assert scores["fusion_score"] == scores["score"] == pytest.approx(1 / 61)
        assert scores["legs"] == {"Fixed": {"score": None, "rank": 1}}
        assert ensemble([doc("a", n=1)]).invoke("q")[0].metadata == {"n": 1}

    def test_an_ensemble_of_ensembles_keeps_both_journeys(self) -> None:
        inner = ensemble([doc("a")], name="inner")
        (hit,) = EnsembleRetriever(retrievers=[inner]).retrieve("q").hits
        assert [step.stage for step in hit.journey] == ["Fixed", "fuse", "inner", "fuse"]
        assert hit.legs["inner"].score == pytest.approx(1 / 61)


class TestConcurrency:
    def test_legs_run_at_once(self) -> None:
        barrier = threading.Barrier(3)
        legs = [Slow(docs=[doc(str(n))], barrier=barrier) for n in range(3)]
        assert len(EnsembleRetriever(retrievers=legs).invoke("q")) == 3

    async def test_legs_run_at_once_on_the_loop(self) -> None:
        class Meeting:
            def __init__(self) -> None:
                self.count, self.event = 0, asyncio.Event()

            async def wait(self) -> None:
                self.count += 1
                if self.count == 3:
                    self.event.set()
                await self.event.wait()

        meeting = Meeting()
        legs = [Slow(docs=[doc(str(n))], together=meeting) for n in range(3)]
        assert len(await EnsembleRetriever(retrievers=legs).ainvoke("q")) == 3

    async def test_context_variables_go_along(self) -> None:
        tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
        leg = RunnableLambda(lambda query: [doc(tenant.get())])
        retriever = EnsembleRetriever(retrievers=[leg, leg])
        tenant.set("acme")
        assert texts(retriever.invoke("q")) == ["acme"]
        assert texts(await retriever.ainvoke("q")) == ["acme"]

    async def test_a_blocking_leg_does_not_hold_the_loop(self) -> None:
        leg = Blocking(docs=[doc("a")])
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.005)

        ticking = asyncio.create_task(tick())
        await EnsembleRetriever(retrievers=[leg, leg]).ainvoke("q")
        ticking.cancel()
        assert threading.get_ident() not in leg.threads
        assert ticks > 3

    async def test_a_failure_cancels_the_others(self) -> None:
        cancelled = asyncio.Event()

        async def wait(query: str) -> list[Document]:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return []

        def plain(query: str) -> list[Document]:
            return []

        retriever = EnsembleRetriever(retrievers=[RunnableLambda(plain, afunc=wait), Failing()])
        with pytest.raises(RuntimeError, match="away"):
            await retriever.ainvoke("q")
        assert cancelled.is_set()


class TestFailure:
    async def test_raises_by_default(self) -> None:
        retriever = EnsembleRetriever(retrievers=[Fixed(docs=[doc("a")]), Failing()])
        with pytest.raises(RuntimeError, match="away"):
            retriever.invoke("q")
        with pytest.raises(RuntimeError, match="away"):
            await retriever.ainvoke("q")

    async def test_degrades_when_asked_to_and_says_so(self, caplog: Any) -> None:
        retriever = EnsembleRetriever(
            retrievers=[Fixed(docs=[doc("a")]), Failing()], on_error="degrade"
        )
        for result in (retriever.retrieve("q"), await retriever.aretrieve("q")):
            assert [hit.text for hit in result] == ["a"]
            assert not result.complete
            assert result.degraded == (
                "Failing failed and was left out: RuntimeError: the index is away",
            )
        assert "left out" in caplog.text
        (found,) = retriever.invoke("q", with_scores=True)
        assert found.metadata["_cormorant"]["degraded"] == list(result.degraded)

    async def test_the_last_leg_standing_raises(self) -> None:
        retriever = EnsembleRetriever(retrievers=[Failing(), Failing()], on_error="degrade")
        with pytest.raises(RuntimeError):
            retriever.invoke("q")
        with pytest.raises(RuntimeError):
            await retriever.ainvoke("q")

    def test_a_wrong_call_raises_all_the_same(self) -> None:
        leg = Fixed(docs=[doc("a")])
        retriever = EnsembleRetriever(
            retrievers=[leg, BM25Retriever.from_texts(["q"])], on_error="degrade"
        )
        with pytest.raises(UsageError, match="Fixed takes no filter"):
            retriever.invoke("q", filter={"a": 1})
        with pytest.raises(ScopeError):
            retriever.invoke("q", {"configurable": {"scope": {"tenant": "acme"}}})

    def test_degradation_is_handed_on(self) -> None:
        inner = EnsembleRetriever(
            retrievers=[Fixed(docs=[doc("a")]), Failing()], on_error="degrade"
        )
        assert EnsembleRetriever(retrievers=[inner]).retrieve("q").degraded


class TestArguments:
    async def test_k_and_filter_reach_every_leg(self) -> None:
        legs = [Told(docs=[doc("a", t=1), doc("b", t=1)]) for _ in range(2)]
        retriever = EnsembleRetriever(retrievers=legs)
        assert texts(retriever.invoke("q", k=1, filter={"t": 1})) == ["a"]
        await retriever.ainvoke("q", k=1, filter={"t": 1})
        assert all(leg.heard == [{"k": 1, "filter": {"t": 1}}] * 2 for leg in legs)

    def test_one_that_cannot_reach_a_leg_is_refused_before_any_is_asked(self) -> None:
        told = Told(docs=[doc("a")])
        retriever = EnsembleRetriever(retrievers=[told, Fixed(docs=[])])
        with pytest.raises(UsageError, match="Fixed takes no k"):
            retriever.invoke("q", k=1)
        assert not told.heard

    def test_fetch_k_is_what_each_leg_is_asked_for(self) -> None:
        told = Told(docs=[doc("a"), doc("b"), doc("c")])
        assert len(EnsembleRetriever(retrievers=[told], k=1, fetch_k=3).invoke("q")) == 1
        assert len(EnsembleRetriever(retrievers=[told]).invoke("q", k=2, fetch_k=7)) == 2
        assert [heard["k"] for heard in told.heard] == [3, 7]

    def test_a_leg_made_to_bring_more_still_does(self) -> None:
        leg = BM25Retriever.from_texts([f"fish {n}" for n in range(9)], k=6)
        retriever = EnsembleRetriever(retrievers=[leg])
        assert retriever.retrieve("fish", k=2).counters["documents"] == 6
        assert retriever.retrieve("fish", k=8).counters["documents"] == 8

    @pytest.mark.parametrize(
        "settings",
        [
            {"weights": [1.0]},
            {"weights": [0, 0]},
            {"weights": [1, -1]},
            {"weights": [1, float("nan")]},
            {"weights": ["1", 1]},
            {"c": -1},
            {"c": float("inf")},
            {"k": 0},
            {"k": 5, "fetch_k": 4},
            {"wieghts": [1, 1]},
            {"on_error": "ignore"},
        ],
    )
    def test_wrong_settings_are_refused(self, settings: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            ensemble([], [], **settings)

    @pytest.mark.parametrize("retrievers", [None, [], "abc"])
    def test_there_must_be_retrievers(self, retrievers: Any) -> None:
        with pytest.raises(UsageError, match="retrievers must be a list"):
            EnsembleRetriever(retrievers=retrievers)

    def test_any_runnable_will_do(self) -> None:
        chain = RunnableLambda(lambda query: [doc(query)]) | RunnableLambda(lambda found: found)
        assert texts(EnsembleRetriever(retrievers=[chain, chain]).invoke("q")) == ["q"]


@pytest.fixture(scope="module")
def vs() -> Iterator[Cormorant]:
    """A few words in many arrangements, so that scores tie often."""
    written = [" ".join(WORDS[(n * step) % 5] for step in (1, 2, 3)) for n in range(40)]
    metadatas = [{"n": n, "even": n % 2 == 0} for n in range(40)]
    ids = [str(n) for n in range(40)]
    with Cormorant.from_texts(
        written, DeterministicFakeEmbedding(size=8), metadatas, ids=ids
    ) as store:
        yield store


class TestInsideTheStore:
    """One call of the store, with the ranking of asking both legs and fusing here."""

    @pytest.fixture
    def calls(self, vs: Cormorant, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        made: list[Any] = []
        search = Door.search

        def counted(door: Any, query: Any) -> Any:
            made.append(query)
            return search(door, query)

        monkeypatch.setattr(Door, "search", counted)
        return made

    @pytest.mark.parametrize("weights", [[0.5, 0.5], [0.7, 0.3], [1, 3]])
    @pytest.mark.parametrize("text_first", [False, True])
    @pytest.mark.parametrize("filter", [None, {"even": True}])
    async def test_ranks_as_outside(
        self, vs: Cormorant, calls: list[Any], weights: list[float], text_first: bool, filter: Any
    ) -> None:
        legs: list[Any] = [vs.as_retriever(k=12), vs.as_retriever(search_type="text", k=12)]
        outside: list[Any] = [leg.with_config(tags=["wrapped"]) for leg in legs]
        if text_first:
            legs.reverse()
            outside.reverse()
        for question in ("fish", "boat sea", "gull net fish", "fish fish whale"):
            for k in (1, 4, 7, 11):
                settings: dict[str, Any] = {"weights": weights, "k": k}
                within = EnsembleRetriever(retrievers=legs, **settings)
                around = EnsembleRetriever(retrievers=outside, **settings)
                expected = around.retrieve(question, filter=filter, fetch_k=12)
                for result in (
                    within.retrieve(question, filter=filter),
                    await within.aretrieve(question, filter=filter),
                ):
                    assert [hit.id for hit in result] == [hit.id for hit in expected]
                    assert [hit.score for hit in result] == [hit.score for hit in expected]
                    for hit, other in zip(result, expected, strict=True):
                        ours = sorted(leg.rank for leg in hit.legs.values() if leg.rank)
                        assert ours == sorted(leg.rank for leg in other.legs.values() if leg.rank)

    def test_is_one_call(self, vs: Cormorant, calls: list[Any]) -> None:
        legs = [vs.as_retriever(k=12), vs.as_retriever(search_type="text", k=12)]
        result = EnsembleRetriever(retrievers=legs, weights=[0.7, 0.3], k=3).retrieve("boat sea")
        assert [query.resolved_mode for query in calls] == ["hybrid"]
        (hit, *_) = result.hits
        assert set(hit.legs) == {"vector", "text"}
        assert hit.journey[-1].stage == "fuse"
        assert result.mode == "hybrid"
        assert hit.contributions.keys() == {"vector", "text"}

    def test_a_bm25_retriever_over_the_store_is_a_leg_of_it(
        self, vs: Cormorant, calls: list[Any]
    ) -> None:
        legs = [vs.as_retriever(k=9), BM25Retriever(vectorstore=vs, k=9)]
        EnsembleRetriever(retrievers=legs, k=3).invoke("boat sea")
        assert len(calls) == 1

    def test_not_where_legs_do_more_or_differ(self, vs: Cormorant) -> None:
        plain, text = vs.as_retriever(k=9), vs.as_retriever(search_type="text", k=9)
        even = {"even": True}
        for legs, k in (
            ([plain, text], None),
            ([plain, text], 9),
            ([plain, plain], 3),
            ([plain, text, text], 3),
            ([plain, vs.as_retriever(search_type="text", k=8)], 3),
            ([plain, vs.as_retriever(search_type="text", k=9, filter=even)], 3),
            ([plain, vs.as_retriever(search_type="text", k=9, score_threshold=0.1)], 3),
            ([vs.as_retriever(search_type="mmr", k=9), text], 3),
            ([plain, vs.scope(even=True).as_retriever(search_type="text", k=9)], 3),
            ([plain, text.with_retry()], 3),
            ([plain, Fixed(docs=[])], 3),
        ):
            settings = {"k": k} if k else {}
            retriever = EnsembleRetriever(retrievers=legs, **settings)
            fusion = retriever._decide({})
            assert in_store.plan(fusion.legs, fusion.weights, rrf_k=60, k=k) is None

    def test_the_scope_and_the_legs_own_filter_hold(self, vs: Cormorant, calls: list[Any]) -> None:
        even = {"even": True}
        legs = [
            vs.as_retriever(k=9, filter=even),
            vs.as_retriever(search_type="text", k=9, filter=dict(even)),
        ]
        config: Any = {"configurable": {"scope": {"n": {"$gte": 20}}}}
        found = EnsembleRetriever(retrievers=legs, k=4).invoke(
            "boat", config, filter={"n": {"$lt": 30}}
        )
        assert len(calls) == 1
        assert found
        assert all(d.metadata["even"] and 20 <= d.metadata["n"] < 30 for d in found)

    async def test_an_embedder_that_fails_leaves_the_text_leg(self) -> None:
        class Away(DeterministicFakeEmbedding):
            def embed_query(self, text: str) -> list[float]:
                raise ConnectionError("no route")

        with Cormorant.from_texts(["a fish"], Away(size=4), check_embedder=False) as store:
            legs = [store.as_retriever(k=9), store.as_retriever(search_type="text", k=9)]
            retriever = EnsembleRetriever(retrievers=legs, k=2, on_error="degrade")
            for result in (retriever.retrieve("fish"), await retriever.aretrieve("fish")):
                assert [hit.text for hit in result] == ["a fish"]
                assert "no route" in result.degraded[0]
            with pytest.raises(Exception, match="no route"):
                EnsembleRetriever(retrievers=legs, k=2).invoke("fish")


class Listening(BaseCallbackHandler):
    def __init__(self) -> None:
        self.started: list[Any] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.started.append((kwargs["name"], kwargs["parent_run_id"], kwargs["tags"]))


def test_legs_are_child_runs_told_apart_by_tags() -> None:
    listening = Listening()
    ensemble([doc("a")], [doc("b")]).invoke("q", {"callbacks": [listening], "tags": ["t"]})
    (outer, *legs) = listening.started
    assert outer == ("EnsembleRetriever", None, ["t"])
    assert sorted(tags for _, _, tags in legs) == [["retriever_1", "t"], ["retriever_2", "t"]]
    assert all(parent is not None for _, parent, _ in legs)


def test_provenance_is_on_the_documents_too() -> None:
    (found,) = ensemble([doc("a")]).invoke("q")
    assert of(found).method == "hybrid"
    assert of(found).fusion_score == pytest.approx(1 / 61)


@pytest.mark.parametrize("kind", [EnsembleRetriever, MergerRetriever])
def test_scores_in_metadata_are_json_whatever_a_leg_wrote(kind: Any) -> None:
    step = {"stage": "theirs", "says": "none", "value": math.nan}
    written = {"score": math.nan, "relevance": math.inf, "journey": [step]}
    leg = Fixed(docs=[doc("a", "1", _cormorant=written)])
    found = kind(retrievers=[leg, leg], with_scores=True).invoke("q")
    assert json.loads(json.dumps(found[0].metadata, allow_nan=False))


def test_any_value_tells_documents_apart() -> None:
    within: dict[Any, Any] = {1: 1, "a": 2}
    legs = [Fixed(docs=[doc("a", key=dict(within)), doc("b", key={2: 1, "a": 2})])] * 2
    assert len(EnsembleRetriever(retrievers=legs, id_key="key").invoke("q")) == 2
