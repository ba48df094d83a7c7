"""Do rerankers put documents in the order of their scores, and refuse scores that give none?"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Lengths, Runs, Scores, ToolModel, found, ids

from cormorant.errors import MissingDependency, QueryError, UsageError
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers.document_compressors import (
    CrossEncoderReranker,
    HostedReranker,
    LLMListwiseRerank,
    LLMPointwiseRerank,
    RerankError,
)
from cormorant.langchain.retrievers.document_compressors.cross_encoder import as_relevance
from cormorant.langchain.retrievers.document_compressors.pointwise_rerank import ScoreOutputParser


def ask(*texts):
    return {"query": "which?", "documents": found(*(texts or ("one", "two", "three", "four")))}


def chat(*replies):
    return FakeListChatModel(responses=list(replies))


class TestCrossEncoder:
    def test_the_score_is_kept_with_the_ranks_before_and_after(self):
        out = CrossEncoderReranker(model=Scores(0.1, -3.5, 7.25, 0.2)).invoke(ask())
        assert ids(out) == ["d2", "d3", "d0"]
        known = of(out[0])
        assert known.score == known.rerank_score == 7.25
        assert known.method == "rerank"
        assert known.fusion_score == 1 / 3
        step = known.journey[-1]
        assert (step.stage, step.value) == ("rerank", 7.25)
        assert step.detail == {"by": "CrossEncoderReranker", "before": 3, "after": 1, "of": 4}
        assert step.says == "CrossEncoderReranker: score 7.2500, rank 3 → 1 of 4."

    def test_it_is_asked_about_the_question_and_each_text(self):
        model = Scores(1, 2)
        CrossEncoderReranker(model=model).invoke(ask("one", "two"))
        assert model.pairs == [("which?", "one"), ("which?", "two")]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, "x", 10**400])
    async def test_a_score_that_is_no_number_is_an_error_not_an_order(self, bad):
        reranker = CrossEncoderReranker(model=Scores(0.5, bad, 0.7, 0.1))
        with pytest.raises(RerankError, match="document 1"):
            reranker.invoke(ask())
        with pytest.raises(RerankError, match="document 1"):
            await reranker.ainvoke(ask())

    @pytest.mark.parametrize("scores", [[], [1.0, 2.0, 3.0], [1.0] * 5])
    def test_a_list_of_another_length_is_an_error_and_drops_no_document(self, scores):
        with pytest.raises(RerankError, match=f"{len(scores)} scores for 4 documents"):
            CrossEncoderReranker(model=Scores(*scores)).invoke(ask())

    @pytest.mark.parametrize("returned", [None, 3.0, "1234", {"a": 1}])
    def test_what_is_no_list_is_an_error(self, returned):
        model = Scores()
        model.scores = returned
        with pytest.raises(RerankError, match="must return a list of numbers"):
            CrossEncoderReranker(model=model).invoke(ask())

    def test_arrays_are_lists_too(self):
        model = Scores()
        model.scores = np.array([0.0, 3.0, 2.0, 1.0], dtype=np.float32)
        out = CrossEncoderReranker(model=model).invoke(ask())
        assert ids(out) == ["d1", "d2", "d3"]
        assert type(of(out[0]).score) is float

    def test_equal_scores_leave_the_earlier_order(self):
        out = CrossEncoderReranker(model=Scores(1, 2, 2, 1), top_n=None).invoke(ask())
        assert ids(out) == ["d1", "d2", "d0", "d3"]

    def test_top_n_of_the_call_comes_first_and_none_means_all(self):
        reranker = CrossEncoderReranker(model=Scores(4, 3, 2, 1))
        assert len(reranker.invoke(ask())) == 3
        assert len(reranker.invoke(ask(), top_n=1)) == 1
        assert len(reranker.invoke(ask(), top_n=None)) == 3
        assert len(CrossEncoderReranker(model=Scores(4, 3, 2, 1), top_n=9).invoke(ask())) == 4

    @pytest.mark.parametrize("top_n", [0, -1, 2.0, True, "3"])
    def test_a_top_n_that_is_no_number_of_documents_is_refused(self, top_n):
        with pytest.raises(QueryError, match="top_n must be"):
            CrossEncoderReranker(model=Lengths(), top_n=top_n)
        with pytest.raises(QueryError, match="top_n must be"):
            CrossEncoderReranker(model=Lengths()).invoke(ask(), top_n=top_n)

    def test_min_rerank_score_keeps_what_reaches_it(self, caplog):
        reranker = CrossEncoderReranker(model=Scores(1, 5, 4.99, 7), min_rerank_score=5)
        assert ids(reranker.invoke(ask())) == ["d3", "d1"]
        with caplog.at_level(logging.WARNING):
            strict = CrossEncoderReranker(model=Scores(1, 2, 3, 4), min_rerank_score=5)
            assert strict.invoke(ask()) == []
        assert "left no document: the best of 4 scored 4.0000" in caplog.text
        for bad in (math.nan, "5", True):
            with pytest.raises(QueryError, match="min_rerank_score"):
                CrossEncoderReranker(model=Lengths(), min_rerank_score=bad)

    def test_relevance_is_told_where_the_scale_is_known_and_kept_where_not(self):
        def relevances(scale):
            model = Scores(0, 40, -40, 1, scale=scale)
            out = CrossEncoderReranker(model=model, top_n=None).invoke(ask())
            return [round(of(document).relevance, 3) for document in out]

        assert relevances("logit") == [1.0, 0.731, 0.5, 0.0]
        assert relevances(None) == [0.8, 0.6, 0.9, 0.7]  # as the search had them
        assert as_relevance(0.25, "probability") == 0.25
        assert as_relevance(1e9, "logit") == 1.0

    async def test_async_scores_in_another_thread(self):
        model = Scores(1, 2, 3, 4)
        await CrossEncoderReranker(model=model).ainvoke(ask())
        assert model.threads != [threading.get_ident()]

    def test_a_failing_model_ends_the_run_with_its_error(self):
        class Broken(Lengths):
            def score(self, text_pairs):
                raise RuntimeError("out of memory")

        runs = Runs()
        with pytest.raises(RuntimeError, match="out of memory"):
            CrossEncoderReranker(model=Broken()).invoke(ask(), {"callbacks": [runs]})
        assert runs.errors == ["CrossEncoderReranker"]

    def test_fallbacks_work_as_with_any_runnable(self):
        bad = CrossEncoderReranker(model=Scores(math.nan, 1, 2, 3))
        out = bad.with_fallbacks([CrossEncoderReranker(model=Lengths(), top_n=1)]).invoke(ask())
        assert ids(out) == ["d2"]

    def test_a_name_is_given_as_model_name(self):
        with pytest.raises(UsageError, match="given as model_name"):
            CrossEncoderReranker(model="cross-encoder/ms-marco-MiniLM-L-6-v2")
        with pytest.raises(UsageError, match="got both"):
            CrossEncoderReranker(model=Lengths(), model_name="x")

    def test_without_the_extra_the_error_has_the_pip_line(self, monkeypatch):
        from cormorant.langchain.retrievers.document_compressors import cross_encoder

        monkeypatch.setattr(cross_encoder, "find_spec", lambda _: None)
        with pytest.raises(MissingDependency, match=r"pip install 'cormorant\[rerank\]'"):
            CrossEncoderReranker()
        with pytest.raises(MissingDependency, match="cross-encoder/ms-marco-MiniLM-L-6-v2"):
            CrossEncoderReranker()


class Hosted:
    """A service that gives what it was made with; remembers its requests."""

    def __init__(self, *results, wrap=True):
        self.results, self.wrap, self.requests = results, wrap, []

    def rerank(self, *, query, documents, top_n, model):
        self.requests.append((query, documents, top_n, model))
        results = list(self.results)
        return SimpleNamespace(results=results) if self.wrap else results


def result(index, score):
    return SimpleNamespace(index=index, relevance_score=score)


class TestHosted:
    def test_the_request_has_the_shape_of_coheres(self):
        client = Hosted(result(2, 0.9), result(0, 0.5), result(1, 0.1))
        out = HostedReranker(client=client, model="rerank-v3.5").invoke(ask())
        texts = ["one", "two", "three", "four"]
        assert client.requests == [("which?", texts, 3, "rerank-v3.5")]
        assert ids(out) == ["d2", "d0", "d1"]
        assert [of(document).rerank_score for document in out] == [0.9, 0.5, 0.1]
        assert [of(document).relevance for document in out] == [0.9, 0.5, 0.1]

    @pytest.mark.parametrize(
        "returned",
        [
            [result(1, 0.9)],
            {"results": [{"index": 1, "relevance_score": 0.9}]},
            SimpleNamespace(results=({"index": 1, "relevance_score": 0.9},)),
        ],
        ids=["objects", "dicts", "mixed"],
    )
    def test_results_may_be_objects_or_dicts(self, returned):
        client = SimpleNamespace(rerank=lambda **_: returned)
        assert ids(HostedReranker(client=client, model="m", top_n=1).invoke(ask())) == ["d1"]

    def test_it_sorts_by_score_itself(self):
        client = Hosted(result(0, 0.1), result(1, 0.9), result(2, 0.5), result(3, 0.6))
        out = HostedReranker(client=client, model="m").invoke(ask())
        assert ids(out) == ["d1", "d3", "d2"]

    @pytest.mark.parametrize(
        ("results", "says"),
        [
            ([result(0, 0.5), result(1, 0.4)], "returned 2 results; 3 were asked for"),
            ([result(0, 0.5), result(4, 0.4), result(1, 0.3)], "gave index 4"),
            ([result(-1, 0.5), result(1, 0.4), result(2, 0.3)], "gave index -1"),
            ([result(True, 0.5), result(0, 0.4), result(2, 0.3)], "gave index True"),
            ([result("0", 0.5), result(1, 0.4), result(2, 0.3)], "gave index '0'"),
            ([result(0, 0.5), result(0, 0.4), result(2, 0.3)], "gave index 0 twice"),
            ([result(0, 0.5), result(1, math.nan), result(2, 0.3)], "document 1 the score nan"),
            ([result(0, 0.5), result(1, None), result(2, 0.3)], "that of document 1 is None"),
        ],
    )
    def test_results_that_are_no_ranking_are_an_error(self, results, says):
        with pytest.raises(RerankError, match=says):
            HostedReranker(client=Hosted(*results), model="m").invoke(ask())

    def test_what_is_no_list_of_results_is_an_error(self):
        client = SimpleNamespace(rerank=lambda **_: "busy")
        with pytest.raises(RerankError, match="must return a list of results"):
            HostedReranker(client=client, model="m").invoke(ask())

    def test_more_documents_than_a_request_takes_go_in_several(self):
        class Lengthy:
            requests = []  # noqa: RUF012 - of one test

            def rerank(self, *, query, documents, top_n, model):
                self.requests.append((len(documents), top_n))
                order = sorted(range(len(documents)), key=lambda i: -len(documents[i]))
                return [result(i, len(documents[i]) / 10) for i in order[:top_n]]

        reranker = HostedReranker(client=Lengthy(), model="m", top_n=2, batch_size=2)
        out = reranker.invoke(ask("a", "aaaa", "aaa", "aaaaa", "aa"))
        assert Lengthy.requests == [(2, 2), (2, 2), (1, 1)]
        assert ids(out) == ["d3", "d1"]

    async def test_an_async_client_is_awaited_and_a_sync_one_leaves_the_loop(self):
        threads = []

        class Async:
            async def rerank(self, *, query, documents, top_n, model):
                await asyncio.sleep(0)
                threads.append(threading.get_ident())
                return [result(i, 1 / (i + 1)) for i in range(top_n)]

        class Sync:
            def rerank(self, *, query, documents, top_n, model):
                threads.append(threading.get_ident())
                return [result(i, 1 / (i + 1)) for i in range(top_n)]

        for client in (Async(), Sync()):
            out = await HostedReranker(client=client, model="m").ainvoke(ask())
            assert ids(out) == ["d0", "d1", "d2"]
        assert threads[0] == threading.get_ident() != threads[1]
        with pytest.raises(UsageError, match="is an async client: use ainvoke"):
            HostedReranker(client=Async(), model="m").invoke(ask())

    @pytest.mark.parametrize("client", [None, "key", SimpleNamespace(rerank=1)])
    def test_what_is_no_client_is_refused(self, client):
        with pytest.raises(UsageError, match="client must have a method rerank"):
            HostedReranker(client=client, model="m")


class TestPointwise:
    def test_documents_come_in_the_order_of_their_grades(self):
        reranker = LLMPointwiseRerank.from_llm(chat("3", "10", "3", "7"), top_n=None)
        out = reranker.invoke(ask())
        assert ids(out) == ["d1", "d3", "d0", "d2"]
        assert [of(document).rerank_score for document in out] == [10, 7, 3, 3]
        assert [round(of(document).relevance, 3) for document in out] == [1.0, 0.667, 0.222, 0.222]

    @pytest.mark.parametrize(
        ("reply", "grade"),
        [
            ("7", 7),
            (" 7.\n", 7),
            ("Score: 7", 7),
            ("7/10", 7),
            ("**7** out of 10", 7),
            ("On a scale of 1 to 10, I would say 8.5.", 8.5),
            ("From 1 to 10: 10", 10),
            ("评分：７", 7),
            ("满分10分，给8分", 8),
            ("10/10", 10),
        ],
    )
    def test_a_grade_is_found_among_chatter(self, reply, grade):
        assert ScoreOutputParser().parse(reply) == grade

    @pytest.mark.parametrize(
        "reply", ["", "relevant", "0", "11", "-3", "7 or 8", "80%", "Passage 2 gets a 9", "nan"]
    )
    def test_a_reply_without_one_grade_is_an_error(self, reply):
        with pytest.raises(RerankError, match="one number from 1 to 10"):
            LLMPointwiseRerank.from_llm(chat("5", reply, "5", "5")).invoke(ask())

    @pytest.mark.parametrize("output", [math.nan, 0, 11.0, None, True, ["7"]])
    def test_a_chain_of_ones_own_must_give_a_grade(self, output):
        chain = RunnableLambda(lambda _: output)
        with pytest.raises(RerankError):
            LLMPointwiseRerank(llm_chain=chain).invoke(ask())

    def test_chains_of_ones_own_may_give_numbers_text_or_messages(self):
        for give in (float, str, lambda n: AIMessage(content=str(n))):
            chain = RunnableLambda(lambda given, give=give: give(len(given["context"])))
            out = LLMPointwiseRerank(llm_chain=chain, top_n=1).invoke(ask())
            assert ids(out) == ["d2"]

    def test_a_prompt_of_ones_own_gets_question_and_text(self):
        seen = []
        prompt = PromptTemplate.from_template("{question}|{context}")
        model = RunnableLambda(lambda value: seen.append(value.to_string()) or "5")
        LLMPointwiseRerank.from_llm(model, prompt=prompt).invoke(
            ask("one", "two"), {"max_concurrency": 1}
        )
        assert seen == ["which?|one", "which?|two"]

    def test_braces_in_a_document_are_text(self):
        assert LLMPointwiseRerank.from_llm(chat("5")).invoke(ask("{context} {nothing}"))

    async def test_documents_are_asked_about_at_once_within_max_concurrency(self):
        running, most = 0, 0

        async def grade(_):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return "5"

        reranker = LLMPointwiseRerank(llm_chain=RunnableLambda(grade))
        await reranker.ainvoke(ask())
        assert most == 4
        most = 0
        await reranker.ainvoke(ask(), {"max_concurrency": 2})
        assert most == 2

    def test_the_models_calls_are_children_of_its_run(self):
        runs = Runs()
        LLMPointwiseRerank.from_llm(chat("5")).invoke(ask("one", "two"), {"callbacks": [runs]})
        assert runs.runs.count(("model", "RunnableSequence")) == 2
        assert runs.runs.count(("RunnableSequence", "LLMPointwiseRerank")) == 2


class TestListwise:
    async def test_a_model_that_calls_tools_gives_a_list_of_ids(self):
        order = {"ranked_document_ids": [2, 0, 3, 1]}
        out = LLMListwiseRerank.from_llm(ToolModel(order)).invoke(ask())
        assert ids(out) == ["d2", "d0", "d3"]
        assert out.degraded == ()
        out = await LLMListwiseRerank.from_llm(ToolModel(order)).ainvoke(ask())
        assert ids(out) == ["d2", "d0", "d3"]

    def test_the_model_sees_every_document_with_its_id(self):
        model = ToolModel({"ranked_document_ids": [1, 0]})
        LLMListwiseRerank.from_llm(model).invoke(ask("one {x}", "two"))
        system, human = model.seen[-1]
        assert "<document id=0>\none {x}\n</document>" in system.content
        assert "<document id=1>\ntwo\n</document>" in system.content
        assert human.content == "which?"

    def test_an_order_has_no_scores(self):
        out = LLMListwiseRerank.from_llm(chat("[1] > [0]")).invoke(ask("one", "two"))
        assert of(out[0]).score is None
        assert of(out[0]).method == "rerank"
        assert of(out[0]).fusion_score == 0.5
        assert of(out[0]).journey[-1].says == "LLMListwiseRerank: rank 2 → 1 of 2."

    @pytest.mark.parametrize(
        ("reply", "expected"),
        [
            ("[2] > [0] > [1] > [3]", [2, 0, 1, 3]),
            ("Here are the 4 documents: [2] > [0] > [1] > [3].", [2, 0, 1, 3]),
            ("[2, 0, 1, 3]", [2, 0, 1, 3]),
            ("2, 0, 1, 3", [2, 0, 1, 3]),
            ("2 > 0 > 1 > 3", [2, 0, 1, 3]),
        ],
    )
    def test_a_model_that_only_writes_is_asked_for_ids_in_brackets(self, reply, expected):
        out = LLMListwiseRerank.from_llm(chat(reply), top_n=None).invoke(ask())
        assert ids(out) == [f"d{number}" for number in expected]
        assert out.degraded == ()

    @pytest.mark.parametrize(
        ("given", "expected", "says"),
        [
            ([3, 9, 0, 1, 2], [3, 0, 1, 2], "made up ids, which were ignored: [9]"),
            ([3, -1, 0, 1, 2], [3, 0, 1, 2], "made up ids, which were ignored: [-1]"),
            ([3, 3, 0, 1, 2, 0], [3, 0, 1, 2], "gave ids twice"),
            ([3], [3, 0, 1, 2], "3 of 4 documents were left out of the order"),
        ],
        ids=["unknown", "negative", "twice", "left out"],
    )
    def test_no_id_is_an_index_error_repeats_or_loses_a_document(self, given, expected, says):
        model = ToolModel({"ranked_document_ids": given})
        out = LLMListwiseRerank.from_llm(model, top_n=None).invoke(ask())
        assert ids(out) == [f"d{number}" for number in expected]
        assert len(out.degraded) == 1
        assert says in out.degraded[0]

    @pytest.mark.parametrize("reply", ["", "I cannot say.", "[7]", "[8] > [9]", "Document 2"])
    def test_a_reply_without_an_order_is_an_error(self, reply):
        with pytest.raises(RerankError, match="must give ids from 0 to 3"):
            LLMListwiseRerank.from_llm(chat(reply)).invoke(ask())

    def test_a_model_that_calls_no_tool_is_an_error(self):
        model = ToolModel()
        model.messages = iter([AIMessage(content="no tool")])
        with pytest.raises(RerankError, match="must give a list of ids; it gave None"):
            LLMListwiseRerank.from_llm(model).invoke(ask())

    async def test_a_long_list_is_ordered_in_windows_from_its_end(self):
        seen = []

        def by_length(given):
            seen.append([document.page_content for document in given["documents"]])
            return sorted(given["documents"], key=lambda document: -len(document.page_content))

        reranker = LLMListwiseRerank(reranker=RunnableLambda(by_length), window=4, top_n=2)
        texts = ["a" * n for n in (3, 1, 2, 4, 1, 6, 2, 9)]
        out = reranker.invoke(ask(*texts))
        assert [len(text) for text in seen[0]] == [1, 6, 2, 9]
        assert [len(window) for window in seen] == [4, 4, 4]
        assert ids(out) == ["d7", "d5"]
        assert ids(await reranker.ainvoke(ask(*texts))) == ["d7", "d5"]
        alone = LLMListwiseRerank(reranker=RunnableLambda(by_length), window=None, top_n=None)
        assert ids(alone.invoke(ask(*texts)))[:3] == ["d7", "d5", "d3"]

    def test_a_reranker_of_ones_own_may_return_copies_but_no_strangers(self):
        def copies(given):
            return [document.model_copy() for document in reversed(given["documents"])]

        out = LLMListwiseRerank(reranker=RunnableLambda(copies)).invoke(ask())
        assert ids(out) == ["d3", "d2", "d1"]
        stranger = RunnableLambda(lambda _: [Document(page_content="new")])
        with pytest.raises(RerankError, match="that it did not give"):
            LLMListwiseRerank(reranker=stranger).invoke(ask())
        with pytest.raises(RerankError, match="needs a list of Documents"):
            LLMListwiseRerank(reranker=RunnableLambda(lambda _: "two")).invoke(ask())

    def test_equal_documents_are_told_apart(self):
        def reversed_copies(given):
            return [document.model_copy() for document in reversed(given["documents"])]

        documents = [Document(page_content="same"), Document(page_content="same")]
        reranker = LLMListwiseRerank(reranker=RunnableLambda(reversed_copies))
        assert len(reranker.invoke({"query": "?", "documents": documents})) == 2

    @pytest.mark.parametrize("window", [1, 0, True, 2.5])
    def test_a_window_that_compares_nothing_is_refused(self, window):
        with pytest.raises(QueryError, match="window must be"):
            LLMListwiseRerank.from_llm(chat("[0]"), window=window)

    def test_the_models_call_is_below_its_run(self):
        runs = Runs()
        LLMListwiseRerank.from_llm(chat("[0] > [1]")).invoke(
            ask("one", "two"), {"callbacks": [runs]}
        )
        names = [name for name, _ in runs.runs]
        assert names[0] == "LLMListwiseRerank"
        assert "model" in names
        assert all(parent for _, parent in runs.runs[1:])


@pytest.mark.parametrize("chain", [None, "text", lambda: 1])
def test_what_is_no_chain_is_refused_with_the_way_to_make_one(chain):
    with pytest.raises(UsageError, match=r"from_llm\(llm\)"):
        LLMPointwiseRerank(llm_chain=chain)
    with pytest.raises(UsageError, match=r"from_llm\(llm\)"):
        LLMListwiseRerank(reranker=chain)
