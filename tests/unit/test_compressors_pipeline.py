"""Do stages work one after the other, ours and others', and does the rest fit into the prompt?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import (
    BaseDocumentCompressor,
    BaseDocumentTransformer,
    Document,
)
from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import Lengths, Runs, found, ids

from cormorant.errors import QueryError, UsageError
from cormorant.langchain.document_transformers import LongContextReorder
from cormorant.langchain.provenance import Answer, of
from cormorant.langchain.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
    TokenBudgetPacker,
    estimate_tokens,
)

TEXTS = ("a", "bbb", "cc", "dddd")


def ask(*texts):
    return {"query": "?", "documents": found(*(texts or TEXTS))}


def rerank(top_n=3):
    return CrossEncoderReranker(model=Lengths(), top_n=top_n)


def pipeline(*stages):
    return DocumentCompressorPipeline(transformers=list(stages))


class Forgetful(BaseDocumentCompressor):
    """As hosted rerankers' LangChain classes do it: new documents, no ids, a score in metadata."""

    top_n: int = 2

    def compress_documents(self, documents, query, callbacks=None):
        best = sorted(documents, key=lambda doc: -len(doc.page_content))[: self.top_n]
        return [
            Document(
                page_content=doc.page_content,
                metadata={**doc.metadata, "relevance_score": len(doc.page_content) / 10},
            )
            for doc in best
        ]


class NoCallbacks(BaseDocumentCompressor):
    def compress_documents(self, documents, query):
        return documents[:1]

    async def acompress_documents(self, documents, query):
        return documents[:1]


class Splitter(BaseDocumentTransformer):
    """Each character a document."""

    def transform_documents(self, documents, **kwargs):
        return [
            Document(page_content=letter, metadata=doc.metadata)
            for doc in documents
            for letter in doc.page_content
        ]


class TestStages:
    async def test_each_sees_what_the_one_before_kept(self):
        stages = pipeline(rerank(2), LongContextReorder())
        assert ids(stages.invoke(ask())) == ["d1", "d3"]
        assert ids(await stages.ainvoke(ask())) == ["d1", "d3"]

    def test_each_has_a_run_below_the_pipelines(self):
        runs = Runs()
        stages = pipeline(rerank(), Forgetful(), RunnableLambda(lambda i: i["documents"], name="f"))
        stages.invoke(ask(), {"callbacks": [runs]})
        assert runs.runs[:4] == [
            ("DocumentCompressorPipeline", None),
            ("CrossEncoderReranker", "DocumentCompressorPipeline"),
            ("Forgetful", "DocumentCompressorPipeline"),
            ("f", "DocumentCompressorPipeline"),
        ]

    def test_the_stages_and_what_degraded_are_told(self):
        out = pipeline(rerank(), TokenBudgetPacker(token_budget=1)).invoke(ask("aa bb cc"))
        assert [stage.name for stage in out.stages] == [
            "CrossEncoderReranker",
            "TokenBudgetPacker",
            "DocumentCompressorPipeline",
        ]
        assert out == []
        assert out.degraded == (
            "The best document has 3 tokens, the budget is 1: it was left out.",
        )

    def test_a_stage_that_keeps_nothing_ends_it(self):
        asked = []
        stages = pipeline(
            RunnableLambda(lambda _: []), RunnableLambda(lambda i: asked.append(i) or [])
        )
        assert stages.invoke(ask()) == []
        assert asked == []

    @pytest.mark.parametrize("stages", [None, [], "reranker", [1], [lambda docs: docs]])
    def test_what_is_no_stage_is_refused(self, stages):
        with pytest.raises(UsageError, match=r"transformers must be|A stage must be"):
            DocumentCompressorPipeline(transformers=stages)


