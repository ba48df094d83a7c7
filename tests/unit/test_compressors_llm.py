"""Do the compressors that ask a language model about each document read its replies rightly?"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Runs, found, ids

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers.document_compressors import (
    LLMChainExtractor,
    LLMChainFilter,
    RerankError,
)
from cormorant.langchain.retrievers.document_compressors.chain_extract import NoOutputParser
from cormorant.langchain.retrievers.document_compressors.chain_filter import BooleanOutputParser


def ask(*texts):
    return {"query": "which?", "documents": found(*(texts or ("one", "two", "three")))}


def chat(*replies):
    return FakeListChatModel(responses=list(replies))


class TestExtractor:
    def test_the_id_and_the_scores_stay_with_the_shortened_text(self):
        out = LLMChainExtractor.from_llm(chat("ne", "NO_OUTPUT", " three ")).invoke(ask())
        assert [(doc.id, doc.page_content) for doc in out] == [("d0", "ne"), ("d2", "three")]
        assert out[0].metadata == {"page": 0, "tags": ["x"]}
        assert of(out[0]).score == 1.0
        step = of(out[0]).journey[-1]
        assert step.says == "LLMChainExtractor: 2 characters, of 3 before."

    @pytest.mark.parametrize(
        "reply", ["NO_OUTPUT", " NO_OUTPUT.\n", '"NO_OUTPUT"', "**NO_OUTPUT**", "", "  \n"]
    )
    def test_a_document_with_nothing_is_dropped_however_the_model_says_so(self, reply):
        assert LLMChainExtractor.from_llm(chat(reply)).invoke(ask("one")) == []

    def test_a_text_that_mentions_the_word_is_kept(self):
        reply = "The flag NO_OUTPUT is documented here."
        assert LLMChainExtractor.from_llm(chat(reply)).invoke(ask("one"))

    def test_sync_asks_about_all_documents_at_once(self):
        import threading

        barrier = threading.Barrier(3, timeout=10)

        def slow(given):
            barrier.wait()
            return given["context"]

        out = LLMChainExtractor(llm_chain=RunnableLambda(slow)).invoke(ask())
        assert [doc.page_content for doc in out] == ["one", "two", "three"]

    async def test_async_asks_about_all_documents_at_once(self):
        together = asyncio.Barrier(3)

        async def slow(given):
            await asyncio.wait_for(together.wait(), timeout=10)
            return given["context"]

        out = await LLMChainExtractor(llm_chain=RunnableLambda(slow)).ainvoke(ask())
        assert [doc.page_content for doc in out] == ["one", "two", "three"]

    @pytest.mark.parametrize("output", [None, 3, ["one"], {"other": "x"}])
    def test_a_chain_that_gives_no_text_is_an_error(self, output):
        with pytest.raises(RerankError, match="needs text from its chain"):
            LLMChainExtractor(llm_chain=RunnableLambda(lambda _: output)).invoke(ask())

    def test_chains_of_ones_own_may_give_messages_or_what_an_llm_chain_gave(self):
        for output in (AIMessage(content="part"), {"question": "?", "text": "part"}, "part"):
            chain = RunnableLambda(lambda _, output=output: output)
            out = LLMChainExtractor(llm_chain=chain).invoke(ask("one"))
            assert out[0].page_content == "part"

    def test_prompt_parser_and_input_can_be_ones_own(self):
        seen = []
        prompt = PromptTemplate(
            template="{q}|{t}", input_variables=["q", "t"], output_parser=StrOutputParser()
        )
        model = RunnableLambda(lambda value: seen.append(value.to_string()) or "NO_OUTPUT")
        extractor = LLMChainExtractor.from_llm(
            model, prompt=prompt, get_input=lambda query, doc: {"q": query, "t": doc.id}
        )
        assert extractor.invoke(ask("one"))[0].page_content == "NO_OUTPUT"
        assert seen == ["which?|d0"]

    def test_a_completion_model_does_as_well(self):
        out = LLMChainExtractor.from_llm(FakeListLLM(responses=["part"])).invoke(ask("one"))
        assert out[0].page_content == "part"

    def test_another_word_for_nothing(self):
        parser = NoOutputParser(no_output_str="无")
        assert parser.parse("无。") == ""
        assert parser.parse(" 无线电 ") == "无线电"


class TestFilter:
    def test_relevant_documents_stay_as_they_are(self):
        documents = ask()
        out = LLMChainFilter.from_llm(chat("YES", "NO", "yes.")).invoke(documents)
        assert out == [documents["documents"][0], documents["documents"][2]]
        assert of(out[1]).journey[-1].says == "LLMChainFilter: relevant."

    @pytest.mark.parametrize("reply", ["", "maybe", "YES and NO", "not sure", "知道"])
    async def test_a_reply_that_is_no_verdict_is_an_error_and_drops_nothing(self, reply):
        model = chat("YES", reply, "YES")
        with pytest.raises(RerankError, match="must say YES or NO"):
            LLMChainFilter.from_llm(model).invoke(ask())
        with pytest.raises(RerankError, match="must say YES or NO"):
            await LLMChainFilter.from_llm(chat("YES", reply, "YES")).ainvoke(ask())

    def test_a_chain_that_gives_none_is_an_error_and_drops_nothing(self):
        with pytest.raises(RerankError, match="got None"):
            LLMChainFilter(llm_chain=RunnableLambda(lambda _: None)).invoke(ask())

    def test_a_prompt_without_a_parser_does_not_drop_everything(self):
        prompt = PromptTemplate.from_template("{question} {context}")
        out = LLMChainFilter.from_llm(chat("YES", "NO", "YES"), prompt=prompt).invoke(ask())
        assert ids(out) == ["d0", "d2"]
        chain = prompt | chat("YES", "NO", "YES") | StrOutputParser()
        assert ids(LLMChainFilter(llm_chain=chain).invoke(ask())) == ["d0", "d2"]

    @pytest.mark.parametrize(
        ("reply", "verdict"),
        [
            ("YES", True),
            ("Yes, it is.", True),
            ("NO", False),
            ("> No!", False),
            ("nothing to know: YES", True),
            ("是", True),
            ("不是。", False),
            ("否", False),
        ],
    )
    def test_verdicts_are_words_of_their_own_in_any_case(self, reply, verdict):
        assert BooleanOutputParser().parse(reply) is verdict

    def test_other_words_for_yes_and_no(self):
        parser = BooleanOutputParser(true_val="RELEVANT", false_val="NOT RELEVANT")
        assert parser.parse("Relevant.") is True
        assert parser.parse("It is not relevant.") is False
        with pytest.raises(RerankError, match="must say RELEVANT or NOT RELEVANT"):
            parser.parse("YES")

    def test_a_wrong_verdict_shows_in_the_runs(self):
        runs = Runs()
        with pytest.raises(RerankError):
            LLMChainFilter.from_llm(chat("maybe")).invoke(ask("one"), {"callbacks": [runs]})
        assert "BooleanOutputParser" in runs.errors
        assert runs.errors[-1] == "LLMChainFilter"

    def test_a_short_list_of_answers_is_an_error(self):
        class Short(RunnableLambda):
            def batch(self, inputs, config=None, **kwargs):
                return super().batch(inputs[:-1], config, **kwargs)

        with pytest.raises(RerankError, match="2 answers for 3 documents"):
            LLMChainFilter(llm_chain=Short(lambda _: True)).invoke(ask())


@pytest.mark.parametrize("kind", [LLMChainExtractor, LLMChainFilter])
class TestBoth:
    def test_config_reaches_the_model(self, kind):
        seen = []

        def tell(given, config):
            seen.append((config["tags"], config["metadata"]["user"], config["configurable"]["x"]))
            return "YES"

        kind(llm_chain=RunnableLambda(tell)).invoke(
            ask("one"), {"tags": ["t"], "metadata": {"user": "u"}, "configurable": {"x": 1}}
        )
        assert seen == [(["t"], "u", 1)]

    def test_what_is_no_chain_is_refused(self, kind):
        with pytest.raises(UsageError, match="llm_chain must be a Runnable"):
            kind(llm_chain="model")

    def test_hosts_that_call_without_callbacks_still_work(self, kind):
        documents = [Document(page_content="one")]
        assert kind.from_llm(chat("YES")).compress_documents(documents, "which?")


class TestMany:
    """More documents than are begun at once."""

    async def test_replies_come_in_the_documents_order(self):
        async def later(given):
            await asyncio.sleep(0.001 * (int(given["context"][1:]) % 3))
            return f"reply to {given['context']}"

        made = LLMChainExtractor(llm_chain=RunnableLambda(later))
        documents = found(*(f"d{number}" for number in range(100)))
        kept = await made.ainvoke({"query": "q", "documents": documents})
        assert [each.page_content for each in kept] == [f"reply to d{n}" for n in range(100)]

    @pytest.mark.parametrize("most", [1, 3, 80])
    async def test_no_more_at_once_than_the_config_says(self, most):
        now, seen = 0, []

        async def counted(given):
            nonlocal now
            now += 1
            seen.append(now)
            for _ in range(100):  # rounds of the loop, in which the others begin
                await asyncio.sleep(0)
            now -= 1
            return "a reply"

        made = LLMChainExtractor(llm_chain=RunnableLambda(counted))
        documents = found(*(f"d{number}" for number in range(100)))
        await made.ainvoke({"query": "q", "documents": documents}, {"max_concurrency": most})
        assert len(seen) == 100
        assert max(seen) == most

    async def test_where_it_says_nothing_no_more_than_the_loop_bears(self):
        now, seen = 0, []
        everyone = asyncio.Barrier(defaults.CALLS_AT_ONCE)

        async def met(given):
            nonlocal now
            now += 1
            seen.append(now)
            await asyncio.wait_for(everyone.wait(), timeout=10)
            now -= 1
            return "a reply"

        made = LLMChainExtractor(llm_chain=RunnableLambda(met))
        documents = found(*(f"d{number}" for number in range(2 * defaults.CALLS_AT_ONCE)))
        kept = await made.ainvoke({"query": "q", "documents": documents})
        assert len(kept) == len(seen) == 2 * defaults.CALLS_AT_ONCE
        assert max(seen) == defaults.CALLS_AT_ONCE

    async def test_where_one_fails_the_others_are_cancelled(self):
        begun, ended = [], []

        async def failing(given):
            begun.append(given["context"])
            if given["context"] == "d40":
                raise RuntimeError("the model is away")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append(given["context"])
                raise

        made = LLMChainExtractor(llm_chain=RunnableLambda(failing))
        documents = found(*(f"d{number}" for number in range(100)))
        with pytest.raises(RuntimeError, match="the model is away"):
            await made.ainvoke({"query": "q", "documents": documents})
        assert {f"d{number}" for number in range(40)} <= set(ended)
        assert set(begun) - set(ended) == {"d40"}
        assert len(begun) <= defaults.CALLS_AT_ONCE
