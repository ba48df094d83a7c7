"""Does every from_llm take any model, and say what it takes where it got something else?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import ToolModel, found, ids
from querylab import FAKE, QUERY_SIDE, Away, ByQuestion, over, reply_for, says
from retrieverlab import texts

from cormorant.errors import ConfigError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    DecompositionRetriever,
    HyDERetriever,
    HypotheticalDocumentEmbedder,
    MultiQueryRetriever,
    RePhraseQueryRetriever,
    SelfQueryRetriever,
)
from cormorant.langchain.retrievers.document_compressors import (
    LLMChainExtractor,
    LLMChainFilter,
    LLMListwiseRerank,
    LLMPointwiseRerank,
    RerankError,
)
from cormorant.langchain.retrievers.document_compressors.listwise_rerank import RankDocuments

COMPRESSORS: dict[Any, str] = {
    LLMChainExtractor: "text",
    LLMChainFilter: "YES",
    LLMPointwiseRerank: "7",
    LLMListwiseRerank: "[0] > [1]",
}


@pytest.fixture
def vs() -> Any:
    with Cormorant.from_texts(["fish", "net"], FAKE, [{"n": 1}, {"n": 2}]) as store:
        yield store


def ask() -> dict[str, Any]:
    return {"query": "which?", "documents": found("one", "two", "three")}


def made(kind: str, llm: Any, vs: Cormorant) -> Any:
    if kind in QUERY_SIDE:
        return QUERY_SIDE[kind](llm, vs)
    if kind == "Embedder":
        return HypotheticalDocumentEmbedder.from_llm(llm, FAKE)
    return next(each for each in COMPRESSORS if each.__name__ == kind).from_llm(llm)


KINDS = [*QUERY_SIDE, "Embedder", *(kind.__name__ for kind in COMPRESSORS)]


class TestAnyModel:
    @pytest.mark.parametrize("kind", QUERY_SIDE)
    async def test_a_plain_runnable_changes_the_question(self, vs: Cormorant, kind: str) -> None:
        said = reply_for(kind, "net")
        for reply in (said, AIMessage(content=said)):
            for model in (
                RunnableLambda(lambda _, reply=reply: reply),
                lambda _, reply=reply: reply,
            ):
                retriever = QUERY_SIDE[kind](model, vs)
                result = retriever.retrieve("boat")
                assert result.hits[0].text == "net"
                assert result.degraded == ()
                assert texts(await retriever.ainvoke("boat"))[0] == "net"

    @pytest.mark.parametrize("kind", COMPRESSORS)
    @pytest.mark.parametrize("wrap", [str, AIMessage])
    async def test_a_plain_runnable_compresses(self, kind: Any, wrap: Any) -> None:
        reply = wrap(COMPRESSORS[kind])
        compressor = kind.from_llm(RunnableLambda(lambda _: reply))
        assert ids(compressor.invoke(ask())) == ids(await compressor.ainvoke(ask()))
        assert ids(compressor.invoke(ask())) == ["d0", "d1", "d2"]

    @pytest.mark.parametrize(
        "reply",
        [
            "[2] > [0] > [1]",
            '{"ranked_document_ids": [2, 0, 1]}',
            '```json\n{"ranked_document_ids": [2, 0, 1]}\n```',
            "<think>[0] > [1] > [2]?</think>[2] > [0] > [1]",
            AIMessage(content="[2] > [0] > [1]"),
            {"ranked_document_ids": [2, 0, 1]},
            {"ranked_document_ids": ["2", "0", "1"]},
            {"question": "?", "text": "[2] > [0] > [1]"},
            [2, 0, 1],
            RankDocuments(ranked_document_ids=[2, 0, 1]),
        ],
    )
    def test_an_order_is_read_from_whatever_a_runnable_gives(self, reply: Any) -> None:
        reranker = LLMListwiseRerank.from_llm(RunnableLambda(lambda _: reply))
        assert ids(reranker.invoke(ask())) == ["d2", "d0", "d1"]

    @pytest.mark.parametrize(
        "reply", [None, 3, {"ids": [1]}, {"ranked_document_ids": "all"}, [[1]], ["one"]]
    )
    def test_what_is_no_order_is_our_error(self, reply: Any) -> None:
        with pytest.raises(RerankError, match="must give a list of ids; it gave"):
            LLMListwiseRerank.from_llm(RunnableLambda(lambda _: reply)).invoke(ask())

    @pytest.mark.parametrize("reply", ["[" + "9" * 5000 + "]", "[0] > [" + "9" * 5000 + "]"])
    def test_an_id_of_many_digits_is_no_documents(self, reply: str) -> None:
        reranker = LLMListwiseRerank.from_llm(says(reply))
        if reply.startswith("[0]"):
            assert ids(reranker.invoke(ask())) == ["d0", "d1", "d2"]
        else:
            with pytest.raises(RerankError, match="must give ids from 0 to 2"):
                reranker.invoke(ask())

    def test_a_wrapped_model_calls_tools_still(self) -> None:
        def model() -> ToolModel:
            return ToolModel({"ranked_document_ids": [2, 0, 1]})

        class Broken(ToolModel):
            def _generate(self, *args: Any, **kwargs: Any) -> Any:
                raise ConnectionError("the model is away")

        for llm in (
            model().bind(user="u"),
            model().with_retry(),
            model().with_config(tags=["t"]),
            Broken().with_fallbacks([model()]),
        ):
            assert ids(LLMListwiseRerank.from_llm(llm).invoke(ask())) == ["d2", "d0", "d1"]

    def test_a_wrapped_model_that_writes_is_asked_for_text(self) -> None:
        llm = Away().with_fallbacks([says("[2] > [0] > [1]").bind(stop=["\n"])])
        assert ids(LLMListwiseRerank.from_llm(llm).invoke(ask())) == ["d2", "d0", "d1"]
        mixed = Away().with_fallbacks([ToolModel({"ranked_document_ids": [0]})])
        with pytest.raises(RerankError):  # it answers with a tool it was not asked to call
            LLMListwiseRerank.from_llm(mixed).invoke(ask())


class TestNoModel:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("llm", ["gpt-5", None, 3, Away, FAKE, {"model": 1}])
    def test_it_is_refused_with_what_is_taken(self, vs: Cormorant, kind: str, llm: Any) -> None:
        with pytest.raises(ConfigError, match="takes a language model as llm, or a Runnable"):
            made(kind, llm, vs)

    def test_arguments_in_another_order_are_refused(self, vs: Cormorant) -> None:
        llm = says("net")
        swapped: list[Any] = [
            lambda: HyDERetriever.from_llm(vs, llm),
            lambda: HypotheticalDocumentEmbedder.from_llm(FAKE, llm),
            lambda: SelfQueryRetriever.from_llm(vs, llm, "notes"),
            lambda: MultiQueryRetriever.from_llm(llm, over(vs)),
            lambda: DecompositionRetriever.from_llm(llm, over(vs)),
            lambda: RePhraseQueryRetriever.from_llm(llm, over(vs)),
        ]
        for call in swapped:
            with pytest.raises(ConfigError, match=r"from_llm\((llm|retriever), "):
                call()

    def test_wrong_parts_of_the_constructor_are_refused(self, vs: Cormorant) -> None:
        chain = RunnableLambda(lambda _: "net")
        wrong: list[tuple[Any, dict[str, Any], str]] = [
            (HyDERetriever, {"vectorstore": chain, "llm_chain": chain}, "vectorstore must be"),
            (HyDERetriever, {"vectorstore": vs, "llm_chain": vs}, "llm_chain must be a Runnable"),
            (HyDERetriever, {"vectorstore": vs}, "llm_chain must be a Runnable"),
            (HyDERetriever, {"llm_chain": chain}, "vectorstore must be"),
            (HyDERetriever, {"vectorstore": vs, "llm_chain": chain, "on_llm_error": "x"}, "raise"),
            (SelfQueryRetriever, {"vectorstore": "kb", "llm_chain": chain}, "vectorstore must be"),
            (SelfQueryRetriever, {"vectorstore": vs}, "query_constructor must be a Runnable"),
            (MultiQueryRetriever, {"retriever": says("a"), "llm_chain": chain}, "language model"),
            (RePhraseQueryRetriever, {"retriever": over(vs), "llm_chain": "x"}, "a Runnable"),
            (LLMChainFilter, {"llm_chain": "x"}, "llm_chain must be a Runnable"),
            (LLMListwiseRerank, {"reranker": None}, "reranker must be a Runnable"),
        ]
        for kind, values, says_what in wrong:
            with pytest.raises(ConfigError, match=says_what):
                kind(**values)

    def test_a_vector_store_for_a_retriever_is_told_how(self, vs: Cormorant) -> None:
        with pytest.raises(ValueError, match=r"got a Cormorant\. Give its as_retriever\(\)"):
            MultiQueryRetriever.from_llm(vs, says("net"))


class TestPrompts:
    @pytest.mark.parametrize(
        "call",
        [
            lambda prompt: MultiQueryRetriever.from_llm(ByQuestion(), says("a"), prompt),
            lambda prompt: DecompositionRetriever.from_llm(ByQuestion(), says("a"), prompt),
            lambda prompt: RePhraseQueryRetriever.from_llm(ByQuestion(), says("a"), prompt),
            lambda prompt: RePhraseQueryRetriever.from_llm(
                ByQuestion(), says("a"), history_prompt=prompt
            ),
            lambda prompt: HypotheticalDocumentEmbedder.from_llm(
                says("a"), FAKE, custom_prompt=prompt
            ),
            *(
                lambda prompt, kind=kind: kind.from_llm(says("a"), prompt=prompt)
                for kind in COMPRESSORS
            ),
        ],
    )
    @pytest.mark.parametrize(
        ("prompt", "says_what"),
        [
            ("Rephrase {question}", "takes a prompt template"),
            (PromptTemplate.from_template("{question} {tone} {colour}"), "prompt"),
            (ChatPromptTemplate.from_template("{a} of {b}"), "prompt"),
        ],
    )
    def test_one_that_nobody_fills_is_refused_before_the_first_question(
        self, call: Any, prompt: Any, says_what: str
    ) -> None:
        with pytest.raises(ConfigError, match=says_what):
            call(prompt)

    def test_one_whose_other_variables_are_filled_is_taken(self) -> None:
        prompt = PromptTemplate.from_template("{tone}: {question}").partial(tone="plainly")
        child = ByQuestion()
        MultiQueryRetriever.from_llm(child, says("b"), prompt).invoke("a")
        assert sorted(child.asked) == ["a", "b"]

    def test_an_input_of_ones_own_fills_other_variables(self) -> None:
        prompt = PromptTemplate.from_template("{q}|{t}")
        for kind, reply in COMPRESSORS.items():
            if kind is LLMListwiseRerank:
                continue
            compressor = kind.from_llm(
                says(reply), prompt, lambda query, doc: {"q": query, "t": doc.page_content}
            )
            assert len(compressor.invoke(ask())) == 3


@pytest.mark.parametrize("kind", [LLMChainFilter, LLMPointwiseRerank, LLMChainExtractor])
def test_what_a_model_thinks_aloud_is_no_verdict(kind: Any) -> None:
    thought = {"YES": "NO", "7": "1", "text": "NO_OUTPUT"}[COMPRESSORS[kind]]
    reply = f"<think>{thought} perhaps, or {thought}</think>{COMPRESSORS[kind]}"
    compressor = kind.from_llm(says(reply))
    assert ids(compressor.invoke(ask())) == ["d0", "d1", "d2"]


def test_another_embedder_than_the_stores_is_refused_before_the_model_is_asked() -> None:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from cormorant.errors import EmbeddingMismatch

    class Other(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(text[::-1] + "!")

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    with Cormorant.from_texts(["fish"], FAKE) as vs:
        other = Cormorant(Other(size=8), store=vs.store)
        with pytest.raises(EmbeddingMismatch):
            other.verify_embedder()
        with pytest.raises(EmbeddingMismatch):
            HyDERetriever.from_llm(Away(), other, on_llm_error="raise").invoke("fish")
        vs.verify_embedder()


async def test_async_refuses_it_too() -> None:
    from langchain_core.embeddings import FakeEmbeddings

    from cormorant.errors import EmbeddingMismatch

    with Cormorant.from_texts(["fish"], FAKE) as vs:
        await vs.averify_embedder()
        other = Cormorant(FakeEmbeddings(size=8), store=vs.store)
        with pytest.raises(EmbeddingMismatch):
            await other.averify_embedder()
        with pytest.raises(EmbeddingMismatch):
            await HyDERetriever.from_llm(Away(), other, on_llm_error="raise").ainvoke("fish")
