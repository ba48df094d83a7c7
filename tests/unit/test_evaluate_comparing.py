"""Is one system better than another: the test, the interval, the correction and the warnings."""

from __future__ import annotations

import math
from itertools import product
from statistics import fmean, stdev

import numpy as np
import pytest

from cormorant.errors import UsageError
from cormorant.evaluate import Evaluation, Gate, Run, compare, compare_all, judge, report
from cormorant.evaluate.comparing import bootstrap_interval, holes, holm, randomisation_p

RNG = np.random.default_rng(5)


def evaluated(name, values, *, metric="ndcg@10", **run):
    """An evaluation with given values; its run answers each query with one document."""
    queries = tuple(f"q{i}" for i in range(len(values)))
    run.setdefault("rankings", dict.fromkeys(queries, (("d", 1.0),)))
    array = np.array(values, np.float64).reshape(-1, 1)
    return Evaluation(Run(name, **run), queries, (metric,), array)


# The randomisation test


def test_every_sign_assignment_is_counted_where_few_queries_moved():
    differences = [0.3, -0.1, 0.25, 0.4, 0.05, 0.0, 0.0]
    as_far = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= sum(differences) - 1e-12
        for signs in product((1, -1), repeat=len(differences))
    ]
    assert randomisation_p(differences) == sum(as_far) / len(as_far)


def test_the_estimate_is_near_the_exact_value():
    differences = RNG.normal(0.05, 0.2, 14)
    exact = randomisation_p(differences)
    # Two halves of each difference are not the same test; a fifteenth tiny one nearly is.
    estimated = randomisation_p([*differences, 1e-13], resamples=40_000)
    assert estimated == pytest.approx(exact, abs=0.01)


def test_p_depends_neither_on_the_order_nor_on_which_is_subtracted():
    differences = RNG.normal(0.05, 0.2, 60)
    p = randomisation_p(differences)
    assert randomisation_p(RNG.permutation(differences)) == p
    assert randomisation_p(-differences) == p
    assert randomisation_p(differences, seed=1) != p  # or the seed is not read


def test_no_difference_is_no_evidence():
    assert randomisation_p(np.zeros(30)) == 1.0
    assert randomisation_p(np.zeros(1)) == 1.0


def test_the_smallest_p_is_never_zero():
    assert randomisation_p(np.full(100, 0.1), resamples=999) == pytest.approx(1 / 1000)


@pytest.mark.parametrize("wrong", [[], [[0.1]], [float("nan")], [float("inf"), 1.0], ["much"], 3])
def test_what_is_no_row_of_numbers_is_refused(wrong):
    with pytest.raises(UsageError, match="number"):
        randomisation_p(wrong)
    with pytest.raises(UsageError, match="number"):
        bootstrap_interval(wrong)


# The interval


def test_the_interval_is_around_the_mean_and_narrows_with_queries():
    values = RNG.normal(0.1, 0.2, 400)
    few, many = bootstrap_interval(values[:40]), bootstrap_interval(values)
    for interval, part in ((few, values[:40]), (many, values)):
        assert (interval.low + interval.high) / 2 == pytest.approx(part.mean())
    assert many.high - many.low < 0.5 * (few.high - few.low)
    wide = bootstrap_interval(values, confidence=0.99)
    assert wide.low < many.low < many.high < wide.high


def test_the_interval_depends_on_the_values_alone():
    values = np.round(RNG.normal(0.1, 0.2, 50), 1)
    low, high = bootstrap_interval(values)
    assert bootstrap_interval(RNG.permutation(values)) == (low, high)
    assert bootstrap_interval(-values) == (-high, -low)


@pytest.mark.parametrize("confidence", [0.7, 0.8, 0.9])
def test_the_interval_is_that_of_all_draws_of_few_queries(confidence):
    values = [0.3, -0.2, 0.05, 0.4, 0.1]

    def error(given):
        return stdev(given) / math.sqrt(len(given))

    away = sorted(
        abs(fmean(draw) - fmean(values)) / error(draw) if len(set(draw)) > 1 else math.inf
        for draw in product(values, repeat=len(values))
    )
    half = away[int(confidence * len(away))] * error(values)
    low, high = bootstrap_interval(values, confidence=confidence, resamples=20_000)
    assert (low, high) == pytest.approx((fmean(values) - half, fmean(values) + half))


def test_equal_values_are_their_own_interval():
    assert bootstrap_interval(np.zeros(20)) == (0.0, 0.0)
    assert bootstrap_interval([0.25, 0.25]) == (0.25, 0.25)


def test_one_query_that_differs_sets_no_limits():
    assert bootstrap_interval([*[0.0] * 30, 0.5]) == (-np.inf, np.inf)


