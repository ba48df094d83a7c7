"""Do the retrievers and compressors with a model in them work as any Runnable does?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import found, ids
from querylab import FAKE, QUERY_SIDE, Away, Heard, reply_for, says, sometimes
from retrieverlab import texts

from cormorant.langchain import Cormorant
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers import HypotheticalDocumentEmbedder
from cormorant.langchain.retrievers.document_compressors import (
    LLMChainExtractor,
    LLMChainFilter,
    LLMListwiseRerank,
    LLMPointwiseRerank,
)

COMPRESSORS = {
    LLMChainExtractor: "text",
    LLMChainFilter: "YES",
    LLMPointwiseRerank: "7",
    LLMListwiseRerank: "[0]",
}


@pytest.fixture
def vs() -> Any:
    with Cormorant.from_texts(["fish", "net", "boat"], FAKE) as store:
        yield store


def ask() -> dict[str, Any]:
    return {"query": "which?", "documents": found("one", "two")}


def failing(kind: str, vs: Cormorant) -> Runnable[Any, Any]:
    """A retriever whose model is away, and which says so."""
    return QUERY_SIDE[kind](Away(), vs, on_llm_error="raise")


def working(kind: str, vs: Cormorant) -> Any:
    return QUERY_SIDE[kind](says(reply_for(kind, "net")), vs)


@pytest.mark.parametrize("kind", QUERY_SIDE)
class TestRetrievers:
    def test_a_failing_model_falls_back_to_the_question(self, vs: Cormorant, kind: str) -> None:
        result = QUERY_SIDE[kind](Away(), vs).retrieve("fish")
        assert result.hits[0].text == "fish"
        (sentence,) = result.degraded
        assert sentence.startswith("The model failed, the question ")
        assert "ConnectionError: the model is away" in sentence

    async def test_async_falls_back_too(self, vs: Cormorant, kind: str) -> None:
        result = await QUERY_SIDE[kind](Away(), vs).aretrieve("fish")
        assert result.hits[0].text == "fish"
        assert len(result.degraded) == 1

    async def test_with_fallbacks(self, vs: Cormorant, kind: str) -> None:
        safe = failing(kind, vs).with_fallbacks([working(kind, vs)])
        assert texts(safe.invoke("gull"))[0] == "net"
        assert texts(await safe.ainvoke("gull"))[0] == "net"
        with pytest.raises(ConnectionError):
            failing(kind, vs).invoke("gull")
        with pytest.raises(ConnectionError):
            await failing(kind, vs).ainvoke("gull")

    def test_a_model_with_fallbacks(self, vs: Cormorant, kind: str) -> None:
        model = Away().with_fallbacks([says(reply_for(kind, "net"))])
        result = QUERY_SIDE[kind](model, vs).retrieve("gull")
        assert result.hits[0].text == "net"
        assert result.degraded == ()

    async def test_with_retry(self, vs: Cormorant, kind: str) -> None:
        def twice() -> Any:
            model = sometimes(None, reply_for(kind, "net"))
            retriever = QUERY_SIDE[kind](model, vs, on_llm_error="raise")
            return retriever.with_retry(
                stop_after_attempt=2,
                wait_exponential_jitter=False,
                retry_if_exception_type=(ConnectionError,),
            )

        assert texts(twice().invoke("gull"))[0] == "net"
        assert texts(await twice().ainvoke("gull"))[0] == "net"

    async def test_bind(self, vs: Cormorant, kind: str) -> None:
        bound = working(kind, vs).bind(k=1)
        assert texts(bound.invoke("gull"))[0] == texts(await bound.ainvoke("gull"))[0]
        assert len(bound.invoke("gull")) == 1
        assert len(bound.bind(filter={"nobody": 1}).invoke("gull")) == 0

    async def test_batch(self, vs: Cormorant, kind: str) -> None:
        retriever = working(kind, vs)
        expected = [texts(retriever.invoke("gull")), texts(retriever.invoke("net"))]
        assert [texts(each) for each in retriever.batch(["gull", "net"])] == expected
        assert [texts(each) for each in await retriever.abatch(["gull", "net"])] == expected
        kept = retriever.batch(["gull", " "], return_exceptions=True)
        assert texts(kept[0]) == expected[0]
        assert isinstance(kept[1], ValueError)

    async def test_stream(self, vs: Cormorant, kind: str) -> None:
        retriever = working(kind, vs)
        expected = texts(retriever.invoke("gull"))
        assert [texts(each) for each in retriever.stream("gull")] == [expected]
        assert [texts(each) async for each in retriever.astream("gull")] == [expected]

    async def test_events_show_the_model_and_the_search(self, vs: Cormorant, kind: str) -> None:
        events = [e async for e in working(kind, vs).astream_events("gull", version="v2")]
        kinds = [event["event"] for event in events]
        assert kinds[0] == "on_retriever_start"
        assert kinds[-1] == "on_retriever_end"
        assert {"on_chat_model_start", "on_chat_model_end", "on_prompt_end"} <= set(kinds)
        if kind != "HyDE":  # which searches the store itself
            assert kinds.count("on_retriever_start") >= 2
        root = events[0]["run_id"]
        assert all(event["parent_ids"][0] == root for event in events[1:-1])

    async def test_in_a_chain(self, vs: Cormorant, kind: str) -> None:
        chain = RunnableLambda(lambda given: given["q"]) | working(kind, vs) | texts
        assert chain.invoke({"q": "gull"})[0] == "net"
        assert (await chain.ainvoke({"q": "gull"}))[0] == "net"

    @pytest.mark.parametrize("asynchronous", [False, True])
    async def test_run_id_tags_metadata_and_callbacks_reach_every_run(
        self, vs: Cormorant, kind: str, asynchronous: bool
    ) -> None:
        heard, run_id = Heard(), uuid4()
        config: Any = {
            "callbacks": [heard],
            "tags": ["night"],
            "metadata": {"user": "u1"},
            "run_id": run_id,
        }
        retriever = working(kind, vs)
        if asynchronous:
            await retriever.ainvoke("gull", config)
        else:
            retriever.invoke("gull", config)
        assert heard.runs[run_id]["kind"] == "retriever"
        assert heard.runs[run_id]["parent"] is None
        kinds = [run["kind"] for run in heard.runs.values()]
        assert "model" in kinds
        assert kinds.count("retriever") == {"MultiQuery": 3, "Decomposition": 3, "HyDE": 1}.get(
            kind, 2
        )
        for each, run in heard.runs.items():
            assert heard.root(each) == run_id
            assert "night" in run["tags"]
            assert run["metadata"]["user"] == "u1"

    async def test_callbacks_of_its_own_hear_the_children(self, vs: Cormorant, kind: str) -> None:
        heard = Heard()
        working(kind, vs).with_config(callbacks=[heard], run_name="mine").invoke("gull")
        assert "model" in [run["kind"] for run in heard.runs.values()]
        assert len({heard.root(run_id) for run_id in heard.runs}) == 1

    def test_what_the_caller_configured_reaches_the_model(self, vs: Cormorant, kind: str) -> None:
        heard = []

        def model(prompt: Any, config: Any) -> str:
            heard.append(config["configurable"]["tone"])
            return reply_for(kind, "net")

        retriever = QUERY_SIDE[kind](RunnableLambda(model), vs)
        retriever.invoke("gull", {"configurable": {"tone": "plain"}})
        assert heard == ["plain"]

    def test_alternatives_of_the_model_are_seen_from_outside(
        self, vs: Cormorant, kind: str
    ) -> None:
        from langchain_core.runnables import ConfigurableField

        model = Away().configurable_alternatives(
            ConfigurableField(id="llm"), other=says(reply_for(kind, "net"))
        )
        retriever = QUERY_SIDE[kind](model, vs)
        assert "llm" in {spec.id for spec in retriever.config_specs}
        result = retriever.retrieve("gull", {"configurable": {"llm": "other"}})
        assert result.degraded == ()
        assert result.hits[0].text == "net"


@pytest.mark.parametrize("kind", COMPRESSORS)
class TestCompressors:
    async def test_with_fallbacks(self, kind: Any) -> None:
        safe = kind.from_llm(Away()).with_fallbacks([kind.from_llm(says(COMPRESSORS[kind]))])
        assert ids(safe.invoke(ask())) == ids(await safe.ainvoke(ask()))
        assert safe.invoke(ask())
        with pytest.raises(ConnectionError):
            kind.from_llm(Away()).invoke(ask())

    def test_with_retry(self, kind: Any) -> None:
        model = sometimes(None, *[COMPRESSORS[kind]] * 4)
        patient = kind.from_llm(model).with_retry(
            stop_after_attempt=2,
            wait_exponential_jitter=False,
            retry_if_exception_type=(ConnectionError,),
        )
        config = {"max_concurrency": 1}
        assert ids(patient.invoke(ask(), config)) == ["d0", "d1"]

    async def test_batch_and_stream(self, kind: Any) -> None:
        compressor = kind.from_llm(says(COMPRESSORS[kind]))
        expected = compressor.invoke(ask())
        assert compressor.batch([ask(), ask()]) == [expected, expected]
        assert await compressor.abatch([ask()]) == [expected]
        assert list(compressor.stream(ask())) == [expected]
        assert [each async for each in compressor.astream(ask())] == [expected]

    async def test_bind(self, kind: Any) -> None:
        compressor = kind.from_llm(says(COMPRESSORS[kind]))
        if "top_n" in compressor.call_arguments:
            bound = compressor.bind(top_n=1)
            assert len(bound.invoke(ask())) == len(await bound.ainvoke(ask())) == 1
        else:
            with pytest.raises(ValueError, match="does not take 'top_n'"):
                compressor.bind(top_n=1).invoke(ask())

    async def test_events_show_the_model(self, kind: Any) -> None:
        compressor = kind.from_llm(says(COMPRESSORS[kind]))
        events = [e async for e in compressor.astream_events(ask(), version="v2")]
        assert events[0]["name"] == kind.__name__
        assert "on_chat_model_end" in {event["event"] for event in events}
        root = events[0]["run_id"]
        assert all(root in event["parent_ids"] for event in events if event["run_id"] != root)

    @pytest.mark.parametrize("asynchronous", [False, True])
    async def test_run_id_tags_metadata_and_callbacks_reach_every_run(
        self, kind: Any, asynchronous: bool
    ) -> None:
        heard, run_id = Heard(), uuid4()
        config: Any = {
            "callbacks": [heard],
            "tags": ["night"],
            "metadata": {"user": "u1"},
            "run_id": run_id,
        }
        compressor = kind.from_llm(says(COMPRESSORS[kind]))
        if asynchronous:
            out = await compressor.ainvoke(ask(), config)
        else:
            out = compressor.invoke(ask(), config)
        assert isinstance(out, Answer)
        assert "model" in [run["kind"] for run in heard.runs.values()]
        for each, run in heard.runs.items():
            assert heard.root(each) == run_id
            assert "night" in run["tags"]
            assert run["metadata"]["user"] == "u1"


class TestEmbedder:
    @pytest.mark.parametrize("asynchronous", [False, True])
    async def test_its_config_reaches_every_run(self, asynchronous: bool) -> None:
        heard = Heard()
        embedder = HypotheticalDocumentEmbedder.from_llm(
            says("net"),
            FAKE,
            passages=2,
            config={"callbacks": [heard], "tags": ["night"], "metadata": {"user": "u1"}},
        )
        if asynchronous:
            await embedder.aembed_query("gull")
        else:
            embedder.embed_query("gull")
        assert [run["kind"] for run in heard.runs.values()].count("model") == 2
        for run in heard.runs.values():
            assert "night" in run["tags"]
            assert run["metadata"]["user"] == "u1"

    @pytest.mark.parametrize("asynchronous", [False, True])
    async def test_inside_a_chain_its_model_is_a_child_of_what_calls_it(
        self, asynchronous: bool
    ) -> None:
        heard = Heard()
        embedder = HypotheticalDocumentEmbedder.from_llm(says("net"), FAKE, passages=1)

        async def embed(question: str) -> list[float]:
            return await embedder.aembed_query(question)

        chain: Any = RunnableLambda(embedder.embed_query, afunc=embed)
        config: Any = {"callbacks": [heard]}
        if asynchronous:
            await chain.ainvoke("gull", config)
        else:
            chain.invoke("gull", config)
        assert "model" in [run["kind"] for run in heard.runs.values()]
        assert len({heard.root(run_id) for run_id in heard.runs}) == 1
