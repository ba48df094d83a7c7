"""A stage answers in time, is left out by name, or raises; whatever it is, however asked."""

from __future__ import annotations

import asyncio
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import Field

from cormorant import defaults
from cormorant.errors import ConfigError, CormorantError, DeadlineExceeded, ScopeError
from cormorant.langchain import Cormorant, scoping
from cormorant.langchain.calls import stragglers
from cormorant.langchain.calls.time_limit import time_left
from cormorant.langchain.retrievers import (
    BM25Retriever,
    BoostRetriever,
    ContextualCompressionRetriever,
    DecompositionRetriever,
    EnsembleRetriever,
    HybridRetriever,
    HyDERetriever,
    MergerRetriever,
    MultiQueryRetriever,
    RePhraseQueryRetriever,
    with_deadline,
)
from cormorant.langchain.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
)
from cormorant.langchain.scopes.in_force import scope_in_force

sys.path.insert(0, str(Path(__file__).parents[1]))

from retrieverlab import Failing, doc, texts

SOON = 0.05


class Hanging(BaseRetriever):
    """Answers once it is let go; as a coroutine, never."""

    until: Any = Field(default_factory=threading.Event)
    cancelled: list[str] = Field(default_factory=list)
    begun: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.begun.append(query)
        self.until.wait(20)
        return [doc("too late")]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.begun.append(query)
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            self.cancelled.append(query)
            raise
        return [doc("too late")]


class OnlySync(BaseRetriever):
    """The same without a coroutine of its own."""

    until: Any
    begun: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.begun.append(query)
        self.until.wait(20)
        return [doc("too late")]


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.until.set()


@pytest.fixture
def words() -> BM25Retriever:
    return BM25Retriever.from_texts(["a fish", "a boat", "two fish and a boat"])


@pytest.fixture
def never(hanging: Hanging) -> RunnableLambda[Any, Any]:
    """A model that never answers."""

    async def wait(prompt: Any) -> str:
        await asyncio.sleep(20)
        return "too late"

    return RunnableLambda(lambda prompt: hanging.until.wait(20), wait)


async def retrieved(retriever: Any, query: str, *, sync: bool, **kwargs: Any) -> Any:
    if sync:
        return await asyncio.to_thread(retriever.retrieve, query, **kwargs)
    return await retriever.aretrieve(query, **kwargs)


def ended(stage: str) -> None:
    """Wait for the threads of what overran."""
    for thread in threading.enumerate():
        if thread.name == f"cormorant {stage}":
            thread.join(10)


both_ways = pytest.mark.parametrize("sync", [True, False])


