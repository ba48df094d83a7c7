"""Questions that rise and fall together count once: groups, their test and their interval."""

from __future__ import annotations

import numpy as np
import pytest

import cormorant
from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate import (
    Evaluation,
    Point,
    Run,
    by_field,
    calibrate,
    compare,
    compare_all,
    judge,
    read_groups,
    tune,
)
from cormorant.evaluate import report as reported
from cormorant.evaluate.comparing import bootstrap_interval, randomisation_p
from cormorant.evaluate.groups import by_records, grouping
from cormorant.evaluate.splitting import split
from cormorant.evaluate.tuning import AS_SET
from cormorant.evaluate.tuning.choosing import choose, cross_validate


def evaluated(values, name="a"):
    queries = tuple(f"q{i}" for i in range(len(values)))
    run = Run(name, dict.fromkeys(queries, (("d", 1.0),)))
    return Evaluation(run, queries, ("ndcg@10",), np.asarray(values, float).reshape(-1, 1))


def fives(count):
    return {f"q{i}": str(i // 5) for i in range(count)}


def test_paraphrases_do_not_make_equal_systems_differ():
    """Five of each of 20 questions: by query the rate is far above .05, by groups it holds."""
    rng = np.random.default_rng(5)
    pairs, wrong, held, naive = 400, 0, 0, 0
    for seed in range(pairs):
        question = np.repeat(rng.normal(0, 0.2, 20), 5)
        apart = np.clip(question + rng.normal(0, 0.05, 100), -0.5, 0.5)
        both = evaluated(np.full(100, 0.5)), evaluated(0.5 + apart, "b")
        grouped = compare(*both, "ndcg@10", groups=fives(100), resamples=199, seed=seed)
        wrong += grouped.significant
        held += grouped.interval.low <= 0 <= grouped.interval.high
        naive += compare(*both, "ndcg@10", resamples=199, seed=seed).significant
    print(
        f"false: {wrong / pairs:.3f} by groups, {naive / pairs:.3f} by query; held {held / pairs}"
    )
    assert wrong / pairs <= 0.08  # .05 and two standard errors
    assert held / pairs >= 0.92
    assert naive / pairs > 0.2


def test_groups_of_unequal_size_keep_the_rate():
    rng = np.random.default_rng(6)
    sizes = np.array([1, 2, 3, 4, 5] * 6)
    groups = {f"q{i}": str(g) for i, g in enumerate(np.repeat(np.arange(30), sizes))}
    pairs, wrong, held = 1000, 0, 0
    for seed in range(pairs):
        apart = np.repeat(rng.normal(0, 0.15, 30), sizes) + rng.normal(0, 0.05, sizes.sum())
        both = evaluated(np.full(len(apart), 0.5)), evaluated(0.5 + apart, "b")
        done = compare(*both, "ndcg@10", groups=groups, resamples=199, seed=seed)
        wrong += done.significant
        held += done.interval.low <= 0 <= done.interval.high
    print(f"false {wrong / pairs:.3f}, held {held / pairs:.3f}")
    assert wrong / pairs <= 0.065  # .05 and two standard errors
    assert held / pairs >= 0.93


def test_groups_of_one_change_nothing_and_groups_of_a_size_are_their_means():
    rng = np.random.default_rng(1)
    first, second = rng.random(40), rng.random(40)
    both = evaluated(first), evaluated(second, "b")
    alone = compare(*both, "ndcg@10")
    single = compare(*both, "ndcg@10", groups={f"q{i}": str(i) for i in range(40)})
    assert (single.p, single.groups) == (alone.p, 40)
    assert single.interval == pytest.approx(alone.interval)
    grouped = compare(*both, "ndcg@10", groups=fives(40))
    means = (second - first).reshape(8, 5).mean(axis=1)
    assert grouped.p == randomisation_p(means)
    assert grouped.interval == pytest.approx(bootstrap_interval(means))
    assert grouped.difference == alone.difference
    assert "40 queries in 8 groups (" in grouped.says


def test_the_witnesses_have_the_mean_of_the_queries():
    values = np.array([0.1, 0.2, 0.9, 0.4])
    made = grouping(["q0", "q1", "q2", "q3"], {"q0": "x", "q1": "x", "q2": "x"}, {})
    assert made.count == 2
    witnesses = made.witnesses(values)
    assert witnesses.mean() == pytest.approx(values.mean())
    # Cochran's variance of the ratio of totals to sizes.
    totals, sizes = np.array([1.2, 0.4]), np.array([3, 1])
    residuals = totals - values.mean() * sizes
    expected = (residuals**2).sum() / (len(sizes) - 1) / sizes.mean() ** 2
    assert witnesses.var(ddof=1) == pytest.approx(expected)


def test_a_query_without_a_group_is_its_own_whatever_the_groups_are_called():
    made = grouping(["q0", "q1", "q2"], {"q0": "q2", "q1": "q2"}, {})
    assert made.numbers.tolist() == [0, 0, 1]


def test_records_in_common_join_through_others_and_are_called_by_the_first():
    qrels = {
        "q1": {"a": 1},
        "q2": {"b": 1},
        "q3": {"a": 1, "b": 2},
        "q4": {"c": 1, "a": 0},
        "q5": {"a": 0},
    }
    assert by_records(qrels) == {"q1": "q1", "q2": "q1", "q3": "q1", "q4": "q4"}


def test_a_metadata_field_groups_the_questions_about_a_document():
    with cormorant.open(":memory:") as store:
        store.add(
            {"id": id, "text": id, "metadata": meta}
            for id, meta in [("a1", {"doc": "a"}), ("a2", {"doc": "a"}), ("a", {}), ("b", {})]
        )
        qrels = {"1": {"a1": 1}, "2": {"a2": 1}, "3": {"a": 1}, "4": {"b": 1}, "5": {"gone": 1}}
        assert by_field(store, qrels, "doc") == {"1": "1", "2": "1", "3": "3", "4": "4", "5": "5"}
        with pytest.raises(UsageError, match="None of the 5 relevant records has"):
            by_field(store, qrels, "page")


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ("topics", "'records' or maps"),
        (["q0"], "got list"),
        ({"z": "1"}, "names none of the 10 queries"),
        ("records", "needs the judgements"),
        ({f"q{i}": "all" for i in range(10)}, "at least 2"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups, says):
    both = evaluated(np.arange(10) / 10), evaluated(np.ones(10), "b")
    with pytest.raises(UsageError, match=says):
        compare(*both, "ndcg@10", groups=groups)


def test_tables_say_how_many_groups_they_rest_on():
    qrels = {f"q{i}": {f"d{i // 5}": 1} for i in range(40)}
    a = judge(Run("a", {q: (("x", 2.0), (*g, 1.0)) for q, g in qrels.items()}), qrels, "mrr")
    b = judge(Run("b", {q: ((*g, 2.0), ("x", 1.0)) for q, g in qrels.items()}), qrels, "mrr")
    assert "Means over 40 queries in 8 groups." in reported(a, [b], groups="records").markdown()
    (done,) = compare_all(a, [b], "mrr", groups="records")
    assert done.groups == 8
    assert done.p == pytest.approx(2**-7)
    few = "only 8 of 8 groups of queries moved"
    assert any(few in warning for warning in done.warnings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.csv", "query,group\nq1,a\nq2,a\n"),
        ("g.tsv", "q1\ta\nq2\ta\n"),
        ("g.jsonl", '{"qid": "q1", "topic": "a"}\n{"qid": "q2", "topic": "a"}\n'),
    ],
)
def test_groups_are_read_from_files(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_groups(tmp_path / name) == {"q1": "a", "q2": "a"}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("g.csv", "query,group\nq1,a\nq1,b\n", "line 3.*comes twice"),
        ("g.tsv", "q1 a\n", "line 1.*qid<TAB>group"),
        ("g.jsonl", '{"query": "q1"}\n', "there is no 'group'"),
        ("g.txt", "", "Groups are kept in"),
    ],
)
def test_files_of_groups_that_say_something_else_are_refused(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(EvalFileError, match=says):
        read_groups(tmp_path / name)


def test_a_group_is_held_out_wholly_or_not_at_all():
    names = [f"q{i}" for i in range(100)]
    groups = {name: str(i // 5) for i, name in enumerate(names)}
    training, held = split(names, holdout=0.3, least=10, seed=0, groups=groups)
    assert sorted(training + held) == sorted(names)
    assert len(held) == 30
    assert not {groups[name] for name in training} & {groups[name] for name in held}
    # Names of groups do not matter, nor does the order of the names.
    renamed = {name: f"g{group}" for name, group in groups.items()}
    assert split(names[::-1], holdout=0.3, least=10, seed=0, groups=renamed) == (training, held)
    with pytest.raises(UsageError, match=r"20 groups of judged queries.*leave 14"):
        split(names, holdout=0.3, least=15, seed=0, groups=groups)


def test_folds_part_no_group_and_noise_is_that_of_groups():
    rng = np.random.default_rng(2)
    # One configuration gains .02 in each of 20 groups, give or take .1 a group: noise.
    gains = np.repeat(rng.normal(0.02, 0.1, 20), 10)
    values = np.stack([np.full(200, 0.5), 0.5 + gains])
    points = [None, Point(vector_weight=0.7)]
    among = grouping([f"q{i}" for i in range(200)], {f"q{i}": str(i // 10) for i in range(200)}, {})
    by_query, by_group = choose(values, points), choose(values, points, among)
    mean, error = gains.mean(), gains.reshape(20, 10).mean(axis=1).std(ddof=1) / 20**0.5
    assert 0 < mean <= error
    assert by_query.chosen == 1
    assert by_group.chosen == 0
    folds = cross_validate(values, points, folds=6, among=among)
    assert sum(fold.queries for fold in folds) == 200
    assert all(fold.queries % 10 == 0 for fold in folds)


def test_tuning_and_calibration_keep_groups_apart():
    with cormorant.open(":memory:", language="none") as store:
        stems = [f"{a}a{b}ind" for a in "bdfgklmp" for b in "nrstv"]
        store.add({"id": stem, "text": f"{stem}ing"} for stem in stems)
        asked = {f"{stem}{n}": f"{stem}{end}" for stem in stems for n, end in enumerate(["", "ed"])}
        qrels = {name: {name[:-1]: 1} for name in asked}
        tuned = tune(store, asked, qrels, space={"language": ["english"]}, groups="records")
        assert tuned.evidence["groups"] == 40
        held = tuned.held_out[AS_SET].queries
        assert {f"{name[:-1]}{n}" for name in held for n in range(2)} == set(held)
        assert tuned.comparison.groups == len(held) // 2
        done = calibrate(store, {n: n[:-1] + "ing" for n in asked}, qrels, groups="records")
        assert done.calibration.evidence["groups"] == 40
        assert done.quality["text"].questions % 2 == 0
