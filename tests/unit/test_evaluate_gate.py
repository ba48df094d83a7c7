"""A gate fails when the interval says so, and never passes because it could not ask."""

from __future__ import annotations

import numpy as np
import pytest

from cormorant.errors import UsageError
from cormorant.evaluate import Gate, Run, check_gates, judge
from cormorant.evaluate.gate import exit_code

DOCS = [f"d{i}" for i in range(10)]
QRELS = {f"q{i}": {"d0": 1} for i in range(40)}


def ranked(place, docs=DOCS):
    """The relevant document at a place, from 1; the others around it."""
    others = docs[1:]
    order = [*others[: place - 1], docs[0], *others[place - 1 :]]
    return tuple((doc, float(-rank)) for rank, doc in enumerate(order))


def run(name="run", *, worse=0, better=0, place=2, **more):
    """The relevant document second everywhere but in some queries: fifth, or first."""
    places = [5] * worse + [1] * better + [place] * (len(QRELS) - worse - better)
    rankings = dict(zip(QRELS, map(ranked, places), strict=True))
    return Run(name, rankings, **more)


def judged(one, metric="mrr@10", qrels=QRELS):
    return judge(one, qrels, metric)


BASE = judged(run("base"))


@pytest.mark.parametrize(
    ("written", "gate"),
    [
        ("ndcg@10>=-0.01", Gate("ndcg@10", -0.01, change=True)),
        (" NDCG@10 >= +.02 ", Gate("ndcg@10", 0.02, change=True)),
        ("p@5>=0.40", Gate("precision@5", 0.4, change=False)),
        ("mrr>=+0", Gate("mrr", 0.0, change=True)),
        ("mrr>=-0", Gate("mrr", 0.0, change=True)),
        ("map>=1", Gate("map", 1.0, change=False)),
        ("unjudged@10<=0.2", Gate("unjudged@10", 0.2, change=False)),
        ("unjudged@10<=+0.05", Gate("unjudged@10", 0.05, change=True)),
    ],
)
def test_gates_as_they_are_written(written, gate):
    assert Gate.parse(written) == gate
    assert Gate.parse(str(gate)) == gate


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("ndcg@10", "is no gate"),
        ("ndcg@10>-0.01", "is no gate"),
        ("ndcg@10>=-1%", "is no gate"),
        ("", "is no gate"),
        ("ndgc@10>=0.4", "Did you mean 'ndcg'"),
        ("recall>=0.4", "needs its number of places"),
        ("ndcg@10<=0.4", "higher is better"),
        ("unjudged@10>=0.4", "lower is better"),
        ("ndcg@10>=40", "from 0 to 1"),
        ("ndcg@10>=0", "kept by every run"),
        ("unjudged@10<=1", "kept by every run"),
        ("ndcg@10>=-1", "kept by every run"),
        ("ndcg@10>=-1.0", "kept by every run"),
        ("unjudged@10<=+1", "kept by every run"),
    ],
)
def test_what_is_no_gate_is_refused(written, says):
    with pytest.raises(UsageError, match=says):
        Gate.parse(written)


# Three outcomes


def test_an_unchanged_run_passes():
    verdict = Gate.parse("mrr@10>=-0.01").check(judged(run()), BASE)
    assert verdict.outcome == "pass"
    assert verdict.interval == (0.0, 0.0)
    assert verdict.says.startswith("PASS mrr@10>=-0.01: mrr@10 changed by +0.0000")
    assert Gate.parse("mrr@10>=+0").check(judged(run()), BASE).outcome == "pass"


def test_it_fails_only_if_the_whole_interval_is_beyond_the_limit():
    worse = judged(run(worse=20))
    verdict = Gate.parse("mrr@10>=-0.01").check(worse, BASE)
    assert verdict.outcome == "fail"
    assert verdict.interval.high < -0.01
    assert verdict.comparison.verdict == "worse"
    assert exit_code([verdict]) == 1
    # The same fall is allowed by a wider limit, and by none in between is it told.
    assert Gate.parse("mrr@10>=-0.5").check(worse, BASE).outcome == "pass"
    assert Gate.parse("mrr@10>=-0.15").check(worse, BASE).outcome == "cannot tell"


