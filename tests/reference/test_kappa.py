"""Cohen's kappa against a worked example and scikit-learn's formula; its interval's coverage."""

from __future__ import annotations

import numpy as np
import pytest

from cormorant.evaluate.judgements import agreement, cohen_kappa


def spelled_out(counts):
    """A table of counts as two lists."""
    pairs = [(i, j) for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def by_scikit_learn(counts, weights):
    """Its formula, on a table of counts: sklearn.metrics.cohen_kappa_score."""
    counts = np.asarray(counts, dtype=float)
    n = len(counts)
    expected = np.outer(counts.sum(axis=0), counts.sum(axis=1)) / counts.sum()
    if weights is None:
        w = 1 - np.eye(n)
    else:
        w = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :]).astype(float)
        if weights == "quadratic":
            w **= 2
    return 1 - np.sum(w * counts) / np.sum(w * expected.T)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_random_tables_give_what_scikit_learns_formula_gives(weights):
    rng = np.random.default_rng(5)
    for _ in range(300):
        size = int(rng.integers(2, 6))
        counts = rng.integers(0, 7, (size, size))
        counts[np.arange(size), np.arange(size)] += 1  # every grade occurs: places are grades
        expected = by_scikit_learn(counts, weights)
        assert cohen_kappa(*spelled_out(counts), weights=weights) == pytest.approx(
            expected, abs=1e-12
        )


def test_the_textbook_example_of_two_readers():
    """Fifty proposals, two readers: 20 both yes, 15 both no, 5 and 10 apart; kappa is .4."""
    assert cohen_kappa(*spelled_out([[20, 5], [10, 15]])) == pytest.approx(0.4)


def test_the_interval_covers_as_stated():
    """Of 400 samples from one table, the interval holds its kappa in about 95 of 100."""
    rng = np.random.default_rng(0)
    shares = np.array([[0.3, 0.1], [0.1, 0.5]])
    true = by_scikit_learn(shares * 1e6, None)
    held = 0
    for seed in range(400):
        counts = rng.multinomial(150, shares.ravel()).reshape(2, 2)
        found = agreement(*spelled_out(counts), resamples=500, seed=seed)
        held += found.interval.low <= true <= found.interval.high
    assert 0.92 <= held / 400 <= 0.985


def test_judgements_of_one_query_are_not_independent():
    """The same things in few groups: the interval by groups is wider than by single things."""
    rng = np.random.default_rng(1)
    ours, theirs, groups = [], [], []
    for query in range(20):
        good = rng.random() < 0.6  # a query is judged alike by both throughout, or by chance
        for _ in range(10):
            first = int(rng.integers(2))
            ours.append(first)
            theirs.append(first if good else int(rng.integers(2)))
            groups.append(query)
    by_group = agreement(ours, theirs, groups=groups).interval
    by_thing = agreement(ours, theirs).interval
    assert by_group.high - by_group.low > 1.5 * (by_thing.high - by_thing.low)
