"""MMR picks what langchain-core's picks, and breaks ties by the order of candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from cormorant.search import pick_diverse


def picks(query, vectors, mmr_lambda, k):
    return pick_diverse(
        np.asarray(query), np.asarray(vectors), mmr_lambda=mmr_lambda, k=k
    ).positions.tolist()


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(2, 24),
    st.floats(0, 1),
    st.integers(1, 50),
    st.sampled_from([np.float32, np.float64]),
)
def test_same_picks_as_langchain_core(seed, n, dim, mmr_lambda, k, dtype):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, dim)).astype(dtype)
    query = rng.standard_normal(dim).astype(dtype)
    wanted = maximal_marginal_relevance(query.astype(float), vectors.tolist(), mmr_lambda, k)
    assert picks(query, vectors, mmr_lambda, k) == wanted


def test_langchain_cores_own_cases():
    query = np.array([1.0, 0.0])
    zero, one = [1.0, 0.0], [0.0, 1.0]
    assert picks(query, [zero, one], 0.5, 2) == maximal_marginal_relevance(
        query, [zero, one], 0.5, 2
    )
    angles = np.deg2rad([0, 20, 25, 80])
    fan = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for mmr_lambda in (0.0, 25 / 71, 0.5, 0.7, 1.0):
        wanted = maximal_marginal_relevance(query, fan.tolist(), mmr_lambda, 3)
        assert picks(query, fan, mmr_lambda, 3) == wanted


def test_a_tie_goes_to_the_earlier_candidate_whatever_the_rounding():
    rng = np.random.default_rng(1)
    row = rng.standard_normal(77)
    for copies in (2, 3, 9, 33):
        same = np.tile(row, (copies, 1))
        assert picks(row, same, 0.5, copies) == list(range(copies))
        assert picks(row * 1e-3, same * np.arange(1, copies + 1)[:, None], 0.3, 3) == list(
            range(min(3, copies))
        )


def test_relevance_alone_is_the_ranking_by_cosine():
    rng = np.random.default_rng(2)
    vectors, query = rng.standard_normal((30, 5)), rng.standard_normal(5)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
    assert picks(query, vectors, 1.0, 30) == np.argsort(-cosines).tolist()


def test_vectors_of_zeros_are_like_nothing():
    assert picks([1.0, 0.0], [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], 0.5, 3) == [1, 0, 2]
    assert picks([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], 0.5, 2) == [0, 1]


def test_none_of_none():
    assert picks([1.0, 0.0], np.empty((0, 2)), 0.5, 4) == []


def test_what_was_passed_over_says_for_whom():
    found = pick_diverse(
        np.array([1.0, 0.0]),
        np.array([[1.0, 0.0], [0.99, 0.01], [0.5, 0.9]]),
        mmr_lambda=0.3,
        k=2,
    )
    assert found.positions.tolist() == [0, 2]
    assert found.nearest.tolist() == [-1, 0, 0]
    assert found.values[0] == pytest.approx(1.0)
    assert found.passed_over[1] == pytest.approx(0.3 * 0.99995 - 0.7 * 0.99995, abs=1e-4)
