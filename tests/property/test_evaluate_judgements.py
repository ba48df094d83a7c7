"""Kappa, near-duplicates and judgement files, whatever comes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cormorant.evaluate import read_qrels
from cormorant.evaluate.judgements import JudgementFile, JudgingSession, agreement, cohen_kappa
from cormorant.evaluate.judgements.asking import with_words_out
from cormorant.evaluate.judgements.twins import Twins
from cormorant.evaluate.judgements.words import words

grades = st.integers(0, 4)
pairs = st.lists(st.tuples(grades, grades), min_size=1, max_size=40)
weights = st.sampled_from([None, "linear", "quadratic"])
texts = st.text(alphabet="ab cd鸬鹚捕鱼.。\n", max_size=30)


@given(pairs, weights, st.randoms())
def test_kappa_is_symmetric_and_at_most_one_whatever_the_order(given_pairs, weighed, random):
    ours, theirs = zip(*given_pairs, strict=True)
    value = cohen_kappa(ours, theirs, weights=weighed)
    shuffled = list(given_pairs)
    random.shuffle(shuffled)
    mirrored = cohen_kappa(*zip(*[(b, a) for a, b in shuffled], strict=True), weights=weighed)
    if math.isnan(value):
        assert math.isnan(mirrored)
        assert len(set(ours) | set(theirs)) == 1
    else:
        assert value == pytest.approx(mirrored)
        assert value <= 1
        assert (value == 1) == (ours == theirs)


@given(pairs, weights)
def test_the_interval_is_in_order_and_the_same_again(given_pairs, weighed):
    ours, theirs = zip(*given_pairs, strict=True)
    found = agreement(ours, theirs, weights=weighed, resamples=50)
    assert found.interval.low <= found.interval.high
    assert str(found) == str(agreement(ours, theirs, weights=weighed, resamples=50))


@given(st.lists(texts, min_size=1, max_size=5), texts, st.floats(0.05, 1))
def test_near_duplicates_are_those_the_definition_names(known, text, likeness):
    named = {str(at): each for at, each in enumerate(known)}
    found = frozenset(words(text))
    expected = []
    for name, each in named.items():
        own = set(words(each))
        if own and len(own & found) >= likeness * len(own | found) - 1e-9:
            expected.append(name)
    assert Twins(named, likeness=likeness).of(found) == expected


@given(texts, st.floats(0, 0.999), st.integers(0, 9))
def test_leaving_words_out_adds_none(text, share, seed):
    left = with_words_out(text, share, seed)
    assert set(left) <= set(text) | {" "}
    assert bool(words(left)) == bool(words(text))


@given(st.lists(st.sampled_from(["0", "4", "s", "u"]), max_size=30), st.integers(1, 8))
def test_the_file_says_what_the_answers_said(tmp_path_factory, answers, count):
    path = tmp_path_factory.mktemp("judged") / "j.jsonl"
    docs = tuple(f"d{i}" for i in range(count))
    given_answers: list[int | None] = []
    with JudgementFile(path) as file:
        session = JudgingSession({"q": docs}, file)
        for answer in answers:
            if answer == "u":
                assert (session.undo() is None) == (not given_answers)
                given_answers = given_answers[:-1]
            elif len(given_answers) < count:
                session.skip() if answer == "s" else session.grade(int(answer))
                given_answers.append(None if answer == "s" else int(answer))
            expected = {
                doc: grade
                for doc, grade in zip(docs, given_answers, strict=False)
                if grade is not None
            }
            assert read_qrels(path) == ({"q": expected} if expected else {})
