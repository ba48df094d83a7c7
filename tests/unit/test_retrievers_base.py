"""What holds for every retriever of ours: arguments, runs, configs, scores, provenance."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumpd
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Fixed, Told, doc, texts

from cormorant.errors import FilterError, QueryError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain import retrievers as room
from cormorant.langchain.provenance import Answer, Provenance, attach, journeyed, of, with_scores
from cormorant.langchain.retrievers import BM25Retriever, Retriever
from cormorant.langchain.retrievers.calling import takes
from cormorant.langchain.retrievers.fusing.duplicates import grouped, unique
from cormorant.model import Leg, Step

FAKE = DeterministicFakeEmbedding(size=6)
STEP = Step("test", kept=True, says="It was looked at.", value=1.0)


class Passing(Retriever):
    """Asks one child, and returns what it says."""

    child: Any

    def _find(self, query: str, run: Any, **asked: Any) -> Answer:
        return run.call(self.child, query, tag="inner", **asked)

    async def _afind(self, query: str, run: Any, **asked: Any) -> Answer:
        return await run.acall(self.child, query, tag="inner", **asked)


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    tenants = [{"tenant": "acme"}, {"tenant": "other"}, {"tenant": "acme"}]
    with Cormorant.from_texts(
        ["a fish", "two fish", "a boat"], FAKE, tenants, ids=["a", "b", "c"]
    ) as store:
        yield store


class TestProvenance:
    def test_is_beside_the_fields_and_not_among_them(self) -> None:
        plain = doc("a fish", "a", n=1)
        carrying = journeyed(plain, STEP, score=0.5)
        assert carrying == plain
        assert plain == carrying
        assert repr(carrying) == repr(plain)
        assert str(carrying) == str(plain)
        assert carrying.model_dump() == plain.model_dump()
        assert carrying.model_dump_json() == plain.model_dump_json()
        assert dumpd(carrying) == dumpd(plain)
        assert of(plain) == Provenance()
        assert of(carrying).score == 0.5
        assert of(carrying).journey == (STEP,)

    @pytest.mark.parametrize(
        "copied",
        [
            copy.copy,
            copy.deepcopy,
            lambda document: document.model_copy(update={"page_content": "another"}),
            lambda document: pickle.loads(pickle.dumps(document)),
        ],
    )
    def test_is_taken_along_by_copies_and_pickles(self, copied: Any) -> None:
        carrying = attach(doc("a fish"), Provenance(score=2.0, journey=(STEP,)))
        assert of(copied(carrying)) == of(carrying)

    def test_attaching_copies_the_document_and_its_metadata(self) -> None:
        plain = doc("a fish", tags=["one"], inner={"x": [1]})
        copied = attach(plain, Provenance())
        copied.metadata["tags"].append("two")
        copied.metadata["inner"]["x"].append(2)
        assert plain.metadata == {"tags": ["one"], "inner": {"x": [1]}}

    def test_scores_in_metadata_are_json_and_can_be_read_back(self) -> None:
        known = Provenance(
            score=1.5,
            relevance=0.5,
            method="hybrid",
            fusion_score=1.5,
            legs={"text": Leg(score=float("nan"), rank=2)},
            contributions={"text": 1.5},
            journey=(STEP,),
        )
        answer = Answer([attach(doc("a fish"), known)], degraded=["one leg failed"])
        (shown,) = with_scores(answer)
        written = shown.metadata["_cormorant"]
        assert json.loads(json.dumps(written)) == written
        assert written["score"] == written["fusion_score"] == 1.5
        assert written["rerank_score"] is None
        assert written["legs"] == {"text": {"score": None, "rank": 2}}
        assert written["degraded"] == ["one leg failed"]
        assert written["rank"] == 1
        again = Answer.taken([Document(page_content="a fish", metadata=shown.metadata)])
        assert again.degraded == ("one leg failed",)
        assert again[0].metadata == {}
        assert of(again[0]).score == 1.5
        assert of(again[0]).legs["text"].rank == 2
        assert of(again[0]).journey == (STEP,)

    def test_an_answer_is_a_list(self) -> None:
        answer = Answer([doc("a")], exact=True, degraded=["x"]).degrading("x", "y")
        assert answer == [doc("a")]
        assert answer.degraded == ("x", "y")
        assert answer.exact
        assert pickle.loads(pickle.dumps(answer)).degraded == ("x", "y")


class TestDuplicates:
    def test_by_id_whatever_the_text(self) -> None:
        assert len(unique([doc("a", "1"), doc("b", "1")])) == 1

    def test_equal_texts_with_different_ids_stay_apart(self) -> None:
        assert [d.id for d in unique([doc("a", "1"), doc("a", "2")])] == ["1", "2"]

    def test_by_text_where_an_id_is_missing(self) -> None:
        groups = grouped([[doc("a")], [doc("a", "1")], [doc("a", "2")]])
        assert [group.id for group in groups] == ["1", "2"]

    def test_by_the_id_key_across_ids(self) -> None:
        lists = [[doc("a", "1", key=7)], [doc("b", "2", key=7)], [doc("c", "3")]]
        assert [set(group.ranks) for group in grouped(lists, "key")] == [{0, 1}, {2}]

    def test_a_missing_id_key_is_no_key_error(self) -> None:
        assert len(unique([doc("a", key=1), doc("a"), doc("a")], "key")) == 2

    def test_within_one_list_once_at_the_best_rank(self) -> None:
        (first, second) = grouped([[doc("a"), doc("a"), doc("b")]])
        assert (first.ranks, second.ranks) == ({0: 1}, {0: 2})

    def test_what_a_later_twin_knows_is_kept(self) -> None:
        (group,) = grouped([[doc("a", None, one=1)], [doc("a", "x", one=2, two=2)]])
        assert group.document == doc("a", "x", one=1, two=2)

    def test_metadata_of_another_text_is_not_mixed_in(self) -> None:
        (group,) = grouped([[doc("a", None, key=1)], [doc("b", None, key=1, page=9)]], "key")
        assert group.document == doc("a", None, key=1)

    def test_unhashable_keys_are_keys(self) -> None:
        assert len(unique([doc("a", key=[1, {"x": 2}]), doc("b", key=[1, {"x": 2}])], "key")) == 1


class TestArguments:
    def test_unknown_ones_are_refused_with_the_nearest(self, vs: Cormorant) -> None:
        with pytest.raises(UsageError, match="Did you mean 'with_scores'"):
            Passing(child=vs.as_retriever(), with_score=True)
        with pytest.raises(UsageError, match="Did you mean 'filter'"):
            Passing(child=vs.as_retriever()).invoke("fish", fliter={"tenant": "acme"})

    @pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
    def test_k_is_a_number_of_documents(self, vs: Cormorant, k: Any) -> None:
        with pytest.raises(QueryError, match="at least 1"):
            Passing(child=vs.as_retriever()).invoke("fish", k=k)

    @pytest.mark.parametrize("query", ["", "  ", 3])
    def test_the_question_is_a_text(self, vs: Cormorant, query: Any) -> None:
        with pytest.raises(QueryError):
            Passing(child=vs.as_retriever()).invoke(query)

    @pytest.mark.parametrize("argument", [{"k": 2}, {"filter": {"tenant": "acme"}}])
    async def test_what_a_child_would_drop_is_refused(self, argument: dict[str, Any]) -> None:
        retriever = Passing(child=Fixed(docs=[doc("a", tenant="acme")]))
        assert retriever.invoke("q")
        (name,) = argument
        with pytest.raises(UsageError, match=f"Fixed takes no {name}"):
            retriever.invoke("q", **argument)
        with pytest.raises(UsageError, match=f"Fixed takes no {name}"):
            await retriever.ainvoke("q", **argument)

    def test_reach_through_wrappers(self, vs: Cormorant) -> None:
        inner = vs.as_retriever(search_type="text")
        for wrapped in (
            inner,
            inner.with_retry(),
            inner.with_config(tags=["t"]),
            inner.bind(score_threshold=0.0),
            inner.with_fallbacks([vs.as_retriever()]),
            inner | RunnableLambda(lambda documents: documents),
            RunnableLambda(lambda query, **kwargs: inner.invoke(query, None, **kwargs)),
            Passing(child=inner),
        ):
            assert takes(wrapped, "k")
            found = Passing(child=wrapped).invoke("fish", k=1, filter={"tenant": "other"})
            assert texts(found) == ["two fish"]

    def test_do_not_reach_through_these(self, vs: Cormorant) -> None:
        inner = vs.as_retriever()
        for wrapped in (
            RunnablePassthrough() | inner,
            RunnableLambda(lambda query: inner.invoke(query, None)),
            inner.with_fallbacks([Fixed(docs=[])]),
            Passing(child=Fixed(docs=[])) | RunnablePassthrough(),
        ):
            with pytest.raises(UsageError, match="would drop it"):
                Passing(child=wrapped).invoke("fish", k=1)

    def test_a_filter_that_a_child_ignores_is_noticed(self) -> None:
        child = Told(docs=[doc("mine", tenant="acme"), doc("theirs", tenant="other")])
        with pytest.raises(FilterError, match="1 of 2 documents that it excludes"):
            Passing(child=child).invoke("q", filter={"tenant": "acme"})
        with pytest.raises(FilterError):
            Passing(child=child).invoke("q", filter=lambda d: d.metadata["tenant"] == "acme")

    def test_a_calls_filter_does_not_replace_the_fixed_one(self) -> None:
        store = InMemoryVectorStore(FAKE)
        store.add_documents(
            [doc("x", tenant="acme", year=1), doc("y", tenant="other", year=1), doc("z", year=2)]
        )
        fixed = store.as_retriever(
            search_kwargs={"filter": lambda d: d.metadata.get("tenant") == "acme"}
        )
        found = Passing(child=fixed).invoke("q", filter=lambda d: d.metadata["year"] == 1)
        assert texts(found) == ["x"]

    def test_more_than_k_are_cut(self) -> None:
        child = Told(docs=[doc("a"), doc("b"), doc("c")])
        assert texts(Passing(child=child).invoke("q", k=2)) == ["a", "b"]

    def test_a_child_must_return_documents(self) -> None:
        with pytest.raises(UsageError, match="list of Documents"):
            Passing(child=RunnableLambda(lambda query: query)).invoke("q")

    def test_strings_become_documents(self) -> None:
        child = RunnableLambda(lambda query: [query, query + "!"])
        assert texts(Passing(child=child).invoke("q")) == ["q", "q!"]

    def test_what_is_returned_is_a_copy(self) -> None:
        held = doc("a", tags=["x"])
        found = Passing(child=Fixed(docs=[held])).invoke("q")
        found[0].metadata["tags"].append("y")
        assert held.metadata == {"tags": ["x"]}


class TestScores:
    async def test_come_as_a_result(self, vs: Cormorant) -> None:
        retriever = Passing(child=vs.as_retriever(search_type="text"))
        result = retriever.retrieve("fish")
        assert repr(result.hits) == repr((await retriever.aretrieve("fish")).hits)
        first = result.hits[0]
        assert (first.id, first.rank, first.text) == ("a", 1, "a fish")
        assert first.score > 0
        assert 0 < first.relevance < 1
        assert first.legs["text"].rank == 1
        assert first.metadata == {"tenant": "acme"}

    def test_metadata_stays_clean_unless_asked(self, vs: Cormorant) -> None:
        child = vs.as_retriever(search_type="text", with_scores=True)
        retriever = Passing(child=child)
        assert all("_cormorant" not in d.metadata for d in retriever.invoke("fish"))
        (first, *_) = retriever.invoke("fish", with_scores=True)
        assert first.metadata["_cormorant"]["rank"] == 1
        (first, *_) = Passing(child=child, with_scores=True).invoke("fish")
        assert first.metadata["_cormorant"]["score"] > 0
        assert vs.get_by_ids(["a"])[0].metadata == {"tenant": "acme"}

    @pytest.mark.parametrize("search_type", ["text", "similarity", "hybrid"])
    async def test_survive_langchains_wrappers(self, vs: Cormorant, search_type: str) -> None:
        plain = vs.as_retriever(search_type=search_type)
        known = repr(Passing(child=plain).retrieve("fish").hits)
        for wrapped in (
            plain.with_retry(),
            plain.bind(k=4),
            plain.with_config(tags=["t"]),
            plain.with_fallbacks([plain]),
            plain | RunnableLambda(lambda documents: documents),
            RunnableLambda(lambda query: vs.search(query, search_type)),
        ):
            assert repr(Passing(child=wrapped).retrieve("fish").hits) == known
            assert repr((await Passing(child=wrapped).aretrieve("fish")).hits) == known

    def test_survive_another_retriever_around(self, vs: Cormorant) -> None:
        inner = Passing(child=vs.as_retriever(search_type="text"))
        outer = Passing(child=inner.with_retry())
        assert repr(outer.retrieve("fish").hits) == repr(inner.retrieve("fish").hits)


class Listening(BaseCallbackHandler):
    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.started.append(kwargs)


class TestRuns:
    @pytest.mark.parametrize("sync", [True, False])
    async def test_config_reaches_the_child(self, vs: Cormorant, sync: bool) -> None:
        listening, run_id = Listening(), uuid.uuid4()
        retriever = Passing(child=vs.as_retriever(), tags=["own"], metadata={"m": 1})
        config: Any = {
            "callbacks": [listening],
            "tags": ["given"],
            "metadata": {"n": 2},
            "run_id": run_id,
            "run_name": "outer",
        }
        if sync:
            retriever.invoke("fish", config)
        else:
            await retriever.ainvoke("fish", config)
        outer, inner = listening.started
        assert outer["run_id"] == run_id
        assert outer["name"] == "outer"
        assert {"own", "given"} <= set(outer["tags"])
        assert inner["parent_run_id"] == run_id
        assert inner["run_id"] != run_id
        assert {"given", "inner"} <= set(inner["tags"])
        assert "own" not in inner["tags"]
        assert inner["metadata"]["n"] == 2

    async def test_events_show_each_stage(self, vs: Cormorant) -> None:
        retriever = Passing(child=vs.as_retriever())
        events = [
            (event["event"], event["name"])
            async for event in retriever.astream_events("fish", version="v2")
        ]
        assert events == [
            ("on_retriever_start", "Passing"),
            ("on_retriever_start", "CormorantRetriever"),
            ("on_retriever_end", "CormorantRetriever"),
            ("on_retriever_end", "Passing"),
        ]

    async def test_batch_and_stream(self, vs: Cormorant) -> None:
        retriever = Passing(child=vs.as_retriever(search_type="text"))
        once = retriever.invoke("fish")
        assert retriever.batch(["fish", "fish"]) == [once, once]
        assert await retriever.abatch(["fish", "fish"]) == [once, once]
        assert list(retriever.stream("fish")) == [once]
        assert [chunk async for chunk in retriever.astream("fish")] == [once]

    async def test_one_that_has_no_async_method_runs_in_a_thread(self) -> None:
        class Plain(Retriever):
            def _find(self, query: str, run: Any, **asked: Any) -> list[Document]:
                return run.call(Fixed(docs=[doc("a")]), query)

        assert await Plain().ainvoke("q") == [doc("a")]


class TestScope:
    async def test_narrows_the_child(self, vs: Cormorant) -> None:
        retriever = Passing(child=Passing(child=vs.as_retriever(search_type="text")))
        config: Any = {"configurable": {"scope": {"tenant": "other"}}}
        assert texts(retriever.invoke("fish", config)) == ["two fish"]
        assert texts(await retriever.ainvoke("fish", config)) == ["two fish"]
        assert texts(retriever.with_config(config).invoke("fish")) == ["two fish"]

    def test_an_outer_one_stays_in_force(self, vs: Cormorant) -> None:
        inner = Passing(child=vs.as_retriever(search_type="text"))
        scope: Any = {"configurable": {"scope": {"tenant": {"$in": ["acme"]}}}}
        narrower: Any = {"configurable": {"scope": {"tenant": "acme"}}}
        wider: Any = {"configurable": {"scope": {"tenant": "other"}}}
        chain = RunnableLambda(lambda query: query) | inner.with_config(narrower)
        assert texts(chain.invoke("fish", scope)) == ["a fish"]
        chain = RunnableLambda(lambda query: query) | inner.with_config(wider)
        assert chain.invoke("fish", scope) == []  # both hold

    def test_contradictions_find_nothing(self, vs: Cormorant) -> None:
        inner = Passing(child=vs.as_retriever()).with_config(
            {"configurable": {"scope": {"tenant": "other"}}}
        )
        chain = RunnableLambda(lambda query: inner.invoke(query, None))
        assert chain.invoke("fish", {"configurable": {"scope": {"tenant": "acme"}}}) == []

    @pytest.mark.parametrize(
        "child",
        [
            Fixed(docs=[doc("a", tenant="acme")]),
            Fixed(docs=[doc("a", tenant="acme")]).with_retry(),
            RunnableLambda(lambda query: [doc("a", tenant="other")]),
        ],
    )
    def test_is_refused_where_it_would_be_dropped(self, child: Any) -> None:
        with pytest.raises(ScopeError):
            Passing(child=child).invoke("q", {"configurable": {"scope": {"tenant": "acme"}}})

    def test_must_be_a_scope(self, vs: Cormorant) -> None:
        with pytest.raises(ScopeError, match="dict of predicates"):
            Passing(child=vs.as_retriever()).invoke("q", {"configurable": {"scope": "acme"}})


def test_names_are_handed_on_lazily() -> None:
    assert set(room.__all__) <= set(dir(room))
    assert room.BM25Retriever is BM25Retriever
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = room.Nothing


def test_pickles_or_says_why_not(vs: Cormorant) -> None:
    words = Passing(child=BM25Retriever.from_texts(["a fish"]), with_scores=True)
    again = pickle.loads(pickle.dumps(words))
    assert texts(again.invoke("fish")) == ["a fish"]
    assert again.with_scores
    for child, says in (
        (vs.as_retriever(), "in memory cannot be pickled"),
        (RunnableLambda(lambda q: []), "This Passing cannot be pickled: its child cannot"),
    ):
        made = Passing(child=child)
        with pytest.raises(UsageError, match=says):
            pickle.dumps(made)
        assert copy.copy(made).child is made.child
    assert dumpd(words)["type"] == "not_implemented"