class TestTopN:
    """A call for k documents gets k of them, and the best."""

    def test_no_stage_keeps_fewer_and_no_more_come_back(self):
        stages = pipeline(rerank(1), rerank(4))
        assert ids(stages.invoke(ask())) == ["d3"]
        assert ids(stages.invoke(ask(), top_n=2)) == ["d3", "d1"]
        assert ids(stages.invoke(ask(), top_n=9)) == ["d3", "d1", "d2", "d0"]

    def test_a_wider_stage_stays_wide_for_the_ones_after_it(self):
        drop_best = RunnableLambda(lambda i: i["documents"][1:])
        assert ids(pipeline(rerank(3), drop_best).invoke(ask(), top_n=2)) == ["d1", "d2"]

    def test_arranging_comes_after_cutting(self):
        stages = pipeline(rerank(4), LongContextReorder())
        assert ids(stages.invoke(ask(), top_n=3)) == ["d3", "d2", "d1"]
        assert ids(pipeline(LongContextReorder()).invoke(ask(), top_n=2)) == ["d1", "d0"]
        nested = pipeline(pipeline(rerank(1), LongContextReorder()), LongContextReorder())
        assert sorted(ids(nested.invoke(ask(), top_n=2))) == ["d1", "d3"]

    def test_a_foreign_stage_that_keeps_fewer_is_named(self):
        assert len(pipeline(Forgetful()).invoke(ask(), top_n=2)) == 2
        with pytest.raises(QueryError, match="3 documents are wanted, and Forgetful keeps 2"):
            pipeline(Forgetful()).invoke(ask(), top_n=3)


class TestForeign:
    async def test_ids_and_scores_it_forgot_are_put_back_and_its_own_taken_up(self):
        stages = pipeline(Forgetful())
        for out in (stages.invoke(ask()), await stages.ainvoke(ask())):
            assert ids(out) == ["d3", "d1"]
            known = of(out[0])
            assert known.fusion_score == 0.25
            assert known.rerank_score == known.score == 0.4
            assert known.journey[-1].says == "Forgetful: rank 4 → 1 of 4."
            assert out[0].metadata["relevance_score"] == 0.4

    async def test_one_that_takes_no_callbacks_is_called_without(self):
        assert ids(pipeline(NoCallbacks()).invoke(ask())) == ["d0"]
        assert ids(await pipeline(NoCallbacks()).ainvoke(ask())) == ["d0"]

    async def test_the_pieces_of_a_document_have_its_scores_and_not_its_id(self):
        for out in (
            pipeline(Splitter()).invoke(ask("ab", "c")),
            await pipeline(Splitter()).ainvoke(ask("ab", "c")),
        ):
            assert [doc.page_content for doc in out] == ["a", "b", "c"]
            assert ids(out) == [None, None, "d1"]
            assert [of(doc).score for doc in out] == [1.0, 1.0, 0.5]

    async def test_a_runnable_may_return_an_answer_that_says_more(self):
        def cut(input):
            return Answer(input["documents"][:1], degraded=["In a hurry."])

        for out in (
            pipeline(RunnableLambda(cut)).invoke(ask()),
            await pipeline(RunnableLambda(cut)).ainvoke(ask()),
        ):
            assert ids(out) == ["d0"]
            assert out.degraded == ("In a hurry.",)

    def test_what_it_makes_up_is_new(self):
        summary = RunnableLambda(lambda _: [Document(page_content="All in all.")])
        out = pipeline(summary).invoke(ask())
        assert ids(out) == [None]
        assert of(out[0]).score is None

    def test_documents_with_equal_texts_are_not_mixed_up(self):
        turned = RunnableLambda(lambda i: list(reversed(i["documents"])))
        out = pipeline(turned).invoke(ask("same", "same"))
        assert ids(out) == ["d1", "d0"]
        assert [of(doc).score for doc in out] == [0.5, 1.0]

    @pytest.mark.parametrize("returned", [None, "text", [1], 5])
    def test_what_are_no_documents_is_an_error(self, returned):
        with pytest.raises(UsageError, match="must return a list of Documents"):
            pipeline(RunnableLambda(lambda _: returned)).invoke(ask())


class TestReorder:
    @pytest.mark.parametrize("count", range(1, 12))
    def test_the_worst_is_in_the_middle_and_each_better_one_outside_of_it(self, count):
        out = LongContextReorder().transform_documents(found(*"abcdefghijkl"[:count]))
        # langchain-community's: from the worst to the best, in turns before and behind.
        expected: list[str] = []
        for turn, rank in enumerate(reversed(range(count))):
            expected.insert(0 if turn % 2 == 0 else len(expected), f"d{rank}")
        assert ids(out) == expected

    def test_the_journey_tells_the_place(self):
        out = LongContextReorder().transform_documents(found("a", "b", "c"))
        assert of(out[1]).journey[-1].says == "LongContextReorder: rank 3 goes to place 2 of 3."


