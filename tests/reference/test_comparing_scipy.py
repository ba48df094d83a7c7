"""The randomisation test and the interval against scipy's."""

from __future__ import annotations

import numpy as np
import pytest

from cormorant.evaluate.comparing import bootstrap_interval, randomisation_p

stats = pytest.importorskip("scipy.stats", reason="scipy comes with the development extra")


@pytest.mark.parametrize("n", [2, 7, 12])
def test_p_is_that_of_a_permutation_test_of_paired_samples(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        # Eighths: many sums tie, and all are exact.
        differences = np.round(rng.normal(0.1, 0.3, n) * 8) / 8
        theirs = stats.permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            n_resamples=np.inf,
        )
        # Theirs is twice the smaller tail; the distribution is symmetric.
        assert randomisation_p(differences) == pytest.approx(min(theirs.pvalue, 1.0), abs=1e-12)


def test_the_estimated_p_is_near_the_t_tests_for_normal_differences():
    rng = np.random.default_rng(4)
    for shift in (0.0, 0.02, 0.05):
        differences = rng.normal(shift, 0.2, 300)
        theirs = stats.ttest_1samp(differences, 0).pvalue
        assert randomisation_p(differences, resamples=50_000) == pytest.approx(theirs, abs=0.02)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_interval_is_near_the_t_interval_for_normal_values(confidence):
    values = np.random.default_rng(6).normal(0.1, 0.2, 200)
    half = stats.t.ppf((1 + confidence) / 2, 199) * values.std(ddof=1) / np.sqrt(200)
    low, high = bootstrap_interval(values, confidence=confidence, resamples=50_000)
    assert (high - low) / 2 == pytest.approx(half, rel=0.03)
