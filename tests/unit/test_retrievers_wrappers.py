"""LangChain's wrappers around retrievers of ours lose no score, argument, filter, scope or word."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumpd
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from cormorant.errors import CormorantError, FilterError, ScopeError, UsageError
from cormorant.langchain import Cormorant, scoping
from cormorant.langchain.retrievers import (
    BM25Retriever,
    BoostRetriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
    ScopedRetriever,
    with_deadline,
)

sys.path.insert(0, str(Path(__file__).parents[1]))

from retrieverlab import Failing, Fixed, doc, texts

FAKE = DeterministicFakeEmbedding(size=8)
TEXTS = ["a fish", "two fish", "fish of theirs"]
METADATAS = [{"tenant": "acme", "n": 1}, {"tenant": "acme", "n": 2}, {"tenant": "rival", "n": 1}]


class Flaky(BaseRetriever):
    """Fails a few times, then asks another."""

    inner: Any
    failures: int = 1
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, **kwargs: Any
    ) -> list[Document]:
        self.asked.append(query)
        if len(self.asked) <= self.failures:
            raise ConnectionError("try again")
        found: list[Document] = self.inner.invoke(query, **kwargs)
        return found


class Away(Failing):
    """Would take any argument, and never answers."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, **kwargs: Any
    ) -> list[Document]:
        raise self.error


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    with Cormorant.from_texts(TEXTS, FAKE, METADATAS, ids=["a", "b", "c"]) as store:
        yield store


def plain_store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(FAKE)
    store.add_texts(TEXTS, METADATAS, ids=["a", "b", "c"])
    return store


def wrapped(retriever: Any) -> dict[str, Any]:
    """Ways to wrap one without changing what it finds."""
    return {
        "with_retry": retriever.with_retry(stop_after_attempt=1),
        "bind": retriever.bind(),
        "with_config": retriever.with_config(tags=["t"]),
        "with_fallbacks": retriever.with_fallbacks([Away()]),
        "with_types": retriever.with_types(input_type=str),
        "with_listeners": retriever.with_listeners(on_end=lambda run: None),
        "with_deadline": with_deadline(retriever, 20),
        "configurable_alternatives": retriever.configurable_alternatives(
            ConfigurableField(id="which"), other=Away()
        ),
        "all": with_deadline(
            retriever.bind().with_retry(stop_after_attempt=1).with_config(tags=["t"]), 20
        ).with_fallbacks([Away()]),
    }


HOW = ("with_retry", "bind", "with_config", "with_fallbacks", "with_deadline")
HOW = (*HOW, "with_types", "with_listeners", "configurable_alternatives", "all")
SCOPE: Any = {"configurable": {"scope": {"tenant": "acme"}}}


