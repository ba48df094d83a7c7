"""Comparisons and diffs of whatever comes."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.evaluate import Run
from cormorant.evaluate.comparing import bootstrap_interval, holm, randomisation_p
from cormorant.evaluate.diffing import diff

values = st.lists(st.floats(-1, 1).map(lambda x: round(x, 2)), min_size=2, max_size=40)
ids = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)


@settings(max_examples=60, deadline=None)
@given(values)
def test_p_and_interval_of_any_differences(differences):
    p = randomisation_p(differences, resamples=99)
    assert 0 < p <= 1
    assert randomisation_p([-d for d in reversed(differences)], resamples=99) == p
    low, high = bootstrap_interval(differences, resamples=99)
    mean = math.fsum(differences) / len(differences)
    assert low - 1e-12 <= mean <= high + 1e-12
    assert bootstrap_interval([-d for d in reversed(differences)], resamples=99) == (-high, -low)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_between_none_and_bonferroni_and_keeps_the_order(given_p):
    adjusted = holm(given_p)
    for p, q in zip(given_p, adjusted, strict=True):
        assert p <= q <= min(1.0, p * len(given_p))
    order = sorted(range(len(given_p)), key=given_p.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)


@given(ids, ids, st.integers(1, 12))
def test_a_diff_says_all_that_changed(before, after, k):
    runs = [
        Run(name, {"q": tuple((doc, float(-i)) for i, doc in enumerate(docs))})
        for name, docs in (("before", before), ("after", after))
    ]
    found = diff(*runs, k=k)
    if before[:k] == after[:k]:
        assert found.same
        return
    (one,) = found.changed
    assert {c.id for c in one.entered} == set(after[:k]) - set(before[:k])
    assert {c.id for c in one.left} == set(before[:k]) - set(after[:k])
    kept = {doc for i, doc in enumerate(before[:k]) if after[:k][i : i + 1] == [doc]}
    assert {c.id for c in one.moved} == set(before[:k]) & set(after[:k]) - kept
    assert one.same == len(kept)
    for change in one.changes:
        assert change.before == (before.index(change.id) + 1 if change.id in before else None)
        assert change.after == (after.index(change.id) + 1 if change.id in after else None)