def words(text):
    return len(text.split())


def packer(budget, **more):
    return TokenBudgetPacker(token_budget=budget, length_function=words, **more)


class TestPacker:
    def test_the_best_that_fit_stay_in_their_order(self):
        out = packer(4).transform_documents(found("a b", "c d e", "f", "g h"))
        assert ids(out) == ["d0", "d2"]
        assert out.plan == ("2 of 4 documents packed into 3 tokens, of 4.",)
        assert out.degraded == ()

    def test_stop_and_cut(self):
        documents = found("a b", "c d e", "f")
        assert ids(packer(4, when_full="stop").transform_documents(documents)) == ["d0"]
        out = packer(4, when_full="cut").transform_documents(documents)
        assert [(doc.id, doc.page_content) for doc in out] == [("d0", "a b"), ("d1", "c d")]
        assert of(out[1]).journey[-1].detail["cut"] is True
        assert documents[1].page_content == "c d e"

    def test_a_text_is_cut_at_the_end_of_a_sentence_if_one_fits(self):
        text = "One two. Three four five. Six seven eight."
        out = packer(6, when_full="cut").transform_documents(found(text))
        assert out[0].page_content == "One two. Three four five."
        assert out.degraded == ("The best document has 8 tokens, the budget is 6: it was cut.",)
        chinese = TokenBudgetPacker(token_budget=7, length_function=len, when_full="cut")
        out = chinese.transform_documents(found("鸬鹚潜水。它捕鱼。"))
        assert out[0].page_content == "鸬鹚潜水。"
        out = chinese.transform_documents(found("鸬鹚潜水捕鱼为生的鸟"))
        assert out[0].page_content == "鸬鹚潜水捕鱼为"

    def test_that_the_best_was_left_out_is_said(self):
        out = packer(2).transform_documents(found("a b c", "d"))
        assert ids(out) == ["d1"]
        assert out.degraded == (
            "The best document has 3 tokens, the budget is 2: it was left out.",
        )

    def test_overhead_counts_for_each_document(self):
        assert ids(packer(4, overhead=1).transform_documents(found("a", "b", "c"))) == ["d0", "d1"]

    @settings(max_examples=60, deadline=None)
    @given(
        texts=st.lists(st.text("ab ,.。鸬\n", max_size=30), max_size=8),
        budget=st.integers(1, 20),
        overhead=st.integers(0, 3),
        when_full=st.sampled_from(["skip", "stop", "cut"]),
        length=st.sampled_from([None, len, words]),
    )
    def test_the_budget_is_never_passed(self, texts, budget, overhead, when_full, length):
        stage = TokenBudgetPacker(
            token_budget=budget, overhead=overhead, when_full=when_full, length_function=length
        )
        out = stage.transform_documents(found(*texts))
        count = length or estimate_tokens
        assert sum(count(doc.page_content) + overhead for doc in out) <= budget

    @pytest.mark.parametrize(
        "wrong",
        [
            {"token_budget": 0},
            {},
            {"token_budget": 5, "overhead": -1},
            {"token_budget": 5, "when_full": "drop"},
        ],
    )
    def test_wrong_settings_are_refused(self, wrong):
        with pytest.raises(QueryError):
            TokenBudgetPacker(**wrong)

    @pytest.mark.parametrize("length", [None, 1.5, -1, True])
    def test_a_length_function_that_counts_nothing_is_refused(self, length):
        stage = TokenBudgetPacker(token_budget=5, length_function=lambda _: length)
        with pytest.raises(QueryError, match="length_function must return"):
            stage.transform_documents(found("a"))

    @pytest.mark.parametrize(
        ("text", "tokens"),
        [
            ("", 0),
            ("cat", 1),
            ("cormorant", 3),
            ("a cat, a bird.", 6),
            ("鸬鹚", 2),
            ("2026-11-30", 6),
            ("птица", 3),
        ],
    )
    def test_the_estimate(self, text, tokens):
        assert estimate_tokens(text) == tokens