@pytest.mark.parametrize("how", HOW)
class TestNothingIsLost:
    def _retrievers(self, vs: Cormorant) -> list[Any]:
        legs = [vs.as_retriever(k=3), vs.as_retriever(search_type="text", k=3)]
        return [
            vs.as_retriever(search_type="hybrid", k=3),
            BM25Retriever(vectorstore=vs),
            EnsembleRetriever(retrievers=legs),
            HybridRetriever(vector_retriever=legs[0], keyword_retriever=legs[1]),
        ]

    async def test_of_the_result(self, vs: Cormorant, how: str) -> None:
        for retriever in self._retrievers(vs):
            known = retriever.retrieve("fish", k=2)
            assert len(known) == 2
            for around in (wrapped(retriever)[how], wrapped(wrapped(retriever)[how])["bind"]):
                result = around.retrieve("fish", k=2)
                assert repr(result.hits) == repr(known.hits)
                assert (result.degraded, result.complete) == (known.degraded, known.complete)
                assert repr((await around.aretrieve("fish", k=2)).hits) == repr(known.hits)
                assert texts(around.batch(["fish"], k=2)[0]) == [hit.text for hit in known]
                assert texts(next(around.stream("fish", k=2))) == [hit.text for hit in known]

    async def test_of_a_legs_scores_and_depth(self, vs: Cormorant, how: str) -> None:
        vector, words = vs.as_retriever(k=3), vs.as_retriever(search_type="text", k=3)
        for kind in (EnsembleRetriever, MergerRetriever):
            plain = kind(retrievers=[vector, words])
            around = kind(retrievers=[wrapped(vector)[how], wrapped(words)[how]])
            known = [(hit.id, _legs(hit)) for hit in plain.retrieve("fish")]
            found = [(hit.id, _legs(hit)) for hit in around.retrieve("fish")]
            names = sorted({name for _, legs in found for name, _ in legs})
            if "fallbacks" not in how and how not in {"configurable_alternatives", "all"}:
                assert names == ["text", "vector"], "a leg goes by what it ranks by"
            assert [(id, [seen for _, seen in legs]) for id, legs in found] == [
                (id, [seen for _, seen in legs]) for id, legs in known
            ]

    @pytest.mark.parametrize("sync", [True, False])
    async def test_of_a_calls_filter_and_number(self, vs: Cormorant, how: str, sync: bool) -> None:
        legs = [wrapped(vs.as_retriever(k=3))[how], wrapped(BM25Retriever(vectorstore=vs))[how]]
        for retriever in (
            *legs,
            EnsembleRetriever(retrievers=legs),
            MergerRetriever(retrievers=legs),
        ):
            asked: dict[str, Any] = {"filter": {"n": 1}, "k": 1}
            invoked = retriever.invoke if sync else retriever.ainvoke
            found = invoked("fish", SCOPE, **asked)
            assert texts(found if sync else await found) == ["a fish"]  # type: ignore[misc]

    def test_of_a_refusal(self, vs: Cormorant, how: str) -> None:
        held = wrapped(MergerRetriever(retrievers=[Fixed(docs=[doc("a", tenant="acme")])]))[how]
        for outer in (held, MergerRetriever(retrievers=[held])):
            with pytest.raises(UsageError, match="takes no k"):
                outer.invoke("q", k=1)
            with pytest.raises(UsageError, match="takes no filter"):
                outer.invoke("q", filter={"n": 1})
        outer = MergerRetriever(retrievers=[wrapped(vs.as_retriever())[how]])
        with pytest.raises(UsageError, match="fliter"):
            outer.invoke("q", fliter={"n": 1})

    def test_of_a_scope_that_an_inner_config_would_replace(self, vs: Cormorant, how: str) -> None:
        inner = wrapped(vs.as_retriever(search_type="text"))[how]
        other: Any = {"configurable": {"scope": {"tenant": "rival"}}}
        chain = RunnableLambda(lambda query: query) | inner.with_config(other)
        found = chain.invoke("fish", SCOPE)
        assert all(each.metadata["tenant"] == "acme" for each in found)
        if how != "configurable_alternatives":  # made by LangChain: the call's config replaces it
            assert found == [], "both hold"
        with scoping(tenant="acme"):
            assert inner.invoke("fish", other) == []

    def test_of_what_is_degraded(self, vs: Cormorant, how: str) -> None:
        inner = EnsembleRetriever(
            retrievers=[vs.as_retriever(search_type="text"), Failing()], on_error="degrade"
        )
        around = wrapped(inner)[how]
        outer = BoostRetriever(retriever=MergerRetriever(retrievers=[around]), boosts=[])
        for result in (around.retrieve("fish"), outer.retrieve("fish")):
            assert "Failing failed and was left out" in result.degraded[0]
            assert not result.complete
        (first, *_) = around.invoke("fish", with_scores=True)
        assert "Failing failed" in first.metadata["_cormorant"]["degraded"][0]


def _legs(hit: Any) -> list[tuple[str, Any]]:
    return [(name, (leg.score, leg.rank)) for name, leg in hit.legs.items()]


