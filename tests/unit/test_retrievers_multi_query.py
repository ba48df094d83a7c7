"""Is a question put in several ways, and is nothing else searched for?"""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import Away, ByQuestion, says
from retrieverlab import Failing, Fixed, Slow, Told, doc, texts

from cormorant import defaults
from cormorant.errors import QueryError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import MultiQueryRetriever
from cormorant.langchain.retrievers.asking.rewriting import questions, refused
from cormorant.langchain.retrievers.multi_query import LineListOutputParser, _unique_documents


def multi(answers: dict[str, list[Any]], reply: str, **settings: Any) -> MultiQueryRetriever:
    return MultiQueryRetriever.from_llm(ByQuestion(answers=answers), says(reply), **settings)


class TestWhatTheModelWrote:
    @pytest.mark.parametrize(
        "reply",
        [
            "what eats fish?\nwho dives?",
            "1. what eats fish?\n2. who dives?",
            "1) what eats fish?\n2) who dives?\n",
            "Sure! Here are two versions:\n\n1. what eats fish?\n2. who dives?\n\nI hope it helps!",
            "Here are 2 alternative questions\nwhat eats fish?\nwho dives?",
            "- what eats fish?\n- who dives?",
            "**Version 1:** what eats fish?\n**Version 2:** who dives?",
            "Question 1: what eats fish?\nQuestion 2: who dives?",
            "# Alternatives\n* what eats fish?\n* who dives?\nLet me know if you need more.",
            '"what eats fish?"\n"who dives?"',
            '```json\n["what eats fish?", "who dives?"]\n```',
            '{"questions": ["what eats fish?", "who dives?"]}',
            "<think>1. They want birds.\n2. Two of them.</think>\nwhat eats fish?\nwho dives?",
            "what eats fish?\n\n   \nwho dives?\nWhat eats fish",
            "Certainly, here they are.\n（1）what eats fish?\n（2）who dives?",
        ],
    )
    def test_chatter_and_numbering_are_no_questions(self, reply: str) -> None:
        assert LineListOutputParser().parse(reply) == ["what eats fish?", "who dives?"]

    def test_chinese_too(self) -> None:
        reply = "好的，以下是三个问题：\n1、谁吃鱼？\n2、谁潜水？\n希望这些对您有帮助！"
        assert LineListOutputParser().parse(reply) == ["谁吃鱼？", "谁潜水？"]

    @pytest.mark.parametrize(
        "question",
        [
            "3.5 mm jack",
            "2024 budget",
            "Q3 revenue of acme",
            "-40 degrees",
            "sure ways to lose weight",
            "C# or F#",
            'the "best" of "all"',
            "here are lions",
        ],
    )
    def test_what_looks_like_a_number_stays(self, question: str) -> None:
        assert LineListOutputParser().parse(f"{question}\nanother one") == [question, "another one"]

    @pytest.mark.parametrize(
        "output",
        [
            ["what eats fish?", "who dives?"],
            {"text": ["what eats fish?", "who dives?"]},
            {"queries": ["what eats fish?", "who dives?", "  "]},
            [{"question": "what eats fish?"}, {"question": "who dives?"}],
        ],
    )
    def test_a_dict_or_a_list_is_understood(self, output: Any) -> None:
        assert questions(output, "who") == ["what eats fish?", "who dives?"]

    @pytest.mark.parametrize(
        "text",
        [
            "I'm sorry, but I can't help with that.",
            "I am unable to provide that.",
            "Sorry, no.",
            "I’m sorry, I cannot do this",
            "As an AI language model, I do not know.",
            "I cannot answer this.",
            "很抱歉，我无法回答这个问题。",
            "作为一个人工智能，我不能回答。",
        ],
    )
    def test_a_refusal_is_no_question(self, text: str) -> None:
        assert refused(text)
        assert LineListOutputParser().parse(text) == []

    def test_a_question_about_apologies_is_one(self) -> None:
        assert not refused("Who is sorry now?")
        assert not refused("I can't log in to my account")
        assert not refused("我无法登录账户怎么办")
        assert not refused("as an engineer, which tool should I use?")

    def test_equal_documents_are_kept_once(self) -> None:
        same = doc("a", n={1, 2})
        assert _unique_documents([same, doc("a", n={1, 2}), doc("a", "1", n={1, 2})]) == [
            same,
            doc("a", "1", n={1, 2}),
        ]

    def test_many_documents_are_told_apart_in_linear_time(self) -> None:
        many = [doc(f"text {number % 10_000}") for number in range(20_000)]
        assert len(_unique_documents(many)) == 10_000
        same_text = [doc("text", str(number)) for number in range(10_000)]
        assert len(_unique_documents(same_text)) == 10_000

    def test_an_empty_line_is_never_asked(self) -> None:
        for reply in ("\n\nb\n\n", "1.\n2. b\n3.", '["", "b", "  "]', "-\n- b", "?\nb\n..."):
            retriever = multi({}, reply)
            retriever.invoke("a")
            assert sorted(retriever.retriever.asked) == ["a", "b"]