class TestAlone:
    @both_ways
    async def test_what_is_late_raises(self, hanging: Hanging, sync: bool) -> None:
        with pytest.raises(DeadlineExceeded, match=r"Hanging did not answer within 0.05 s") as late:
            await retrieved(with_deadline(hanging, SOON), "q", sync=sync)
        assert (late.value.stage, late.value.seconds) == ("Hanging", SOON)
        assert isinstance(late.value, TimeoutError)
        assert isinstance(late.value, CormorantError)
        assert pickle.loads(pickle.dumps(late.value)).stage == "Hanging"

    @both_ways
    async def test_what_is_in_time_is_what_it_would_be(
        self, words: BM25Retriever, sync: bool
    ) -> None:
        held = with_deadline(words, 20)
        result = await retrieved(held, "fish", sync=sync, k=1)
        assert repr(result.hits) == repr(words.retrieve("fish", k=1).hits)
        assert result.degraded == ()

    @both_ways
    async def test_its_own_errors_are_its_own(self, sync: bool) -> None:
        for error in (TimeoutError("its own"), ValueError("bad"), StopIteration("odd")):
            with pytest.raises((type(error), RuntimeError)) as raised:
                await retrieved(with_deadline(Failing(error=error), 20), "q", sync=sync)
            assert not isinstance(raised.value, DeadlineExceeded)

    async def test_what_is_awaited_is_cancelled(self, hanging: Hanging) -> None:
        with pytest.raises(DeadlineExceeded):
            await with_deadline(hanging, SOON).ainvoke("q")
        assert hanging.cancelled == ["q"]

    async def test_cancelling_the_caller_cancels_the_stage(self, hanging: Hanging) -> None:
        task = asyncio.create_task(with_deadline(hanging, 20).ainvoke("q"))
        while not hanging.begun:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert hanging.cancelled == ["q"]

    async def test_a_stage_that_will_not_be_cancelled_is_left(self) -> None:
        let_go = asyncio.Event()

        async def stubborn(query: str) -> list[Document]:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue
            raise ValueError("nobody listens any more")

        with pytest.raises(DeadlineExceeded):
            await with_deadline(RunnableLambda(stubborn), SOON).ainvoke("q")
        let_go.set()
        await asyncio.sleep(0.01)

    async def test_a_stage_that_cancels_itself_is_an_error_of_its_own(self) -> None:
        async def gives_up(query: str) -> list[Document]:
            raise asyncio.CancelledError

        with pytest.raises(CormorantError, match="cancelled from within"):
            await with_deadline(RunnableLambda(gives_up), 20).ainvoke("q")

    @pytest.mark.parametrize("way", ["batch", "stream", "abatch", "astream", "astream_events"])
    async def test_however_it_is_asked(self, hanging: Hanging, way: str) -> None:
        held = with_deadline(hanging, SOON)

        async def ask() -> None:
            if way == "batch":
                held.batch(["q", "r"])
            elif way == "stream":
                list(held.stream("q"))
            elif way == "abatch":
                await held.abatch(["q", "r"])
            elif way == "astream":
                _ = [chunk async for chunk in held.astream("q")]
            else:
                _ = [event async for event in held.astream_events("q", version="v2")]

        with pytest.raises(DeadlineExceeded):
            await ask()

    def test_wrapped_again(self, hanging: Hanging, words: BM25Retriever) -> None:
        held = with_deadline(hanging, SOON)
        for wrapped in (
            held.bind(),
            held.with_config(tags=["t"]),
            held.with_retry(stop_after_attempt=1),
        ):
            with pytest.raises(DeadlineExceeded):
                wrapped.invoke("q", {"recursion_limit": 3})
        result = held.with_fallbacks([words]).retrieve("boat", k=1)
        assert [hit.text for hit in result] == ["a boat"]
        assert result.degraded == ("Hanging failed, and BM25Retriever answered in its place.",)

    def test_its_seconds_can_come_with_the_call(self, hanging: Hanging) -> None:
        held = with_deadline(hanging, 20).configurable_fields(
            seconds=ConfigurableField(id="timeout_s")
        )
        with pytest.raises(DeadlineExceeded, match=r"within 0.05 s"):
            held.invoke("q", {"configurable": {"timeout_s": SOON}})

    @pytest.mark.parametrize("seconds", [0, -1, True, "1", None, float("nan"), float("inf")])
    def test_seconds_are_a_number_of_more_than_0(self, words: BM25Retriever, seconds: Any) -> None:
        with pytest.raises(ConfigError, match="seconds must be a number of more than 0; got"):
            with_deadline(words, seconds)

    @pytest.mark.parametrize("stage", [None, "retriever", 3])
    def test_it_stands_around_a_stage(self, stage: Any) -> None:
        with pytest.raises(ConfigError, match="with_deadline takes a retriever"):
            with_deadline(stage, 1)

    def test_functions_and_transformers_are_stages(self) -> None:
        class Reversing(BaseDocumentTransformer):
            def transform_documents(self, documents: Any, **kwargs: Any) -> list[Document]:
                return list(reversed(documents))

        assert texts(with_deadline(lambda query: [doc(query)], 20).invoke("q")) == ["q"]
        input = {"query": "q", "documents": [doc("a"), doc("b")]}
        assert texts(with_deadline(Reversing(), 20).invoke(input)) == ["b", "a"]

    def test_pickles(self, words: BM25Retriever) -> None:
        again = pickle.loads(pickle.dumps(with_deadline(words, 20)))
        assert (texts(again.invoke("boat", k=1)), again.seconds) == (["a boat"], 20)