class TestBound:
    def test_its_arguments_reach_retrieve(self, vs: Cormorant) -> None:
        assert len(vs.as_retriever(search_type="text").bind(k=1).retrieve("fish")) == 1

    def test_its_filter_holds_beside_the_calls(self, vs: Cormorant) -> None:
        bound = vs.as_retriever(search_type="text").bind(filter={"tenant": "acme"})
        search = vs.as_retriever(search_type="text")
        ways = (
            bound,
            search.with_types(input_type=str).bind(filter={"tenant": "acme"}),
            search.with_listeners(on_end=lambda run: None).bind(filter={"tenant": "acme"}),
            with_deadline(bound, 20),
            MergerRetriever(retrievers=[bound]),
            MergerRetriever(retrievers=[bound.with_fallbacks([Away()])]),
            MergerRetriever(retrievers=[with_deadline(bound.with_retry(), 20)]),
        )
        for retriever in ways:
            assert texts(retriever.invoke("fish", filter={"n": 1})) == ["a fish"]
            assert texts(retriever.batch(["fish"], filter={"n": 1})[0]) == ["a fish"]
            assert len(retriever.invoke("fish")) == 2

    def test_its_number_counts_as_the_legs_own(self, vs: Cormorant) -> None:
        many = Cormorant.from_texts([f"fish {n}" for n in range(90)], FAKE)
        leg = many.as_retriever().bind(k=80)
        hybrid = HybridRetriever(vector_retriever=leg, keyword_retriever=leg, top_k=2)
        brought = [stage.counters.get("documents") for stage in hybrid.retrieve("fish").stages]
        assert [count for count in brought if count is not None] == [80, 80]
        many.close()


class TestRetrying:
    @pytest.mark.parametrize("sync", [True, False])
    async def test_asks_again(self, vs: Cormorant, sync: bool) -> None:
        flaky = Flaky(inner=vs.as_retriever(search_type="text"))
        inner = MergerRetriever(retrievers=[flaky])
        retrying = inner.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        outer = MergerRetriever(retrievers=[retrying])
        result = outer.retrieve("fish", k=1) if sync else await outer.aretrieve("fish", k=1)
        assert len(result) == 1
        assert len(flaky.asked) == 2
        assert result.hits[0].legs["MergerRetriever"].rank == 1
        assert result.degraded == ()

    def test_within_the_time_of_the_whole(self, vs: Cormorant) -> None:
        flaky = Flaky(inner=vs.as_retriever(), failures=10**9)
        held = with_deadline(flaky, 5).with_retry(
            stop_after_attempt=3, wait_exponential_jitter=False
        )
        with pytest.raises(ConnectionError):
            held.invoke("q")
        assert len(flaky.asked) == 3


