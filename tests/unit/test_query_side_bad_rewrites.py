"""Is what a model made and nobody can search for left out, said, and the question asked still?"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import FAKE, QUERY_SIDE, ByQuestion, reply_for, says, sometimes
from retrieverlab import doc, texts

from cormorant import defaults
from cormorant.errors import RewriteError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    DecompositionRetriever,
    HyDERetriever,
    HypotheticalDocumentEmbedder,
    MultiQueryRetriever,
)
from cormorant.langchain.retrievers.asking.rewriting import flaw

BAD = {
    "too long": "b" * (defaults.MAX_QUERY_BYTES + 1),
    "too long in UTF-8": "鱼" * (defaults.MAX_QUERY_BYTES // 3 + 1),
    "empty": " \t ",
    "a control character": "fish\x00net",
    "an escape": "\x1b[31mfish\x1b[0m net",
    "half a surrogate pair": "fish \ud83d net",
}


@pytest.fixture
def vs() -> Any:
    with Cormorant.from_texts(["fish", "net"], FAKE) as store:
        yield store


CASES = [
    pytest.param(kind, bad, id=f"{kind}, {name}")
    for kind in QUERY_SIDE
    for name, bad in BAD.items()
    # A model that leaves the query of a filter blank wants the question searched.
    if not (kind == "SelfQuery" and name == "empty")
]


@pytest.mark.parametrize(("kind", "bad"), CASES)
class TestEveryRetriever:
    def test_the_question_is_asked_still_and_the_answer_says_so(
        self, vs: Cormorant, kind: str, bad: str
    ) -> None:
        result = QUERY_SIDE[kind](says(reply_for(kind, bad)), vs).retrieve("fish")
        assert result.hits[0].text == "fish"
        assert len(result.degraded) >= 1
        assert len(" ".join(result.degraded)) < 1500

    async def test_async_too(self, vs: Cormorant, kind: str, bad: str) -> None:
        result = await QUERY_SIDE[kind](says(reply_for(kind, bad)), vs).aretrieve("fish")
        assert result.hits[0].text == "fish"
        assert len(result.degraded) >= 1


@pytest.mark.parametrize("kind", [MultiQueryRetriever, DecompositionRetriever])
@pytest.mark.parametrize("bad", [each for each in BAD.values() if each.strip()])
class TestOneOfSeveral:
    def test_the_good_ones_are_asked(self, kind: Any, bad: str) -> None:
        child = ByQuestion(answers={"a": [doc("one")], "b": [doc("two")]})
        result = kind.from_llm(child, says(json.dumps(["b", bad, "c"]))).retrieve("a")
        assert sorted(child.asked) == ["a", "b", "c"]
        assert sorted(hit.text for hit in result) == ["one", "two"]
        (sentence,) = result.degraded
        assert sentence == (f"The model's {kind.made} 2 of 3 was left out: {flaw(bad)}.")

    def test_one_left_out_takes_no_others_place(self, kind: Any, bad: str) -> None:
        child = ByQuestion()
        kind.from_llm(child, says(json.dumps([bad, "b", "c"])), variants=2).invoke("a")
        assert sorted(child.asked) == ["a", "b", "c"]

    def test_without_the_original_it_is_asked_where_nothing_is_left(
        self, kind: Any, bad: str
    ) -> None:
        child = ByQuestion()
        retriever = kind.from_llm(child, says(json.dumps([bad])), include_original=False)
        result = retriever.retrieve("a")
        assert child.asked == ["a"]
        assert "the question alone was asked" in result.degraded[0]
        assert flaw(bad) in result.degraded[1]

    def test_generate_queries_leaves_it_out(self, kind: Any, bad: str) -> None:
        retriever = kind.from_llm(ByQuestion(), says(json.dumps(["b", bad])))
        assert retriever.generate_queries("a") == ["b"]

    def test_where_failures_are_raised_so_is_this(self, kind: Any, bad: str) -> None:
        retriever = kind.from_llm(ByQuestion(), says(json.dumps([bad])), on_llm_error="raise")
        with pytest.raises(RewriteError, match="that can be searched for"):
            retriever.invoke("a")


def test_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        MultiQueryRetriever.from_llm(ByQuestion(), says('["b", "c\\u0000"]')).invoke("a")
    assert "variant 2 of 2 was left out: it holds a control character" in caplog.text


def test_line_ends_and_tabs_are_blanks_and_no_flaw() -> None:
    child = ByQuestion()
    MultiQueryRetriever.from_llm(child, says('["b\\n c\\td"]')).invoke("a")
    assert sorted(child.asked) == ["a", "b c d"]
    assert flaw("two\nlines\tof\r\ntext") is None


@pytest.mark.parametrize("bad", ["[" * 100_000, '["' + "[" * 50_000, '{"a":' * 20_000])
def test_json_nested_too_deep_is_no_error(bad: str) -> None:
    child = ByQuestion()
    assert MultiQueryRetriever.from_llm(child, says(bad)).retrieve("a").hits == ()
    assert "a" in child.asked


class TestPassages:
    def test_a_bad_one_is_left_out_and_the_others_count(self, vs: Cormorant) -> None:
        for bad in (each for each in BAD.values() if each.strip()):
            retriever = HyDERetriever.from_llm(says(bad, "net"), vs, passages=2, k=1)
            result = retriever.retrieve("boat")
            assert result.plan[0] == "passage 1: net"
            assert result.degraded == (f"The model's passage 1 of 2 was left out: {flaw(bad)}.",)

    def test_the_embedder_says_so_too(self) -> None:
        made = HypotheticalDocumentEmbedder.from_llm(says("a\x00", "net"), FAKE, passages=2)
        _, passages, notes = made.imagine("boat")
        assert passages == ["net"]
        assert "a control character" in notes[0]

    async def test_a_call_that_fails_leaves_the_others(self, vs: Cormorant) -> None:
        for run in (HyDERetriever.retrieve, HyDERetriever.aretrieve):
            model = sometimes("net", None, "net")
            found = run(HyDERetriever.from_llm(model, vs, passages=3, k=1), "boat")
            result = found if run is HyDERetriever.retrieve else await found
            assert result.plan[:2] == ("passage 1: net", "passage 2: net")
            (sentence,) = result.degraded
            assert "a passage was left out: ConnectionError" in sentence

    def test_or_is_raised(self, vs: Cormorant) -> None:
        model = sometimes("net", None, "net")
        with pytest.raises(ConnectionError):
            HyDERetriever.from_llm(model, vs, passages=3, on_llm_error="raise").invoke("boat")


def test_a_users_own_question_that_is_too_long_is_theirs_to_mend(vs: Cormorant) -> None:
    with pytest.raises(ValueError, match="at most 65,536 bytes"):
        QUERY_SIDE["MultiQuery"](says("net"), vs).invoke("b" * 70_000)
    assert texts(QUERY_SIDE["MultiQuery"](says("net"), vs).invoke("fish")) == ["fish", "net"]