class TestLegs:
    def _composites(self, legs: list[Any], **kwargs: Any) -> list[Any]:
        return [
            EnsembleRetriever(retrievers=legs, **kwargs),
            MergerRetriever(retrievers=legs, **kwargs),
            HybridRetriever(vector_retriever=legs[0], keyword_retriever=legs[1], **kwargs),
        ]

    @both_ways
    async def test_a_late_one_is_left_out_by_name(
        self, hanging: Hanging, words: BM25Retriever, sync: bool
    ) -> None:
        legs = [with_deadline(hanging, SOON), words]
        for composite in self._composites(legs, on_error="degrade"):
            result = await retrieved(composite, "boat", sync=sync)
            assert {hit.text for hit in result} == {"a boat", "two fish and a boat"}
            (says,) = result.degraded
            assert "was left out: DeadlineExceeded: Hanging did not answer within 0.05 s" in says
            assert not result.complete
            assert not result.exact

    @both_ways
    async def test_without_degrade_it_raises(
        self, hanging: Hanging, words: BM25Retriever, sync: bool
    ) -> None:
        for composite in self._composites([words, with_deadline(hanging, SOON)]):
            with pytest.raises(DeadlineExceeded):
                await retrieved(composite, "boat", sync=sync)

    @both_ways
    async def test_all_late_is_an_error(self, hanging: Hanging, sync: bool) -> None:
        legs = [with_deadline(hanging, SOON), with_deadline(hanging, SOON)]
        for composite in self._composites(legs, on_error="degrade"):
            with pytest.raises(DeadlineExceeded):
                await retrieved(composite, "boat", sync=sync)

    @both_ways
    async def test_one_search_of_several_questions(self, words: BM25Retriever, sync: bool) -> None:
        let_go = threading.Event()

        def slow_for_one(query: str) -> list[Document]:
            if query == "boats?":
                let_go.wait(20)
            return words.invoke(query)

        multi = MultiQueryRetriever(
            retriever=with_deadline(slow_for_one, 0.2),
            llm_chain=RunnableLambda(lambda asked: ["boats?"]),
            on_error="degrade",
        )
        result = await retrieved(multi, "fish", sync=sync)
        let_go.set()
        assert {hit.text for hit in result} == {"a fish", "two fish and a boat"}
        assert result.degraded[0].startswith("variant 1 failed and was left out: DeadlineExceeded")


class ByLength(BaseCrossEncoder):
    def score(self, text_pairs: Any) -> list[float]:
        return [float(len(passage)) for _, passage in text_pairs]


class Never(BaseCrossEncoder):
    def __init__(self, until: threading.Event) -> None:
        self.until = until

    def score(self, text_pairs: Any) -> list[float]:
        self.until.wait(20)
        return [0.0] * len(text_pairs)