class TestFallbacks:
    @pytest.mark.parametrize("sync", [True, False])
    async def test_say_who_answered(self, vs: Cormorant, sync: bool) -> None:
        primary = MergerRetriever(retrievers=[Failing()])
        words = BM25Retriever(vectorstore=vs)
        safe = primary.with_fallbacks([Failing(), words])
        outer = EnsembleRetriever(retrievers=[safe])
        for retriever in (safe, outer):
            result = retriever.retrieve("fish") if sync else await retriever.aretrieve("fish")
            assert {hit.id for hit in result} == {"a", "b", "c"}
            assert result.degraded == (
                "MergerRetriever failed, and BM25Retriever answered in its place.",
            )
        assert [hit.score for hit in safe.retrieve("fish")] == [
            hit.score for hit in words.retrieve("fish")
        ]

    def test_of_a_cormorant_too(self, vs: Cormorant) -> None:
        gone = Cormorant.from_texts(["a fish"], FAKE)
        safe = gone.as_retriever().with_fallbacks([vs.as_retriever(search_type="text")])
        gone.close()
        assert len(safe.retrieve("fish")) == 3
        assert "CormorantRetriever answered in its place" in safe.retrieve("fish").degraded[0]

    def test_a_whole_answer_says_nothing(self, vs: Cormorant) -> None:
        safe = BM25Retriever(vectorstore=vs).with_fallbacks([Failing()])
        assert safe.retrieve("fish").degraded == ()

    def test_all_failing_is_the_first_ones_error(self) -> None:
        failing = Failing(error=ValueError("first"))
        safe = MergerRetriever(retrievers=[failing]).with_fallbacks([Failing()])
        with pytest.raises(ValueError, match="first"):
            safe.invoke("q")

    def test_scores_in_metadata_where_the_first_would_put_them(self, vs: Cormorant) -> None:
        primary = MergerRetriever(retrievers=[Failing()], with_scores=True)
        safe = primary.with_fallbacks([plain_store().as_retriever()])
        (first, *_) = safe.invoke("fish")
        assert "answered in its place" in first.metadata["_cormorant"]["degraded"][0]
        assert "_cormorant" not in safe.invoke("fish", with_scores=False)[0].metadata

    def test_one_that_drops_an_argument_is_refused(self, vs: Cormorant) -> None:
        primary = MergerRetriever(retrievers=[Flaky(inner=vs.as_retriever(), failures=9)])
        safe = primary.with_fallbacks([Fixed(docs=[doc("a", n=1)])])
        assert texts(safe.invoke("q")) == ["a"]
        for asked in ({"k": 1}, {"filter": {"n": 1}}):
            with pytest.raises(ConnectionError):  # LangChain raises the first one's
                safe.invoke("q", **asked)
        unheard = primary.with_fallbacks([RunnableLambda(lambda query, **_: [doc("a", n=2)])])
        with pytest.raises(ConnectionError):
            unheard.invoke("q", filter={"n": 1})

    def test_a_fallbacks_own_filter_holds_beside_the_calls(self, vs: Cormorant) -> None:
        mine = plain_store().as_retriever(
            search_kwargs={"filter": lambda document: document.metadata["tenant"] == "acme"}
        )
        primary = MergerRetriever(retrievers=[Flaky(inner=vs.as_retriever(), failures=9)])
        safe = primary.with_fallbacks([mine])
        ones = {"filter": lambda document: document.metadata["n"] == 1}
        assert texts(safe.invoke("fish", **ones)) == ["a fish"]
        assert texts(MergerRetriever(retrievers=[safe]).invoke("fish", **ones)) == ["a fish"]
        theirs = mine.with_fallbacks([mine])  # LangChain's own
        with pytest.raises(FilterError, match="made with a filter"):
            MergerRetriever(retrievers=[theirs]).invoke("fish", **ones)


def leaking(vs: Cormorant) -> dict[str, Any]:
    """Fallbacks that would show documents of others."""
    outside: Any = {"configurable": {"scope": {"tenant": "rival"}}}
    everything: Any = {"configurable": {}}
    plain = plain_store().as_retriever()
    ours = vs.as_retriever(search_type="text")
    return {
        "a store that knows no scopes": plain,
        "the same, retried": plain.with_retry(stop_after_attempt=1),
        "the same, held to its time": with_deadline(plain, 20),
        "a function": RunnableLambda(plain.invoke),
        "a sequence": RunnableLambda(lambda query: query) | plain,
        "one with another scope": ours.with_config(outside),
        "one with an empty config": ours.with_config(everything),
        "a function with another scope": RunnableLambda(lambda query: ours.invoke(query, outside)),
        "one with another scope of its own": ScopedRetriever(
            retriever=ours, scope={"tenant": "rival"}
        ),
        "one that falls back itself": Failing().with_fallbacks([plain]),
        "a composite of it": MergerRetriever(retrievers=[plain]),
        "an alternative": ours.configurable_alternatives(
            ConfigurableField(id="which", name="which"), default_key="plain", other=plain
        ).with_config({"configurable": {"which": "other"}}),
        "another bound filter": ours.bind(filter={"tenant": "rival"}),
    }


LEAKS = (
    "a store that knows no scopes",
    "the same, retried",
    "the same, held to its time",
    "a function",
    "a sequence",
    "one with another scope",
    "one with an empty config",
    "a function with another scope",
    "one with another scope of its own",
    "one that falls back itself",
    "a composite of it",
    "an alternative",
    "another bound filter",
)