def test_a_fall_that_may_be_chance_is_not_called_a_failure_nor_a_pass():
    verdict = Gate.parse("mrr@10>=-0.01").check(judged(run(worse=3)), BASE)
    assert verdict.value < -0.01 < verdict.interval.high
    assert verdict.outcome == "cannot tell"
    assert verdict.says.startswith("CANNOT TELL mrr@10>=-0.01")
    assert "queries would tell" in verdict.says
    assert exit_code([verdict]) == 0
    assert exit_code([verdict], strict=True) == 1


def test_one_query_that_moved_far_tells_nothing():
    verdict = Gate.parse("mrr@10>=-0.01").check(judged(run(worse=1)), BASE)
    assert verdict.outcome == "cannot tell"
    assert verdict.interval == (-1.0, 1.0)


def test_a_rise_can_be_asked_for():
    better = judged(run(better=30))
    assert Gate.parse("mrr@10>=+0.1").check(better, BASE).outcome == "pass"
    assert Gate.parse("mrr@10>=+0.1").check(judged(run()), BASE).outcome == "fail"


def test_a_level_needs_no_baseline():
    run_ = judged(run(worse=10, better=10))
    assert Gate.parse("mrr@10>=0.2").check(run_).outcome == "pass"
    assert Gate.parse("mrr@10>=0.9").check(run_).outcome == "fail"
    assert Gate.parse("mrr@10>=0.55").check(run_).outcome == "cannot tell"
    assert Gate.parse("mrr@10>=0.55").check(run_).comparison is None
    assert Gate.parse("mrr@10>=0.5").check(judged(run())).outcome == "pass"  # all of them at it


def test_unjudged_documents_may_not_rise():
    metric = "unjudged@10"
    base = judged(run(), metric)
    strange = Run("strange", {q: ranked(2, ["d0", *"abcdefghi"]) for q in QRELS})
    full = {q: dict.fromkeys(DOCS, 0) | {"d0": 1} for q in QRELS}
    gate = Gate.parse("unjudged@10<=+0.05")
    assert gate.check(judged(strange, metric, full), judged(run(), metric, full)).outcome == "fail"
    assert gate.check(base, base).outcome == "pass"
    assert Gate.parse("unjudged@10<=0.5").check(base).outcome == "fail"


def test_several_gates_are_one_exit_code():
    gates = [Gate.parse("mrr@10>=-0.01"), Gate.parse("mrr@10>=0.99")]
    verdicts = check_gates(gates, judged(run()), BASE)
    assert [v.outcome for v in verdicts] == ["pass", "fail"]
    assert exit_code(verdicts) == 1
    assert exit_code(verdicts[:1]) == 0
    for nothing in (lambda: check_gates([], BASE, BASE), lambda: exit_code([])):
        with pytest.raises(UsageError):
            nothing()


# What cannot be asked never passes


def without(one, *queries, **more):
    return Run(one.name, {q: r for q, r in one.rankings.items() if q not in queries}, **more)


GOOD = run("good", place=1)  # better than the baseline wherever it may be asked
CANNOT = {
    "no baseline": (judged(GOOD), None, "needs the run to compare with"),
    "the run lacks queries": (judged(without(GOOD, "q3")), BASE, "no answer to 1 of 40.*'q3'"),
    "the baseline lacks queries": (
        judged(GOOD),
        judged(without(run("base"), "q3", "q4")),
        "'base' has no answer to 2 of 40",
    ),
    "queries failed": (
        judged(without(GOOD, "q3", failed={"q3": "TimeoutError: late."})),
        BASE,
        "failed at 1 of 40 queries.*TimeoutError: late",
    ),
    "queries of the baseline failed": (
        judged(GOOD),
        judged(without(run("base"), "q3", failed={"q3": "TimeoutError: late."})),
        "'base' failed at 1 of 40",
    ),
    "the run is empty": (judged(Run("none", {})), BASE, "no answer to 40 of 40"),
    "the run found nothing": (
        judged(Run("none", dict.fromkeys(QRELS, ()))),
        BASE,
        "returned no document",
    ),
    "the baseline found nothing": (
        judged(GOOD),
        judged(Run("base", dict.fromkeys(QRELS, ()))),
        "returned no document",
    ),
    "other judgements": (
        judged(GOOD, qrels=QRELS | {"q0": {"d1": 1}}),
        BASE,
        "different judgements",
    ),
    "other queries": (
        judged(without(GOOD, "q39"), qrels={q: g for q, g in QRELS.items() if q != "q39"}),
        BASE,
        "different judgements",
    ),
    "another metric": (judged(GOOD, "ndcg@10"), BASE, "not judged by 'mrr@10'"),
    "the baseline ends early": (
        judged(GOOD),
        judged(Run("base", {q: r[:1] for q, r in run().rankings.items()})),
        "end after 1 places",
    ),
    "the run ends early": (
        judged(Run("short", {q: r[:5] for q, r in GOOD.rankings.items()})),
        BASE,
        "end after 5 places",
    ),
}


