"""Metrics, and what our run files mean, agree with trec_eval (through pytrec-eval-terrier)."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from cormorant.errors import UsageError
from cormorant.evaluate import Run, judge, read_run, write_run
from cormorant.evaluate.formats.trec import parse_trec_run, trec_run

pytrec_eval = pytest.importorskip("pytrec_eval")

THEIRS = {
    "ndcg": "ndcg",
    "ndcg@1": "ndcg_cut_1",
    "ndcg@3": "ndcg_cut_3",
    "ndcg@10": "ndcg_cut_10",
    "recall@3": "recall_3",
    "recall@10": "recall_10",
    "precision@1": "P_1",
    "precision@3": "P_3",
    "precision@20": "P_20",
    "hit@1": "success_1",
    "hit@3": "success_3",
    "mrr": "recip_rank",
    "map": "map",
    "map@3": "map_cut_3",
    "rprec": "Rprec",
    "bpref": "bpref",
}
ASKED = {
    "ndcg",
    "ndcg_cut.1,3,10",
    "recall.3,10",
    "P.1,3,20",
    "success.1,3",
    "recip_rank",
    "map",
    "map_cut.3",
    "Rprec",
    "bpref",
}
CASES = 10_000


def cases(seed: int, count: int):
    """Small random queries: ties, grades below 0, none relevant, unanswered, empty answers."""
    rng = random.Random(seed)
    qrels, scored = {}, {}
    for number in range(count):
        docs = [f"d{i}" for i in range(rng.randint(1, 16))]
        judged = rng.sample(docs, rng.randint(1, len(docs)))
        grades = rng.choice([(-2, -1, 0, 0, 1, 2, 3), (0, 1), (0,), (1,), (0, 1, 4)])
        qrels[str(number)] = {doc: rng.choice(grades) for doc in judged}
        if max(qrels[str(number)].values()) < 0:
            qrels[str(number)]["never"] = 0  # trec_eval crashes where all grades are below 0
        if rng.random() < 0.05:
            continue
        scores = rng.choice([range(3), range(1000)])
        found = rng.sample(docs, rng.randint(0, len(docs)))
        scored[str(number)] = {doc: rng.choice(scores) / 4 for doc in found}
    return qrels, scored


def test_every_metric_agrees_on_ten_thousand_random_queries():
    qrels, scored = cases(6, CASES)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(scored)
    lines = [
        f"{query} Q0 {doc} 0 {score!r} x"
        for query, hits in scored.items()
        for doc, score in hits.items()
    ]
    ours = judge(parse_trec_run(lines, name="random"), qrels, THEIRS)
    assert len(ours.queries) == CASES
    assert ours.metrics == tuple(THEIRS)
    ties = sum(len(set(hits.values())) < len(hits) for hits in scored.values())
    assert ties > CASES / 4, "the cases have ties"
    assert len(scored) < CASES
    assert sum(max(grades.values()) <= 0 for grades in qrels.values()) > CASES / 20
    for name, measure in THEIRS.items():
        # As with -c: a query that was not answered counts as 0.
        expected = [theirs.get(query, {}).get(measure, 0.0) for query in ours.queries]
        assert 0.05 < np.mean(expected) < 0.95, f"{name} is not at work in these cases"
        np.testing.assert_allclose(ours.of(name), expected, rtol=0, atol=1e-9, err_msg=name)


def test_a_document_twice_is_refused():
    with pytest.raises(UsageError, match="once"):
        Run("a", {"1": (("x", 1.0), ("x", 0.5))})


def ranks_seen(scores: dict[str, float]) -> dict[str, int]:
    """The rank at which trec_eval sees each document: one query a document asks for it alone."""
    qrels = {doc: {doc: 1} for doc in scores}
    seen = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(
        dict.fromkeys(scores, scores)
    )
    return {doc: round(1 / values["recip_rank"]) for doc, values in seen.items()}


def written(scores: list[float]) -> tuple[Run, dict[str, float]]:
    """A ranking with these scores, falling, and what a TREC file of it says."""
    rng = random.Random(len(scores))
    docs = [f"d{i}" for i in range(len(scores))]
    rng.shuffle(docs)
    run = Run("a", {"1": tuple(zip(docs, sorted(scores, reverse=True), strict=True))})
    columns = [line.split() for line in trec_run(run)]
    return run, {row[2]: float(row[4]) for row in columns}


TINY = 1.401298464324817e-45  # the least 32-bit float above 0
WIDEST = 3.4028234663852886e38


@pytest.mark.parametrize(
    "scores",
    [
        [1.0] * 20,
        [0.0, -0.0, 0.0, -0.0],
        [1.0, 1.0 + 1e-12, 1.0 + 2e-12, 1.0],
        [TINY, TINY, 0.0, -TINY, -TINY, 1e-300, -1e-300],
        [1e300, 1e299, 1e39, WIDEST, math.inf, math.inf],
        [-1e300, -1e299, -1e39, -WIDEST, -math.inf, -math.inf],
        [math.inf, 1e308, 0.5, 0.5, -1e308, -math.inf, -math.inf],
        [-WIDEST, -WIDEST, -WIDEST, 0.5, 0.5],
        [0.1, 0.2, 0.3],
    ],
)
def test_an_export_is_ranked_by_trec_eval_as_we_rank(scores):
    run, said = written(scores)
    assert ranks_seen(said) == {doc: i for i, doc in enumerate(run.ids("1"), start=1)}


def test_an_export_keeps_the_scores_that_fall_already():
    scores = [0.1, 0.2, 1 / 3, 7.0, -2.5, 0.0]
    run, said = written(scores)
    assert said == dict(run.rankings["1"])


def test_a_run_comes_back_from_a_trec_file_in_the_same_order(tmp_path):
    rng = random.Random(1)
    rankings = {}
    for query in range(300):
        scores = sorted((rng.choice([0.5, rng.random(), 1e-40]) for _ in range(20)), reverse=True)
        docs = rng.sample([f"d{i}" for i in range(50)], 20)
        rankings[str(query)] = tuple(zip(docs, scores, strict=True))
    run = Run("a b", rankings)
    write_run(run, tmp_path / "run.trec")
    back = read_run(tmp_path / "run.trec")
    assert back.name == "a_b"
    assert {q: back.ids(q) for q in back.rankings} == {q: run.ids(q) for q in rankings}


def test_a_run_file_is_read_as_trec_eval_reads_it():
    # The rank column says otherwise; 1 and 1 + 1e-12 are one 32-bit float.
    lines = [
        "1 Q0 a 1 1.0 t",
        "1 Q0 b 2 1.000000000001 t",
        "1 Q0 c 3 1.0 t",
        "1 Q0 d 4 5e0 t",
    ]
    run = parse_trec_run(lines, name="run")
    assert run.ids("1") == ("d", "c", "b", "a")
    assert ranks_seen({"a": 1.0, "b": 1.000000000001, "c": 1.0, "d": 5.0}) == {
        doc: i for i, doc in enumerate(run.ids("1"), start=1)
    }