def test_a_confidence_must_be_one():
    for wrong in (0, 1, 95, -0.5):
        with pytest.raises(UsageError, match="between 0 and 1"):
            bootstrap_interval([0.1, 0.2], confidence=wrong)
    with pytest.raises(UsageError, match="2 at least"):
        bootstrap_interval([0.1])


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True])
def test_resamples_are_a_whole_number(wrong):
    for ask in (randomisation_p, bootstrap_interval):
        with pytest.raises(UsageError, match="resamples must be a whole number"):
            ask([0.1, 0.2], resamples=wrong)


# Holm


def test_holm_by_hand():
    # 4 · .005, then 3 · .01 = .03, 2 · .03 = .06, and .04 may not fall below that.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(UsageError, match="between 0 and 1"):
        holm([1.5])


# Comparisons


def test_a_comparison_counts_wins_ties_and_losses_and_names_what_moved():
    a = evaluated("a", [0.5, 0.5, 0.5, 0.5])
    b = evaluated("b", [0.5, 0.9, 0.4, 0.5 + 1e-13])
    found = compare(a, b, "ndcg@10")
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)
    assert found.difference == pytest.approx(0.075)
    assert [(m.query, round(m.difference, 3)) for m in found.moved()] == [("q1", 0.4), ("q2", -0.1)]
    assert len(found.moved(1)) == 1
    assert found.verdict == "no significant difference"
    assert "By ndcg@10 only 2 of 4 queries moved from a to b" in " ".join(found.warnings)


def test_lower_is_better_for_unjudged_documents():
    a = evaluated("a", [0.5] * 20, metric="unjudged@10")
    b = evaluated("b", [0.1] * 20, metric="unjudged@10")
    found = compare(a, b, "unjudged@10")
    assert (found.verdict, found.wins, found.losses) == ("better", 20, 0)
    assert compare(b, a, "unjudged@10").verdict == "worse"


def test_queries_in_another_order_are_matched_by_id():
    a = evaluated("a", [0.1, 0.2, 0.3])
    b = Evaluation(a.run, ("q2", "q0", "q1"), a.metrics, np.array([[0.3], [0.1], [0.2]]))
    assert not compare(a, b, "ndcg@10").differences.any()


def test_what_cannot_be_compared_is_refused():
    a = evaluated("a", [0.1, 0.2, 0.3])
    with pytest.raises(UsageError, match="not the same: 'q3'"):
        compare(a, evaluated("b", [0.1, 0.2, 0.3, 0.4]), "ndcg@10")
    with pytest.raises(UsageError, match="not judged by 'map'"):
        compare(a, a, "map")
    run = Run("r", {"1": (("a", 1.0),), "2": (("a", 1.0),)})
    one, other = ({"1": {"a": g}, "2": {"a": 1}} for g in (1, 0))
    with pytest.raises(UsageError, match="different judgements"):
        compare(judge(run, one, "mrr"), judge(run, other, "mrr"), "mrr")
    with pytest.raises(UsageError, match="systems is empty"):
        compare_all(a, [], "ndcg@10")


def test_several_systems_are_corrected_for_together():
    base = RNG.uniform(0.2, 0.6, 60)
    systems = [
        evaluated(f"s{i}", np.clip(base + RNG.normal(shift, 0.1, 60), 0, 1))
        for i, shift in enumerate((0.1, 0.02, 0.0))
    ]
    together = compare_all(evaluated("base", base), systems, "ndcg@10")
    alone = [compare(evaluated("base", base), each, "ndcg@10") for each in systems]
    assert [c.p for c in together] == [c.p for c in alone]
    assert [c.p_adjusted for c in together] == holm([c.p for c in alone])
    assert [c.interval for c in together] == [c.interval for c in alone]
    assert together[0].verdict == "better"
    assert together[0].says.startswith("s0 is better than base: ndcg@10 ")
    assert "by Holm over 3" in together[0].says


def test_what_makes_a_comparison_doubtful_is_said():
    queries = {f"q{i}": {"r": 1} for i in range(12)}
    good = dict.fromkeys(queries, (("r", 2.0), ("x", 1.0)))
    first = Run("first", good, degraded={"q3": ("searched by text alone",)})
    second = Run(
        "second",
        {q: hits for q, hits in good.items() if q not in {"q0", "q1"}},
        failed={"q0": "TimeoutError: late"},
    )
    found = compare(judge(first, queries, "mrr"), judge(second, queries, "mrr"), "mrr")
    said = " ".join(found.warnings)
    assert "second failed at 1 queries: 'q0'" in said
    assert "second was not asked 1 of the queries" in said
    assert "first answered 1 queries in a lesser way: searched by text alone" in said
    assert "rests on little" in said


