"""Whatever the scores, trec_eval ranks an exported run as we do; other formats lose nothing."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cormorant.evaluate import Run, read_qrels, read_run, write_qrels, write_run
from cormorant.evaluate.formats.trec import trec_run

pytrec_eval = pytest.importorskip("pytrec_eval")

SPECIAL = [0.0, -0.0, 1.0, 1e-45, -1e-45, 3.4028234663852886e38, -3.4028234663852886e38, 1e308]
SCORES = st.one_of(
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False),
    st.sampled_from([*SPECIAL, float("inf"), float("-inf")]),
)
IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
TREC_IDS = st.text(st.characters(codec="utf-8", min_codepoint=33), min_size=1, max_size=6)


@st.composite
def rankings(draw, ids=IDS):
    docs = draw(st.lists(ids, unique=True, max_size=12))
    scores = draw(st.lists(SCORES, min_size=len(docs), max_size=len(docs)))
    # Near neighbours, which are one and the same 32-bit float.
    if draw(st.booleans()) and scores:
        scores = [scores[0] * (1 + i * 2**-40) for i in range(len(scores))]
    return tuple(zip(docs, sorted(scores, reverse=True), strict=True))


def as_float32(score: float) -> float:
    return struct.unpack("f", struct.pack("f", score))[0]


@given(rankings(ids=TREC_IDS))
@settings(max_examples=200)
def test_trec_eval_sees_our_order(ranking):
    lines = [line.split(" ") for line in trec_run(Run("a", {"q": ranking}))]
    assert [row[2] for row in lines] == [doc for doc, _ in ranking]
    scores = [as_float32(float(row[4])) for row in lines]
    assert all(a > b for a, b in pairwise(scores))
    said = {row[2]: float(row[4]) for row in lines}
    names = {doc: f"q{i}" for i, doc in enumerate(said)}
    seen = pytrec_eval.RelevanceEvaluator(
        {names[doc]: {doc: 1} for doc in said}, {"recip_rank"}
    ).evaluate({names[doc]: said for doc in said})
    for rank, (doc, _) in enumerate(ranking, start=1):
        assert seen[names[doc]]["recip_rank"] == pytest.approx(1 / rank)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@given(ranking=rankings(), second=rankings())
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_comes_back_to_the_last_bit(tmp_path, ending, ranking, second):
    run = Run("run", {"a": ranking or (("x", 1.0),), "b": second or (("x", 1.0),)})
    write_run(run, tmp_path / f"run.{ending}")
    assert read_run(tmp_path / f"run.{ending}").rankings == run.rankings


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@given(
    qrels=st.dictionaries(
        IDS,
        st.dictionaries(
            IDS,
            st.one_of(st.integers(-2, 5), st.sampled_from([0.5, 0.3, 2.25])),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_judgements_come_back_with_their_fractions(tmp_path, ending, qrels):
    write_qrels(qrels, tmp_path / f"qrels.{ending}")
    back = read_qrels(tmp_path / f"qrels.{ending}")
    assert back == qrels
    for query, grades in qrels.items():
        assert {d: type(g) for d, g in grades.items()} == {
            d: type(g) for d, g in back[query].items()
        }