@pytest.mark.parametrize("limit", [float("nan"), float("-inf"), -5, -1, 1.5, "0", None, True])
def test_limits_that_no_gate_has_are_refused(limit):
    with pytest.raises(UsageError, match="limit"):
        Gate("ndcg@10", limit, change=True)


NOTHING = {
    "nothing was judged relevant": {q: {"d0": 0} for q in QRELS},
    "the judgements are of other documents": {q: {"elsewhere": 1} for q in QRELS},
    "one query alone can move": {q: {"d0": int(q == "q0")} for q in QRELS},
    "five queries alone can move": {q: {"d0": int(q in set(list(QRELS)[:5]))} for q in QRELS},
}


@pytest.mark.parametrize("case", NOTHING)
@pytest.mark.parametrize("metric", ["mrr@10", "ndcg@10", "map"])
def test_judgements_that_no_run_could_fall_by_are_an_error(case, metric):
    qrels = NOTHING[case]
    both = [judged(each, metric, qrels) for each in (run(), run("base"))]
    with pytest.raises(UsageError, match="cannot be asked"):
        Gate.parse(f"{metric}>=-0.01").check(*both)


def test_unjudged_documents_that_could_not_rise_are_an_error():
    qrels = {q: {"elsewhere": 1} for q in QRELS}
    both = [judged(each, "unjudged@10", qrels) for each in (run(), run("base"))]
    with pytest.raises(UsageError, match="cannot be asked"):
        Gate.parse("unjudged@10<=+0.05").check(*both)


def test_a_run_may_rise_from_nothing():
    nowhere = Run("base", {q: ranked(1)[1:] for q in QRELS})
    after = Run("run", {q: ranked(1)[:9] for q in QRELS})
    assert Gate.parse("mrr@10>=+0.1").check(judged(after), judged(nowhere)).outcome == "pass"


def test_a_verdict_says_how_many_queries_could_not_move():
    qrels = {q: {"d0": int(place < 10)} for place, q in enumerate(QRELS)}
    both = [judged(each, qrels=qrels) for each in (run(), run("base"))]
    assert "30 more have nothing judged relevant" in (Gate.parse("mrr@10>=-0.01").check(*both).says)
    assert "have nothing judged relevant" not in Gate.parse("mrr@10>=0.1").check(judged(run())).says


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_be_asked_is_an_error(case):
    current, baseline, says = CANNOT[case]
    with pytest.raises(UsageError, match=says):
        check_gates([Gate.parse("mrr@10>=-0.01")], current, baseline)


@pytest.mark.parametrize("case", [c for c in CANNOT if c.startswith(("the run l", "queries f"))])
def test_a_level_asks_the_same_of_its_run(case):
    current, _, says = CANNOT[case]
    with pytest.raises(UsageError, match=says):
        Gate.parse("mrr@10>=0.01").check(current)


def test_judgements_that_are_not_known_cannot_be_compared():
    from dataclasses import replace

    with pytest.raises(UsageError, match="not known by which judgements"):
        Gate.parse("mrr@10>=-0.01").check(replace(judged(run()), qrels={}), BASE)


@pytest.mark.parametrize(("confidence", "least"), [(0.95, 6), (0.99, 8), (0.5, 2)])
def test_too_few_queries_for_any_answer_are_refused(confidence, least):
    def asked(count):
        qrels = dict(list(QRELS.items())[:count])
        gate = Gate.parse("mrr@10>=-0.01")
        both = (judged(each, qrels=qrels) for each in (run(), run("base")))
        return gate.check(*both, confidence=confidence)

    assert asked(least).outcome == "pass"
    with pytest.raises(UsageError, match=f"needs {least} at least"):
        asked(least - 1)