def test_a_run_that_was_cut_off_earlier_is_noticed():
    qrels = {f"q{i}": {"d7": 1} for i in range(20)}
    deep = {q: tuple((f"d{i}", 10.0 - i) for i in range(10)) for q in qrels}
    cut = {q: hits[:5] for q, hits in deep.items()}
    ragged = {q: hits[: 1 + i % 9] for i, (q, hits) in enumerate(deep.items())}
    judged = {
        name: judge(Run(name, r), qrels, "ndcg@10,ndcg@5,map")
        for name, r in (("deep", deep), ("cut", cut), ("ragged", ragged))
    }

    def warned(metric, other):
        pairs = ((judged["deep"], judged[other]), (judged[other], judged["deep"]))
        return {any("end after" in w for w in compare(a, b, metric).warnings) for a, b in pairs}

    assert warned("ndcg@10", "cut") == warned("map", "cut") == {True}
    assert warned("ndcg@5", "cut") == {False}
    assert warned("ndcg@10", "ragged") == {False}  # a threshold, say: no common end
    told = [judge(Run(n, r, {"k": 10}), qrels, "map") for n, r in (("deep", deep), ("cut", cut))]
    assert not any("end after" in w for w in compare(*told, "map").warnings)  # there were no more


def test_judgement_holes_are_told_from_relevance():
    qrels = {f"q{i}": {"r": 1, **{f"n{j}": 0 for j in range(5)}} for i in range(30)}
    ranked = {
        "pooled": ("n0", "n1", "n2", "n3", "n4"),
        "found more": ("r", "n0", "n1", "n2", "n3"),
        "unpooled": ("r", "u0", "u1", "u2", "u3"),
    }
    judged = {
        name: judge(
            Run(name, {q: tuple((d, float(-i)) for i, d in enumerate(docs)) for q in qrels}),
            qrels,
            "ndcg@5",
        )
        for name, docs in ranked.items()
    }
    same = compare(judged["pooled"], judged["found more"], "ndcg@5")
    assert (same.holes.baseline, same.holes.system, same.holes.uneven) == (0.0, 0.0, False)
    holed = compare(judged["pooled"], judged["unpooled"], "ndcg@5")
    assert holed.holes.system == pytest.approx(0.8)
    assert holed.holes.uneven
    assert any("unpooled may be better than it looks" in w for w in holed.warnings)
    # Returning nothing where the other returns what nobody judged is no hole of the other.
    silent = Run("silent", {q: () if i % 2 else (("r", 1.0),) for i, q in enumerate(qrels)})
    assert not holes(judged["unpooled"], judge(silent, qrels, "ndcg@5"), 5).uneven
    # With relevant documents alone judged, more of them found is all there is to see.
    sparse = {q: {"r": 1} for q in qrels}
    again = [judge(judged[n].run, sparse, "ndcg@5") for n in ("pooled", "found more")]
    found = holes(*again, 5)
    assert (found.baseline, found.system, found.uneven) == (1.0, pytest.approx(0.8), False)


def test_fewer_relevant_documents_alone_are_no_hole():
    # One finds nothing relevant, so more of what it returns is unjudged; but of what the
    # other returns beside the relevant ones nothing at all is judged.
    qrels = {
        f"q{i}": {**{f"r{j}": 1 for j in range(8)}, **{f"n{j}": 0 for j in range(5)}}
        for i in range(20)
    }
    ranked = {
        "good": [*(f"r{j}" for j in range(8)), "u0", "u1"],
        "poor": [*(f"n{j}" for j in range(5)), *(f"u{j}" for j in range(5))],
    }
    good, poor = (
        judge(
            Run(name, {q: tuple((d, float(-i)) for i, d in enumerate(docs)) for q in qrels}),
            qrels,
            "ndcg@10",
        )
        for name, docs in ranked.items()
    )
    for one, other in ((good, poor), (poor, good)):
        assert not holes(one, other, 10).uneven


def test_without_judgements_holes_are_said_to_be_unknown():
    found = compare(evaluated("a", [0.1, 0.4]), evaluated("b", [0.2, 0.3]), "ndcg@10")
    assert found.holes is None
    assert any("were not looked for" in w for w in found.warnings)


def test_an_interval_of_a_difference_stays_within_what_a_metric_can_differ():
    found = compare(evaluated("a", [0.0] * 30), evaluated("b", [*[0.0] * 29, 1.0]), "ndcg@10")
    assert found.interval == (-1.0, 1.0)


def test_runs_that_nobody_judged_are_refused_by_what_compares():
    run = Run("a", {"q": (("d", 1.0),)})
    judged = judge(run, {"q": {"d": 1}}, "mrr")
    for call in (
        lambda: compare(run, judged, "mrr"),
        lambda: compare(judged, run, "mrr"),
        lambda: compare_all(run, [judged], "mrr"),
        lambda: report(judged, [run]),
        lambda: Gate.parse("mrr>=0.5").check(run),
        lambda: compare(run, run, "mrr"),
    ):
        with pytest.raises(UsageError, match="Judge the run first"):
            call()