class TestScopesInFallbacks:
    @pytest.mark.parametrize("sync", [True, False])
    @pytest.mark.parametrize("leak", LEAKS)
    async def test_nothing_from_outside_is_returned(
        self, vs: Cormorant, leak: str, sync: bool
    ) -> None:
        fallback = leaking(vs)[leak]
        failing = Flaky(inner=vs.as_retriever(), failures=10**9)
        bare = MergerRetriever(retrievers=[failing]).with_fallbacks([fallback])
        scoped = ScopedRetriever(retriever=bare, scope={"tenant": "acme"})
        chain = RunnableLambda(lambda query: query) | bare
        for retriever, config in (
            (bare, SCOPE),
            (bare.with_config(SCOPE), None),
            (chain, SCOPE),
            (scoped, None),
            (EnsembleRetriever(retrievers=[bare, vs.as_retriever()], on_error="degrade"), SCOPE),
            (MergerRetriever(retrievers=[bare]), SCOPE),
        ):
            try:
                found = (
                    retriever.invoke("fish", config)
                    if sync
                    else await retriever.ainvoke("fish", config)
                )
            except (CormorantError, ConnectionError):
                continue  # refused: the primary's error, as LangChain raises it, or ours
            assert all(each.metadata["tenant"] == "acme" for each in found)

    def test_one_that_can_see_it_answers_in_it(self, vs: Cormorant) -> None:
        failing = MergerRetriever(retrievers=[Flaky(inner=vs.as_retriever(), failures=9)])
        safe = failing.with_fallbacks([vs.as_retriever(search_type="text")])
        assert set(texts(safe.invoke("fish", SCOPE))) == {"a fish", "two fish"}

    def test_the_reason_of_the_refusal_is_told_alone(self, vs: Cormorant) -> None:
        safe = vs.as_retriever().with_fallbacks([plain_store().as_retriever()])
        (fallback,) = safe.fallbacks
        with pytest.raises(ScopeError, match="cannot see it"):
            fallback.invoke("fish", SCOPE)


class TestConfigurable:
    def test_fields(self, vs: Cormorant) -> None:
        ensemble = EnsembleRetriever(
            retrievers=[vs.as_retriever(k=3), vs.as_retriever(search_type="text", k=3)]
        ).configurable_fields(k=ConfigurableField(id="k"), weights=ConfigurableField(id="weights"))
        assert len(ensemble.retrieve("fish")) == 3
        config: Any = {"configurable": {"k": 1, "weights": [0, 1], **SCOPE["configurable"]}}
        result = ensemble.retrieve("fish", config=config)
        assert len(result) == 1
        assert result.hits[0].contributions == {"vector": 0.0, "text": result.hits[0].score}
        assert result.hits[0].metadata["tenant"] == "acme"

    def test_the_alternative_that_the_config_chose_is_the_one_that_is_judged(
        self, vs: Cormorant
    ) -> None:
        leg = vs.as_retriever(search_type="text").configurable_alternatives(
            ConfigurableField(id="which"), plain=plain_store().as_retriever(), few=Fixed(docs=[])
        )
        outer = MergerRetriever(retrievers=[leg])
        assert len(outer.invoke("fish", k=1)) == 1
        with pytest.raises(UsageError, match="takes no k"):
            outer.invoke("fish", {"configurable": {"which": "few"}}, k=1)
        with pytest.raises(ScopeError, match="cannot see it"):
            outer.invoke("fish", {"configurable": {"which": "plain", **SCOPE["configurable"]}})


def test_dump_says_that_it_cannot(vs: Cormorant) -> None:
    words = BM25Retriever.from_texts(["a fish"])
    for made in (words.bind(k=1), words.with_fallbacks([words]), with_deadline(words, 1)):
        assert dumpd(made)["type"] == "not_implemented"