def test_a_run_at_the_limit_fails_no_more_often_than_stated():
    """Runs whose true change is the limit fail with (1 - confidence) / 2."""
    from dataclasses import replace

    rng = np.random.default_rng(3)
    n = len(QRELS)
    gate = Gate.parse("mrr@10>=-0.05")
    base = replace(BASE, values=np.full((n, 1), 0.5))
    fails = 0
    for _ in range(200):
        values = 0.5 + rng.normal(-0.05, 0.2, (n, 1))
        fails += gate.check(replace(BASE, values=values), base).outcome == "fail"
    print(f"failures at the limit: {fails / 200:.3f}")
    assert fails / 200 <= 0.05


# What could hide a loss


def diluted(extra, relevant):
    """The queries of QRELS and more of them, which no run changes."""
    more = {f"x{i}": {"d0": relevant} for i in range(extra)}
    qrels = QRELS | more
    worse = dict(run(worse=20).rankings) | dict.fromkeys(more, ranked(1))
    base = dict(run("base").rankings) | dict.fromkeys(more, ranked(1))
    return judged(Run("run", worse), qrels=qrels), judged(Run("base", base), qrels=qrels)


def test_queries_without_anything_relevant_hide_no_loss():
    gate = Gate.parse("mrr@10>=-0.01")
    verdict = gate.check(*diluted(2000, 0))
    alone = gate.check(judged(run(worse=20)), BASE)
    assert (verdict.outcome, verdict.value, verdict.interval, verdict.queries) == (
        "fail",
        alone.value,
        alone.interval,
        40,
    )
    assert "2000 more have nothing judged relevant" in verdict.says


def test_queries_that_did_not_change_are_told_beside_those_that_did():
    verdict = Gate.parse("mrr@10>=-0.01").check(*diluted(2000, 1))
    assert verdict.outcome == "pass"
    assert "0 better, 2020 equal, 20 worse." in verdict.says
    assert "It is worse all the same (p = 0.000" in verdict.says


def test_queries_that_only_one_run_has_are_told():
    more = Run("base", run().rankings | {"hard": ranked(1)})
    says = Gate.parse("mrr@10>=-0.01").check(judged(run()), judged(more)).says
    assert "1 queries that only base was asked are not judged here: 'hard'." in says
    assert "only" not in Gate.parse("mrr@10>=-0.01").check(judged(more), judged(more)).says


def lesser(name, queries):
    return run(name, degraded=dict.fromkeys(queries, ("searched by text alone",)))


def test_a_run_that_alone_was_degraded_everywhere_is_refused():
    bad, good = judged(lesser("bad", QRELS)), judged(run("good"))
    gate = Gate.parse("mrr@10>=-0.01")
    for pair in ((bad, good), (good, bad)):
        with pytest.raises(UsageError, match=r"'bad' answered every query in a lesser way"):
            gate.check(*pair)


@pytest.mark.parametrize("gate", ["mrr@10>=-0.01", "mrr@10>=0.1"])
def test_degraded_answers_are_told(gate):
    some = judged(lesser("some", list(QRELS)[:3]))
    says = Gate.parse(gate).check(some, BASE).says
    assert "some answered 3 of 40 queries in a lesser way: searched by text alone" in says
    both = [judged(lesser(name, QRELS)) for name in ("one", "two")]
    assert "one answered 40 of 40 queries in a lesser way" in Gate.parse(gate).check(*both).says


# Groups


def test_a_gate_by_groups_is_less_sure():
    gate = Gate.parse("mrr@10>=-0.01")
    worse = judged(run(worse=20))
    by_fives = {query: str(place // 5) for place, query in enumerate(QRELS)}
    apart = gate.check(worse, BASE)
    grouped = gate.check(worse, BASE, groups=by_fives)
    assert apart.outcome == "fail"
    assert grouped.value == apart.value
    assert grouped.interval.high > apart.interval.high
    assert "over 40 queries in 8 groups." in grouped.says
    level = Gate.parse("mrr@10>=0.1").check(worse, groups=by_fives)
    assert "over 40 queries in 8 groups." in level.says


@pytest.mark.parametrize("gate", ["mrr@10>=-0.01", "mrr@10>=0.1"])
def test_too_few_groups_are_refused(gate):
    groups = {query: str(place // 8) for place, query in enumerate(QRELS)}
    with pytest.raises(UsageError, match="40 queries are in 5 groups, and 6 at least"):
        Gate.parse(gate).check(judged(run()), BASE, groups=groups)
    with pytest.raises(UsageError, match="40 queries are in one group"):
        Gate.parse(gate).check(judged(run()), BASE, groups="records")
