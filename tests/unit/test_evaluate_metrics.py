"""Each metric against its formula, written out in plain loops; names; what judge counts."""

from __future__ import annotations

import math
import random

import pytest

from cormorant.errors import UsageError
from cormorant.evaluate import (
    DEFAULT_METRICS,
    METRICS,
    Golden,
    Run,
    judge,
    parse_metric,
)
from cormorant.evaluate.names import parse_metrics


def run_of(**rankings: str) -> Run:
    """``run_of(q="abc")``: documents of one letter, best first."""
    return Run(
        "run", {q: tuple((doc, -float(i)) for i, doc in enumerate(r)) for q, r in rankings.items()}
    )


def value(ranking: str, grades: dict[str, float], metric: str) -> float:
    (got,) = judge(run_of(q=ranking), {"q": grades}, metric).values.ravel().tolist()
    return got


# The definitions, one query at a time.


def dcg(gains, k):
    return sum(g / math.log2(i + 2) for i, g in enumerate(gains[:k]))


def ndcg_by(gain):
    def compute(ids, grades, k):
        best = dcg(sorted((gain(max(g, 0)) for g in grades.values()), reverse=True), k)
        return dcg([gain(max(grades.get(doc, 0), 0)) for doc in ids], k) / best if best else 0.0

    return compute


def relevant_in(ids, grades):
    return [grades.get(doc, 0) > 0 for doc in ids]


def average_precision(ids, grades, k):
    flags = relevant_in(ids, grades)
    total = sum(g > 0 for g in grades.values())
    parts = [sum(flags[: i + 1]) / (i + 1) for i, flag in enumerate(flags[:k]) if flag]
    return sum(parts) / total if total else 0.0


def bpref(ids, grades, _):
    total = sum(g > 0 for g in grades.values())
    against = sum(g == 0 for g in grades.values())
    seen, parts = 0, []
    for doc in ids:
        grade = grades.get(doc)
        if grade is None or grade < 0:
            continue
        if grade > 0:
            parts.append(1 - min(seen, total) / min(against, total) if seen else 1.0)
        else:
            seen += 1
    return sum(parts) / total if total else 0.0


def share(part, whole):
    return part / whole if whole else 0.0