class TestSearch:
    def test_the_original_is_asked_too(self) -> None:
        retriever = multi({}, "1. b\n2. c")
        retriever.invoke("a")
        assert sorted(retriever.retriever.asked) == ["a", "b", "c"]
        alone = multi({}, "1. b\n2. c", include_original=False)
        alone.invoke("a")
        assert sorted(alone.retriever.asked) == ["b", "c"]

    def test_the_original_is_asked_once_though_the_model_repeats_it(self) -> None:
        retriever = multi({}, "What eats fish\n谁吃鱼")
        retriever.invoke("what eats fish?")
        assert sorted(retriever.retriever.asked) == ["what eats fish?", "谁吃鱼"]

    def test_lists_are_fused_not_concatenated(self) -> None:
        answers = {
            "a": [doc("one", "1"), doc("both", "2")],
            "b": [doc("both", "2"), doc("three", "3")],
        }
        hits = multi(answers, "b").retrieve("a").hits
        assert [hit.text for hit in hits] == ["both", "one", "three"]
        assert hits[0].score == pytest.approx(0.5 / 61 + 0.5 / 62)
        assert {name: leg.rank for name, leg in hits[0].legs.items()} == {
            "original": 2,
            "variant 1": 1,
        }

    def test_documents_with_equal_text_and_different_ids_are_both_returned(self) -> None:
        found = multi({"a": [doc("same", "1")], "b": [doc("same", "2")]}, "b").invoke("a")
        assert [each.id for each in found] == ["1", "2"]

    def test_a_document_found_by_several_comes_once(self) -> None:
        found = multi({"a": [doc("same", "1")], "b": [doc("same", "1")]}, "b").invoke("a")
        assert texts(found) == ["same"]

    def test_no_more_variants_are_asked_than_wanted(self) -> None:
        retriever = multi({}, "b\nc\nd\ne\nf")
        retriever.invoke("a")
        assert sorted(retriever.retriever.asked) == ["a", "b", "c", "d"]
        few = multi({}, "b\nc\nd", variants=1)
        few.invoke("a")
        assert sorted(few.retriever.asked) == ["a", "b"]

    def test_the_prompt_says_how_many(self) -> None:
        heard = []
        model = RunnableLambda(lambda prompt: heard.append(prompt.to_string()) or "b")
        MultiQueryRetriever.from_llm(ByQuestion(), model, variants=5).invoke("why?")
        assert "in 5 other ways" in heard[0]
        assert "why?" in heard[0]

    def test_what_was_asked_is_told(self) -> None:
        plan = multi({}, "b").retrieve("a").plan
        assert plan[:2] == ("original: a", "variant 1: b")

    def test_k_cuts_the_fused_list_and_reaches_the_retriever(self) -> None:
        child = Told(docs=[doc("1"), doc("2"), doc("3")])
        retriever = MultiQueryRetriever.from_llm(child, says("b"), k=2)
        assert len(retriever.invoke("a")) == 2
        assert len(retriever.invoke("a", k=1)) == 1
        assert [heard.get("k") for heard in child.heard] == [None, None, 1, 1]

    def test_a_filter_of_the_call_reaches_every_question(self) -> None:
        with Cormorant.from_texts(
            ["fish", "net", "fish net"], None, [{"n": i} for i in range(3)]
        ) as vs:
            retriever = MultiQueryRetriever.from_llm(
                vs.as_retriever(search_type="text"), says("net")
            )
            found = retriever.invoke("fish", filter={"n": {"$gte": 1}})
            assert sorted(each.metadata["n"] for each in found) == [1, 2]
            assert len(retriever.invoke("fish", k=1)) == 1

    def test_an_argument_the_retriever_would_drop_is_refused(self) -> None:
        retriever = MultiQueryRetriever.from_llm(Fixed(docs=[doc("a")]), says("b"))
        with pytest.raises(UsageError, match="filter"):
            retriever.invoke("a", filter={"x": 1})

    def test_a_scope_of_the_request_holds_for_every_question(self) -> None:
        with Cormorant.from_texts(
            ["fish", "net"], None, [{"tenant": "acme"}, {"tenant": "other"}]
        ) as vs:
            retriever = MultiQueryRetriever.from_llm(
                vs.as_retriever(search_type="text"), says("net")
            )
            scope = {"configurable": {"scope": {"tenant": "acme"}}}
            assert texts(retriever.invoke("fish", scope)) == ["fish"]


