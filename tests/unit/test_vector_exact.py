"""The exact scan is exact: whatever the metric, the mask, the size of its blocks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.index.contract import VectorIndex
from cormorant.index.vector import ExactIndex, check_vector, check_vectors, exact, relevance, scores

METRICS = ("cosine", "dot", "euclidean")


def by_definition(query, rows, metric):
    """In float64, the textbook way."""
    query, rows = query.astype(np.float64), rows.astype(np.float64)
    if metric == "euclidean":
        return -np.sqrt(((rows - query) ** 2).sum(axis=1))
    return (rows * query).sum(axis=1)


@st.composite
def worlds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, dim = draw(st.integers(0, 60)), draw(st.integers(1, 9))
    metric = draw(st.sampled_from(METRICS))
    # Few distinct rows, so that equal vectors stand in many slots.
    rows = rng.integers(-3, 4, (max(n // 2, 1), dim)) + 0.5
    vectors = check_vectors(rows[rng.integers(0, len(rows), n)], dim=None, metric=metric)
    vectors = vectors if n else np.empty((0, dim), dtype=np.float32)
    has = rng.random(n) < draw(st.sampled_from([0.5, 1.0, 1.0]))
    mask = draw(st.sampled_from([None, 0.05, 0.5, 1.0]))
    mask = None if mask is None else rng.random(n) < mask
    query = check_vector(rng.standard_normal(dim), dim=dim, metric=metric)
    return vectors, metric, has, mask, query, draw(st.integers(1, 70))


@settings(max_examples=200, deadline=None)
@given(worlds(), st.sampled_from([1, 64, 1 << 20]))
def test_search_is_sorting_all_scores(world, block_bytes):
    vectors, metric, has, mask, query, k = world
    index: VectorIndex = ExactIndex(vectors, metric, has)
    held, exact.BLOCK_BYTES = exact.BLOCK_BYTES, block_bytes
    try:
        found = index.search(query, k, mask)
        everything = index.score(query, np.arange(len(vectors)))
    finally:
        exact.BLOCK_BYTES = held
    eligible = np.flatnonzero(has if mask is None else has & mask)
    wanted = sorted(eligible.tolist(), key=lambda slot: (-everything[slot], slot))[:k]
    assert found.slots.tolist() == wanted
    assert found.slots.dtype == np.int64
    assert found.scores.dtype == np.float32
    assert found.scores.tolist() == everything[wanted].tolist()
    assert np.isneginf(everything[~has]).all()
    true = by_definition(query, vectors, metric)[has]
    assert everything[has] == pytest.approx(true, rel=1e-5, abs=1e-5)
    assert found.exact
    assert found.matched == len(eligible) == found.counters["rows_eligible"]
    assert found.counters["rows_scanned"] >= len(eligible)


def test_a_score_has_the_same_bits_wherever_the_row_stands():
    rng = np.random.default_rng(3)
    for metric in METRICS:
        for dim in (1, 7, 33, 384, 1000):
            row = check_vector(rng.standard_normal(dim), dim=dim, metric=metric)
            query = check_vector(rng.standard_normal(dim), dim=dim, metric=metric)
            others = check_vectors(rng.standard_normal((50, dim)), dim=dim, metric=metric)
            alone = scores(query, row[None, :], metric)[0]
            for at in (0, 1, 17, 49):
                others[at] = row
                assert scores(query, others, metric)[at] == alone
                assert scores(query, others[at:], metric)[0] == alone


def test_equal_vectors_come_in_the_order_they_were_added():
    vectors = check_vectors([[1, 2, 3]] * 50, dim=3, metric="cosine")
    index = ExactIndex(vectors, "cosine")
    query = check_vector([3, 1, 2], dim=3, metric="cosine")
    assert index.search(query, 7, None).slots.tolist() == list(range(7))
    mask = np.arange(50) % 3 == 1
    assert index.search(query, 4, mask).slots.tolist() == [1, 4, 7, 10]


def test_distances_far_from_zero_do_not_cancel():
    far = np.array([[1e4, 1e4], [1e4, 1e4 + 0.01], [1e4 + 1, 1e4]])
    index = ExactIndex(check_vectors(far, dim=2, metric="euclidean"), "euclidean")
    found = index.search(check_vector([1e4, 1e4], dim=2, metric="euclidean"), 3, None)
    assert found.slots.tolist() == [0, 1, 2]
    assert found.scores == pytest.approx([0.0, -0.00976562, -1.0])


def test_more_than_there_are_is_all_there_are():
    index = ExactIndex(np.eye(3, dtype=np.float32), "dot")
    query = np.array([0, 2, 1], dtype=np.float32)
    assert index.search(query, 10**9, None).slots.tolist() == [1, 2, 0]
    assert index.search(query, 5, np.zeros(3, dtype=np.bool_)).slots.tolist() == []
    empty = ExactIndex(np.empty((0, 3), dtype=np.float32), "dot")
    assert empty.search(query, 5, None).slots.tolist() == []


def test_a_read_only_map_is_searched_in_place(tmp_path):
    rows = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="r", shape=(100, 8))
    for mask in (None, np.arange(100) % 2 == 0, np.arange(100) == 5):
        wanted = ExactIndex(rows, "dot").search(rows[5], 9, mask)
        found = ExactIndex(mapped, "dot").search(rows[5], 9, mask)
        assert found.slots.tolist() == wanted.slots.tolist()
        assert found.scores.tolist() == wanted.scores.tolist()


def test_a_sparse_filter_looks_at_its_own_rows_alone():
    index = ExactIndex(np.ones((10_000, 4), dtype=np.float32), "dot")
    sparse = np.zeros(10_000, dtype=np.bool_)
    sparse[::100] = True
    found = index.search(np.ones(4, dtype=np.float32), 5, sparse)
    assert found.counters == {"rows_scanned": 100, "rows_eligible": 100}
    dense = ~sparse
    assert index.search(np.ones(4, dtype=np.float32), 5, dense).counters["rows_scanned"] > 9_900
    together = np.zeros(10_000, dtype=np.bool_)
    together[3000:5000] = True
    found = index.search(np.ones(4, dtype=np.float32), 5, together)
    assert found.counters == {"rows_scanned": 2000, "rows_eligible": 2000}


@pytest.mark.parametrize(
    ("metric", "given", "wanted"),
    [
        ("cosine", [1.0000001, 1, 0.5, 0, -0.3, -np.inf], [1, 1, 0.5, 0, 0, 0]),
        ("dot", [0, 1000, -1000, np.log(3), -np.inf], [0.5, 1, 0, 0.75, 0]),
        ("euclidean", [0, -1, -3, -1e30, -np.inf], [1, 0.5, 0.25, 0, 0]),
    ],
)
def test_relevance_by_hand(metric, given, wanted):
    assert relevance(np.array(given), metric) == pytest.approx(wanted, abs=1e-12)


@given(st.sampled_from(METRICS), st.lists(st.floats(-1e9, 1e9), min_size=2))
def test_relevance_keeps_the_order_and_the_range(metric, given):
    given = np.sort(np.array(given if metric != "euclidean" else [-abs(x) for x in given]))
    found = relevance(given, metric)
    assert (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_a_vector_is_wholly_relevant_to_itself():
    rng = np.random.default_rng(1)
    for dim in (2, 3, 100, 1536):
        rows = check_vectors(rng.standard_normal((50, dim)), dim=dim, metric="cosine")
        for row in rows[:5]:
            found = ExactIndex(rows, "cosine").search(row, 1, None)
            assert relevance(found.scores, "cosine").tolist() == [1.0]


def test_faiss_is_not_loaded():
    said = "import sys, cormorant.search, cormorant.index.vector; print('faiss' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