ORACLE = {
    "ndcg": ndcg_by(lambda g: g),
    "ndcg_exp": ndcg_by(lambda g: 2**g - 1),
    "recall": lambda ids, gr, k: share(
        sum(relevant_in(ids[:k], gr)), sum(g > 0 for g in gr.values())
    ),
    "precision": lambda ids, gr, k: sum(relevant_in(ids[:k], gr)) / k,
    "hit": lambda ids, gr, k: float(any(relevant_in(ids[:k], gr))),
    "mrr": lambda ids, gr, k: max(
        (1 / (i + 1) for i, flag in enumerate(relevant_in(ids[:k], gr)) if flag), default=0.0
    ),
    "map": average_precision,
    "rprec": lambda ids, gr, k: share(
        sum(relevant_in(ids[: sum(g > 0 for g in gr.values())], gr)),
        sum(g > 0 for g in gr.values()),
    ),
    "bpref": bpref,
    "unjudged": lambda ids, gr, k: share(sum(doc not in gr for doc in ids[:k]), len(ids[:k])),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_its_formula(name):
    rng = random.Random(name)
    letters = "abcdefghij"
    grades = (-1, 0, 0.3, 0.5, 1, 2.5, 4)
    qrels = {
        str(q): {d: rng.choice(grades) for d in rng.sample(letters, rng.randint(1, 8))}
        for q in range(400)
    }
    rankings = {q: "".join(rng.sample(letters, rng.randint(0, 10))) for q in qrels}
    run = run_of(**rankings)
    ks = [None] if METRICS[name].cutoff == "none" else [1, 3, 7, 20]
    if METRICS[name].cutoff == "optional":
        ks.append(None)
    for k in ks:
        written = name if k is None else f"{name}@{k}"
        expected = [ORACLE[name](list(rankings[q]), qrels[q], k) for q in qrels]
        got = judge(run, qrels, written).of(written)
        assert got == pytest.approx(expected, abs=1e-12)
        assert 0.02 < sum(expected) / len(expected) < 0.98
        assert got.min() >= 0
        assert got.max() <= 1


def test_exponential_gain_of_a_worked_example():
    # Grades 3 2 3 0 1 2: Σ (2^g - 1) / log2(i + 1) by hand.
    grades = {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1, "f": 2}
    gained = 7 + 3 / math.log2(3) + 7 / 2 + 0 + 1 / math.log2(6) + 3 / math.log2(7)
    ideal = 7 + 7 / math.log2(3) + 3 / 2 + 3 / math.log2(5) + 1 / math.log2(6)
    assert gained == pytest.approx(13.848, abs=1e-3)
    assert value("abcdef", grades, "ndcg_exp") == pytest.approx(gained / ideal)


def test_exponential_gain_does_not_overflow():
    assert value("ba", {"a": 5000, "b": 4999}, "ndcg_exp") == pytest.approx(
        (0.5 + 1 / math.log2(3)) / (1 + 0.5 / math.log2(3))
    )
    assert value("ba", {"a": 1, "b": 0}, "ndcg_exp") == value("ba", {"a": 1, "b": 0}, "ndcg")


def test_a_query_that_was_not_answered_counts_and_is_named():
    run = Run("a", {"1": (("x", 1.0),), "2": ()}, failed={"3": "ValueError: no"})
    got = judge(run, {q: {"x": 1} for q in "1234"}, "mrr")
    assert got.queries == ("1", "2", "3", "4")
    assert got.of("mrr").tolist() == [1.0, 0.0, 0.0, 0.0]
    assert got.means == {"mrr": 0.25}
    assert got.failed == ("3",)
    assert got.missing == ("4",)


def test_a_query_without_judgements_is_left_out():
    assert judge(run_of(q="a", other="a"), {"q": {"a": 1}}).queries == ("q",)


def test_an_empty_run_is_judged_too():
    got = judge(Run("nothing", {}), {"q": {"a": 1}}, [*DEFAULT_METRICS, "rprec", "bpref", "map"])
    assert not got.values.any()


def test_judge_refuses_to_judge_by_nothing():
    with pytest.raises(UsageError, match="no judgements"):
        judge(run_of(q="a"), {})
    with pytest.raises(UsageError, match="No metric"):
        judge(run_of(q="a"), {"q": {"a": 1}}, [])


def test_a_run_cannot_have_failed_and_answered():
    with pytest.raises(UsageError, match="both failed"):
        Run("a", {"1": ()}, failed={"1": "no"})


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("ndcg@10", "ndcg@10"),
        (" NDCG@10 ", "ndcg@10"),
        ("ndcg-exp@5", "ndcg_exp@5"),
        ("P@5", "precision@5"),
        ("hit_rate@3", "hit@3"),
        ("success@3", "hit@3"),
        ("rr", "mrr"),
        ("ap@100", "map@100"),
        ("bpref", "bpref"),
    ],
)
def test_a_metric_is_found_by_name(written, name):
    assert parse_metric(written).name == name


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("ndgc@10", "Did you mean 'ndcg'"),
        ("recall", "recall@10"),
        ("bpref@10", "without @10"),
        ("ndcg@0", "at least 1"),
        ("ndcg@", "'ndcg@10'"),
        ("ndcg@-1", "'ndcg@10'"),
        ("ndcg@1.5", "'ndcg@10'"),
        ("", "Accepted: ndcg"),
        (10, "string"),
    ],
)
def test_what_is_no_metric_is_refused(written, says):
    with pytest.raises(UsageError, match=says):
        parse_metric(written)


def test_several_metrics_each_once_in_order():
    names = [each.name for each in parse_metrics(["mrr, p@5", "ndcg@10", "precision@5"])]
    assert names == ["mrr", "precision@5", "ndcg@10"]


def test_every_default_metric_exists():
    assert [each.name for each in parse_metrics(DEFAULT_METRICS)] == list(DEFAULT_METRICS)
    assert [m.name for m in METRICS.values() if not m.higher_is_better] == ["unjudged"]


@pytest.mark.parametrize(
    "grade", [float("nan"), float("inf"), -float("inf"), "1", None, 10**400, {"a": 1}, 1j]
)
def test_grades_that_are_no_finite_numbers_are_refused_by_name(grade):
    qrels = {"1": {"a": 1}, "2": {"b": 1, "c": grade}}
    for ask in (
        lambda: judge(Run("run", {}), qrels, "ndcg@10"),
        lambda: Golden({"1": "x", "2": "y"}, qrels),
    ):
        with pytest.raises(UsageError, match=r"grade.*'2'.*'c'"):
            ask()


def test_great_grades_are_numbers():
    qrels = {"1": {"a": 1e300, "b": 1e300}}
    run = Run("run", {"1": (("a", 1.0), ("b", 0.5))})
    found = judge(run, qrels, "ndcg, ndcg_exp, map")
    assert found.means == {"ndcg": 1.0, "ndcg_exp": 1.0, "map": 1.0}
    with pytest.raises(UsageError, match="query '1' are too great"):
        judge(run, {"1": dict.fromkeys("abc", 1e308)}, "ndcg")