class TestWhenTheModelFails:
    def test_the_original_is_asked_and_the_answer_says_so(self) -> None:
        child = ByQuestion(answers={"a": [doc("found")]})
        result = MultiQueryRetriever.from_llm(child, Away()).retrieve("a")
        assert [hit.text for hit in result] == ["found"]
        (sentence,) = result.degraded
        assert "the question alone was asked: ConnectionError: the model is away" in sentence

    async def test_also_async(self) -> None:
        child = ByQuestion(answers={"a": [doc("found")]})
        result = await MultiQueryRetriever.from_llm(child, Away()).aretrieve("a")
        assert [hit.text for hit in result] == ["found"]
        assert "ConnectionError" in result.degraded[0]

    @pytest.mark.parametrize("reply", ["", "\n\n", "I'm sorry, I can't.", "Here are 3 versions:"])
    @pytest.mark.parametrize("include_original", [True, False])
    def test_no_questions_or_a_refusal_too(self, reply: str, include_original: bool) -> None:
        retriever = multi({"a": [doc("found")]}, reply, include_original=include_original)
        result = retriever.retrieve("a")
        assert retriever.retriever.asked == ["a"]
        assert [hit.text for hit in result] == ["found"]
        assert "made no variant" in result.degraded[0]

    def test_the_error_can_be_raised(self) -> None:
        retriever = MultiQueryRetriever.from_llm(Fixed(docs=[]), Away(), on_llm_error="raise")
        with pytest.raises(ConnectionError):
            retriever.invoke("a")

    def test_it_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            MultiQueryRetriever.from_llm(Fixed(docs=[]), Away()).invoke("a")
        assert "the model is away" in caplog.text

    def test_a_failing_search_is_raised_or_left_out(self) -> None:
        with pytest.raises(RuntimeError, match="index is away"):
            MultiQueryRetriever.from_llm(Failing(), says("b")).invoke("a")

        def sometimes(query: str) -> list[Any]:
            if query == "b":
                raise RuntimeError("no b")
            return [doc("found")]

        retriever = MultiQueryRetriever.from_llm(
            RunnableLambda(sometimes), says("b"), on_error="degrade"
        )
        result = retriever.retrieve("a")
        assert [hit.text for hit in result] == ["found"]
        assert "variant 1 failed" in result.degraded[0]