class TestRerankers:
    @both_ways
    @pytest.mark.parametrize("piped", [True, False])
    async def test_a_late_one_leaves_the_order_as_it_was(
        self, hanging: Hanging, words: BM25Retriever, sync: bool, piped: bool
    ) -> None:
        late: Any = with_deadline(CrossEncoderReranker(model=Never(hanging.until), top_n=1), SOON)
        if piped:
            late = DocumentCompressorPipeline(transformers=[late])
        retriever = ContextualCompressionRetriever(
            base_compressor=late, base_retriever=words, on_error="degrade"
        )
        result = await retrieved(retriever, "boat", sync=sync)
        found = [hit.text for hit in result]
        assert found == texts(words.invoke("boat"))[: len(found)]
        assert len(found) == (2 if piped else 1)
        assert "the order is the retriever's own: DeadlineExceeded" in result.degraded[0]
        retriever = retriever.model_copy(update={"on_error": "raise"})
        with pytest.raises(DeadlineExceeded, match="CrossEncoderReranker did not answer"):
            await retrieved(retriever, "boat", sync=sync)

    @pytest.mark.parametrize("how", ["with_deadline", "with_retry", "bind", "with_fallbacks"])
    async def test_wrapped_it_takes_what_it_takes_bare(
        self, words: BM25Retriever, how: str
    ) -> None:
        bare: Any = CrossEncoderReranker(model=ByLength(), top_n=1)
        wrapped = {
            "with_deadline": lambda: with_deadline(bare, 20),
            "with_retry": bare.with_retry,
            "bind": bare.bind,
            "with_fallbacks": lambda: bare.with_fallbacks([bare]),
        }[how]()
        plain = ContextualCompressionRetriever(base_compressor=bare, base_retriever=words)
        held = ContextualCompressionRetriever(base_compressor=wrapped, base_retriever=words)
        for k in (1, 2):
            known = plain.retrieve("boat", k=k)
            assert len(known) == k
            assert repr(held.retrieve("boat", k=k).hits) == repr(known.hits)
            assert repr((await held.aretrieve("boat", k=k)).hits) == repr(known.hits)


class TestRewriters:
    def _asking(self, model: Any, words: BM25Retriever, vs: Cormorant) -> list[Any]:
        return [
            MultiQueryRetriever.from_llm(words, model),
            DecompositionRetriever.from_llm(words, model),
            RePhraseQueryRetriever.from_llm(words, model),
            HyDERetriever.from_llm(model, vs),
        ]

    @both_ways
    async def test_late_the_question_is_asked_as_it_was_put(
        self, never: Any, words: BM25Retriever, sync: bool
    ) -> None:
        held = with_deadline(never, SOON)
        with Cormorant.from_texts(["a boat"], DeterministicFakeEmbedding(size=8)) as vs:
            for retriever in self._asking(held, words, vs):
                result = await retrieved(retriever, "boat", sync=sync)
                assert result.hits[0].text == "a boat"
                assert "did not answer within 0.05 s" in result.degraded[0]


