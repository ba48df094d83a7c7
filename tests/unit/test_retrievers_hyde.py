"""Are made-up passages looked for, and refusals not?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import Away, says
from retrieverlab import texts

from cormorant.errors import ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import HyDERetriever, HypotheticalDocumentEmbedder

FAKE = DeterministicFakeEmbedding(size=8)


def embed(text: str) -> Any:
    return np.array(FAKE.embed_query(text))


class TwoSided(Embeddings):
    """Embeds questions and documents differently, as asymmetric models do."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.0, 1.0]


def embedder(*replies: str, **settings: Any) -> HypotheticalDocumentEmbedder:
    return HypotheticalDocumentEmbedder.from_llm(says(*replies), FAKE, **settings)


class TestEmbedder:
    def test_several_passages_are_averaged_with_the_question(self) -> None:
        vector = embedder("p1", "p2", passages=2).embed_query("q")
        assert vector == pytest.approx((embed("p1") + embed("p2") + embed("q")) / 3, abs=1e-6)

    async def test_async_gives_the_same(self) -> None:
        made = embedder("p", passages=2)
        assert await made.aembed_query("q") == pytest.approx(made.embed_query("q"))

    async def test_async_awaits_model_and_embedder_and_holds_no_thread(self) -> None:
        async def write(prompt: Any) -> str:
            return "p"

        def never(prompt: Any) -> str:
            raise AssertionError("the sync method was called")

        class Awaited(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                raise AssertionError("the sync method was called")

            def embed_query(self, text: str) -> list[float]:
                raise AssertionError("the sync method was called")

            async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
                return [[1.0, 0.0] for _ in texts]

            async def aembed_query(self, text: str) -> list[float]:
                return [0.0, 1.0]

        model = RunnableLambda(never, afunc=write)
        made = HypotheticalDocumentEmbedder.from_llm(model, Awaited(), passages=1)
        assert await made.aembed_query("q") == [0.5, 0.5]

    def test_passages_are_documents_and_the_question_a_query(self) -> None:
        made = HypotheticalDocumentEmbedder.from_llm(says("p"), TwoSided(), passages=3)
        assert made.embed_query("q") == pytest.approx([0.75, 0.25])

    @pytest.mark.parametrize("refusal", ["I'm sorry, but I can't.", "", "很抱歉，不行"])
    def test_a_refusal_is_not_embedded(self, refusal: str) -> None:
        made = embedder(refusal, "p", passages=2)
        vector, passages, notes = made.imagine("q")
        assert passages == ["p"]
        assert vector == pytest.approx((embed("p") + embed("q")) / 2, abs=1e-6)
        assert "1 of 2 passages" in notes[0]
        alone = embedder(refusal, include_query=False).embed_query("q")
        assert alone == pytest.approx(embed("q"), abs=1e-6)

    def test_a_failing_model_leaves_the_question_or_raises(self) -> None:
        made = HypotheticalDocumentEmbedder.from_llm(Away(), FAKE)
        assert made.embed_query("q") == pytest.approx(embed("q"), abs=1e-6)
        with pytest.raises(ConnectionError):
            HypotheticalDocumentEmbedder.from_llm(Away(), FAKE, on_llm_error="raise").embed_query(
                "q"
            )

    def test_callbacks_hear_the_model(self) -> None:
        heard = []

        class Watch(BaseCallbackHandler):
            def on_chat_model_start(self, serialized: Any, messages: Any, **kw: Any) -> None:
                heard.append(messages)

        embedder("p", passages=2, config={"callbacks": [Watch()]}).embed_query("q")
        assert len(heard) == 2

    def test_a_store_that_probes_it_asks_the_model_nothing(self) -> None:
        made = HypotheticalDocumentEmbedder.from_llm(Away(), FAKE, on_llm_error="raise")
        with Cormorant.from_texts(["fish"], FAKE) as vs:
            other = Cormorant(made, store=vs.store)
            other.add_texts(["bread"])
            with pytest.raises(Exception, match="the model is away"):
                other.similarity_search("fish")

    def test_documents_are_embedded_as_they_are(self) -> None:
        assert embedder("p").embed_documents(["a"]) == FAKE.embed_documents(["a"])

    @pytest.mark.parametrize("wrong", [{"passages": 0}, {"prompt_key": "web_search"}])
    def test_wrong_arguments_are_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            embedder("p", **wrong)


@pytest.fixture
def vs() -> Any:
    meta = [{"tenant": "acme"}, {"tenant": "other"}, {"tenant": "acme"}]
    with Cormorant.from_texts(["fish", "bread", "boat"], FAKE, meta) as store:
        yield store


class TestRetriever:
    def test_what_is_near_to_the_passages_is_found(self, vs: Cormorant) -> None:
        retriever = HyDERetriever.from_llm(says("bread"), vs, k=1)
        result = retriever.retrieve("what do gulls eat?")
        assert [hit.text for hit in result] == ["bread"]
        assert result.plan[0] == "passage 1: bread"
        assert result.hits[0].legs["vector"].rank == 1

    async def test_async_finds_the_same(self, vs: Cormorant) -> None:
        retriever = HyDERetriever.from_llm(says("bread"), vs, k=2)
        assert texts(await retriever.ainvoke("q")) == texts(retriever.invoke("q"))

    def test_the_text_leg_looks_for_the_question(self, vs: Cormorant) -> None:
        retriever = HyDERetriever.from_llm(says("bread"), vs, search_type="hybrid")
        hits = {hit.text: hit for hit in retriever.retrieve("boat")}
        assert hits["boat"].legs["text"].rank == 1
        assert hits["bread"].legs["vector"].rank == 1

    def test_all_filters_and_the_scope_hold(self, vs: Cormorant) -> None:
        fixed = HyDERetriever.from_llm(
            says("bread"), vs, search_kwargs={"filter": {"tenant": "acme"}}
        )
        assert sorted(texts(fixed.invoke("q"))) == ["boat", "fish"]
        assert fixed.invoke("q", filter={"tenant": "other"}) == []
        config = {"configurable": {"scope": {"tenant": "other"}}}
        assert texts(HyDERetriever.from_llm(says("fish"), vs).invoke("q", config)) == ["bread"]

    def test_another_store_works_and_is_refused_in_a_scope(self) -> None:
        store = InMemoryVectorStore.from_texts(["fish", "bread"], FAKE)
        retriever = HyDERetriever.from_llm(says("bread"), store, k=1)
        assert texts(retriever.invoke("q")) == ["bread"]
        with pytest.raises(ScopeError):
            retriever.invoke("q", {"configurable": {"scope": {"tenant": "acme"}}})

    def test_a_failing_model_leaves_the_question_and_says_so(self, vs: Cormorant) -> None:
        result = HyDERetriever.from_llm(Away(), vs, k=1).retrieve("fish")
        assert [hit.text for hit in result] == ["fish"]
        assert "the question alone was embedded: ConnectionError" in result.degraded[0]

    def test_the_models_runs_are_children(self, vs: Cormorant) -> None:
        roots, children = [], []

        class Watch(BaseCallbackHandler):
            def on_retriever_start(self, serialized: Any, query: str, **kw: Any) -> None:
                roots.append(kw["run_id"])

            def on_chain_start(self, serialized: Any, inputs: Any, **kw: Any) -> None:
                children.append(kw["parent_run_id"])

        HyDERetriever.from_llm(says("bread"), vs).invoke("q", {"callbacks": [Watch()]})
        assert children.count(roots[0]) == 3

    @pytest.mark.parametrize(
        "wrong", [{"k": 0}, {"search_type": "text"}, {"search_kwargs": {"k": 3}}, {"passage": 1}]
    )
    def test_wrong_arguments_are_refused(self, vs: Cormorant, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            HyDERetriever.from_llm(says("p"), vs, **wrong)