class TestRuns:
    def test_questions_are_asked_at_once(self) -> None:
        retriever = MultiQueryRetriever.from_llm(
            Slow(docs=[doc("x")], barrier=threading.Barrier(3)), says("b\nc")
        )
        assert texts(retriever.invoke("a")) == ["x"]

    async def test_async_asks_the_same(self) -> None:
        answers = {"a": [doc("one")], "b": [doc("two")]}
        retriever = multi(answers, "b")
        assert texts(await retriever.ainvoke("a")) == texts(retriever.invoke("a")) == ["one", "two"]

    def test_model_and_searches_are_child_runs(self) -> None:
        runs: dict[Any, tuple[str, Any]] = {}

        class Watch(BaseCallbackHandler):
            def on_retriever_start(self, serialized: Any, query: str, **kw: Any) -> None:
                runs[kw["run_id"]] = (query, kw["parent_run_id"])

            def on_chat_model_start(self, serialized: Any, messages: Any, **kw: Any) -> None:
                runs[kw["run_id"]] = ("model", kw["parent_run_id"])

            def on_chain_start(self, serialized: Any, inputs: Any, **kw: Any) -> None:
                runs[kw["run_id"]] = ("chain", kw["parent_run_id"])

        multi({}, "b").invoke("a", {"callbacks": [Watch()]})

        def top(run_id: Any) -> Any:
            return run_id if runs[run_id][1] is None else top(runs[run_id][1])

        (root,) = {top(run_id) for run_id in runs}
        assert runs[root][0] == "a"
        children = [name for name, parent in runs.values() if parent == root]
        assert sorted(children) == ["a", "b", "chain"]
        assert "model" in {name for name, _ in runs.values()}

    async def test_events_show_each_stage(self) -> None:
        kinds = {event["event"] async for event in multi({}, "b").astream_events("a", version="v2")}
        assert {"on_retriever_start", "on_chat_model_start", "on_retriever_end"} <= kinds

    def test_generate_queries_is_classics(self) -> None:
        assert multi({}, "1. b\n2. c").generate_queries("a") == ["b", "c"]

    async def test_agenerate_queries_too(self) -> None:
        assert await multi({}, "1. b\n2. c").agenerate_queries("a") == ["b", "c"]


class TestArguments:
    def test_unknown_ones_are_refused(self) -> None:
        with pytest.raises(UsageError, match="include_orginal"):
            MultiQueryRetriever(retriever=Fixed(docs=[]), llm_chain=says("b"), include_orginal=True)

    @pytest.mark.parametrize("settings", [{"k": 0}, {"variants": 0}, {"rrf_k": -1}])
    def test_values_outside_their_range_are_refused(self, settings: dict[str, Any]) -> None:
        with pytest.raises(QueryError):
            multi({}, "b", **settings)

    def test_what_is_no_retriever_is_refused(self) -> None:
        with pytest.raises(UsageError, match="retriever must be"):
            MultiQueryRetriever.from_llm("bm25", says("b"))


def test_a_reply_without_end_does_not_become_searches_without_end():
    """Nobody said how many: a custom prompt does not tell, and the model may be led astray."""
    asked: list[str] = []

    def search(query: str) -> list[Document]:
        asked.append(query)
        return [Document("a fish", id="a")]

    reply = "\n".join(f"what do fish number {number} eat?" for number in range(3000))
    model = FakeListChatModel(responses=[reply])
    prompt = PromptTemplate.from_template("{question}")
    made = MultiQueryRetriever.from_llm(RunnableLambda(search), model, prompt=prompt)
    result = made.retrieve("fish")
    assert len(asked) == defaults.MAX_QUESTIONS + 1
    assert any("3,000 variants; the first 50 were asked" in each for each in result.degraded)
    asked.clear()
    MultiQueryRetriever.from_llm(
        RunnableLambda(search), model, prompt=prompt, variants=60
    ).retrieve("fish")
    assert len(asked) == 61