class TestTheWhole:
    """One deadline around everything: each stage sees what is left."""

    @pytest.fixture
    def short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Late stages are late soon, and leave a busy machine much time for the rest."""
        monkeypatch.setattr(defaults, "STAGE_SHARE", 0.2)
        monkeypatch.setattr(defaults, "REWRITE_SHARE", 0.02)

    @both_ways
    @pytest.mark.usefixtures("short")
    async def test_what_came_in_time_is_returned(
        self, hanging: Hanging, words: BM25Retriever, sync: bool
    ) -> None:
        inner = EnsembleRetriever(retrievers=[words, hanging], on_error="degrade")
        outer = MergerRetriever(retrievers=[inner, words], on_error="degrade")
        result = await retrieved(with_deadline(outer, 5), "boat", sync=sync)
        assert {hit.text for hit in result} == {"a boat", "two fish and a boat"}
        (says,) = result.degraded  # the inner one's leg alone: it had time left to answer
        assert says.startswith("Hanging failed and was left out: DeadlineExceeded")

    @both_ways
    @pytest.mark.usefixtures("short")
    async def test_a_rewriter_leaves_time_to_search(
        self, never: Any, words: BM25Retriever, sync: bool
    ) -> None:
        held = with_deadline(MultiQueryRetriever.from_llm(words, never), 5)
        result = await retrieved(held, "boat", sync=sync)
        assert result.hits[0].text == "a boat"
        assert "llm_chain did not answer" in result.degraded[0]

    @both_ways
    @pytest.mark.usefixtures("short")
    async def test_a_late_reranker_leaves_time_to_answer(
        self, hanging: Hanging, words: BM25Retriever, sync: bool
    ) -> None:
        never = CrossEncoderReranker(model=Never(hanging.until), top_n=1)
        retriever = ContextualCompressionRetriever(
            base_compressor=never, base_retriever=words, on_error="degrade"
        )
        result = await retrieved(with_deadline(retriever, 2), "boat", sync=sync)
        assert [hit.text for hit in result] == ["a boat"]
        assert "the order is the retriever's own: DeadlineExceeded" in result.degraded[0]

    @both_ways
    async def test_without_degrade_it_raises(
        self, hanging: Hanging, words: BM25Retriever, sync: bool
    ) -> None:
        whole = with_deadline(EnsembleRetriever(retrievers=[words, hanging]), 0.3)
        with pytest.raises(DeadlineExceeded):
            await retrieved(whole, "boat", sync=sync)

    def test_stages_see_what_is_left(self) -> None:
        seen: dict[str, float | None] = {}

        def look(name: str) -> Any:
            def stage(asked: Any) -> Any:
                seen[name] = time_left()
                return ["boats?"] if name == "model" else [doc("a boat")]

            return RunnableLambda(stage)

        multi = MultiQueryRetriever(
            retriever=with_deadline(look("search"), 5), llm_chain=look("model")
        )
        with_deadline(multi, 100).invoke("boat")
        assert 0 < seen["model"] <= 100 * defaults.REWRITE_SHARE
        assert 0 < seen["search"] <= 5
        with_deadline(multi, 2).invoke("boat")
        assert 0 < seen["search"] <= 2 * defaults.STAGE_SHARE
        multi.invoke("boat")
        assert seen["model"] is None
        assert time_left() is None

    def test_what_has_no_time_left_is_not_begun(self, hanging: Hanging) -> None:
        begun = []

        def waits(query: str) -> list[Document]:
            hanging.until.wait(0.3)
            begun.append("late")
            return with_deadline(lambda query: begun.append("next") or [], 5).invoke(query)

        with pytest.raises(DeadlineExceeded):
            with_deadline(waits, SOON).invoke("q")
        ended("waits")
        assert begun == ["late"]


class TestThreads:
    def test_are_counted_and_no_more_begun_than_may_straggle(
        self, monkeypatch: pytest.MonkeyPatch, words: BM25Retriever
    ) -> None:
        monkeypatch.setattr(defaults, "MAX_STRAGGLERS", 3)
        until = threading.Event()
        stuck = OnlySync(until=until)
        for _ in range(3):
            with pytest.raises(DeadlineExceeded, match="did not answer"):
                with_deadline(stuck, 0.01).invoke("q")  # anew each time, as for each request
        with pytest.raises(DeadlineExceeded, match="3 calls of it that took too long are still"):
            with_deadline(stuck, 20).invoke("q")
        assert len(stuck.begun) == 3
        assert texts(with_deadline(words, 20).invoke("boat", k=1)) == ["a boat"]  # not its fault
        until.set()
        ended("OnlySync")
        assert texts(with_deadline(stuck, 20).invoke("q")) == ["too late"]
        assert id(stuck) not in stragglers._stragglers

    def test_of_many_stages_together_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stragglers, "_MOST", 2)
        until = threading.Event()
        for _ in range(2):
            with pytest.raises(DeadlineExceeded, match="did not answer"):
                with_deadline(OnlySync(until=until), 0.01).invoke("q")
        with pytest.raises(DeadlineExceeded, match="2 calls that took too long"):
            with_deadline(OnlySync(until=until), 20).invoke("q")
        until.set()

    def test_hold_no_exit_up(self, hanging: Hanging) -> None:
        with pytest.raises(DeadlineExceeded):
            with_deadline(hanging, SOON).invoke("q")
        mine = [each for each in threading.enumerate() if each.name == "cormorant Hanging"]
        assert mine
        assert all(each.daemon for each in mine)

    async def test_asyncios_own_few_are_not_kept(self) -> None:
        until = threading.Event()
        stuck = OnlySync(until=until)
        composite = EnsembleRetriever(retrievers=[stuck, stuck], on_error="degrade")
        with pytest.raises(DeadlineExceeded):
            await with_deadline(composite, 0.2).ainvoke("q")
        names = [each.name for each in threading.enumerate()]
        assert names.count("cormorant OnlySync") == 2
        until.set()


class Listening(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.heard.append(("start", kwargs["name"]))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard.append(("error", type(error)))

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.heard.append(("start", kwargs["name"]))

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.heard.append((name, data))


class TestRuns:
    @both_ways
    async def test_show_what_was_late_and_what_is_missing(
        self, hanging: Hanging, words: BM25Retriever, sync: bool
    ) -> None:
        listening = Listening()
        composite = EnsembleRetriever(
            retrievers=[words, with_deadline(hanging, SOON)], on_error="degrade"
        )
        outer = BoostRetriever(retriever=composite, boosts=[])
        config: Any = {"callbacks": [listening]}
        result = await retrieved(outer, "boat", sync=sync, config=config)
        assert ("error", DeadlineExceeded) in listening.heard
        said = [data for name, data in listening.heard if name == "cormorant_degraded"]
        assert list(result.degraded) in said
        assert len(said) == 2, "once by each run whose answer is a lesser one"

    async def test_of_an_event_stream(self, hanging: Hanging, words: BM25Retriever) -> None:
        composite = EnsembleRetriever(
            retrievers=[words, with_deadline(hanging, SOON)], on_error="degrade"
        )
        events = [event async for event in composite.astream_events("boat", version="v2")]
        (said,) = [event for event in events if event["event"] == "on_custom_event"]
        assert said["name"] == "cormorant_degraded"
        assert "Hanging did not answer" in said["data"][0]

    @both_ways
    async def test_a_whole_answer_says_nothing(self, words: BM25Retriever, sync: bool) -> None:
        listening = Listening()
        config: Any = {"callbacks": [listening]}
        await retrieved(with_deadline(words, 20), "boat", sync=sync, config=config)
        assert listening.heard == [("start", "BM25Retriever"), ("start", "BM25Retriever")]

    @both_ways
    async def test_scopes_hold_inside(self, sync: bool) -> None:
        metadatas = [{"tenant": "acme"}, {"tenant": "rival"}]
        with Cormorant.from_texts(["a fish", "two fish"], None, metadatas) as vs:
            inner = with_deadline(vs.as_retriever(search_type="text"), 20)
            for held in (inner, with_deadline(MergerRetriever(retrievers=[inner]), 20)):
                config: Any = {"configurable": {"scope": {"tenant": "acme"}}}
                result = await retrieved(held, "fish", sync=sync, config=config)
                assert [hit.text for hit in result] == ["a fish"]
                with scoping(tenant="rival"):
                    result = await retrieved(held, "fish", sync=sync)
                    assert [hit.text for hit in result] == ["two fish"]

    def test_scopes_are_those_of_the_call_for_what_overruns(self) -> None:
        seen = []
        until, done = threading.Event(), threading.Event()

        def late(query: str) -> list[Document]:
            until.wait(20)
            seen.append(scope_in_force())
            done.set()
            return []

        with scoping(tenant="acme"), pytest.raises(DeadlineExceeded):
            with_deadline(late, SOON).invoke("q")
        until.set()
        assert done.wait(5)
        assert seen == [{"tenant": "acme"}]

    def test_a_stage_that_cannot_see_a_scope_is_refused_through_it(self) -> None:
        held = MergerRetriever(retrievers=[with_deadline(Failing(), 20)])
        with pytest.raises(ScopeError, match="cannot see it"):
            held.invoke("q", {"configurable": {"scope": {"tenant": "acme"}}})
