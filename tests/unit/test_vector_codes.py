"""Codes: what they find, what they refuse, and that they come back from a file as they were."""

from __future__ import annotations

import numpy as np
import pytest

from cormorant.index.vector import Coded, ExactIndex, PqIndex, grow, learn, nearest, normalise
from cormorant.index.vector.codebook import train_codebook
from cormorant.index.vector.fastscan import FastScan

N, DIM = 6000, 32


def clustered(n=N, dim=DIM, seed=0, metric="cosine"):
    """Points round the same 60 centres; another seed, other points."""
    centres = np.random.default_rng(99).standard_normal((60, dim))
    rng = np.random.default_rng(seed)
    made = centres[rng.integers(0, 60, n)] + 0.6 * rng.standard_normal((n, dim))
    return normalise(made.astype(np.float32), metric)


@pytest.fixture(scope="module")
def vectors():
    return clustered()


@pytest.fixture(scope="module")
def coded(vectors):
    found = learn(vectors, np.arange(N), "cosine", target=0.95)
    assert found is not None
    return found


def recall(index, vectors, asked, k, metric, mask=None):
    slots = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    true = nearest(vectors, slots, asked, k, metric)
    found = [index.search(point, k, mask).slots for point in asked]
    return float(np.mean([np.isin(t, f).mean() for t, f in zip(true, found, strict=True)]))


def test_what_was_measured_holds_on_other_questions(vectors, coded):
    asked = clustered(100, seed=1)
    assert recall(PqIndex(coded, vectors, "cosine"), vectors, asked, 10, "cosine") >= 0.93
    assert coded.recall >= coded.target == 0.95


@pytest.mark.parametrize("metric", ["dot", "euclidean"])
def test_other_metrics_on_vectors_that_are_not_normalised(metric):
    made = clustered(metric=metric) * np.linspace(0.8, 1.2, N, dtype=np.float32)[:, None]
    found = learn(made, np.arange(N), metric, target=0.9)
    assert found is not None
    index = PqIndex(found, made, metric)
    asked = clustered(60, seed=2, metric=metric)
    assert recall(index, made, asked, 10, metric) >= 0.88
    result = index.search(asked[0], 10, None)
    assert np.array_equal(result.scores, ExactIndex(made, metric).score(asked[0], result.slots))
    assert list(result.scores) == sorted(result.scores, reverse=True)


@pytest.mark.parametrize("part", [0.5, 0.9])
def test_a_mask_is_kept_and_recall_with_it(vectors, coded, part):
    mask = np.random.default_rng(3).random(N) < part
    index = PqIndex(coded, vectors, "cosine")
    asked = clustered(60, seed=4)
    for point in asked[:20]:
        assert mask[index.search(point, 10, mask).slots].all()
    assert recall(index, vectors, asked, 10, "cosine", mask) >= 0.93


def test_a_narrow_mask_and_a_large_k_are_answered_exactly(vectors, coded):
    index, exact = PqIndex(coded, vectors, "cosine"), ExactIndex(vectors, "cosine")
    mask = np.zeros(N, np.bool_)
    mask[::40] = True
    point = clustered(1, seed=5)[0]
    for k, chosen in ((10, mask), (N, None)):
        got, want = index.search(point, k, chosen), exact.search(point, k, chosen)
        assert got.exact
        assert np.array_equal(got.slots, want.slots)


def test_what_came_after_the_codes_is_found_exactly(vectors, coded):
    newer = clustered(500, seed=6)
    both = np.concatenate([vectors, newer])
    index = PqIndex(coded, both, "cosine")
    for at in range(0, 500, 25):
        found = index.search(newer[at], 5, None)
        assert found.slots[0] == N + at
        assert not found.exact
        assert "500 newer rows" in found.says


def test_rows_without_a_vector_are_never_found(vectors, coded):
    has_vector = np.ones(N, np.bool_)
    has_vector[::3] = False
    index = PqIndex(coded, vectors, "cosine", has_vector)
    for point in clustered(30, seed=7):
        assert has_vector[index.search(point, 20, None).slots].all()


def test_codes_come_back_as_they_were(vectors, coded):
    again = Coded.from_arrays(coded.to_arrays())
    one, other = PqIndex(coded, vectors, "cosine"), PqIndex(again, vectors, "cosine")
    for point in clustered(20, seed=8):
        got, want = other.search(point, 10, None), one.search(point, 10, None)
        assert np.array_equal(got.slots, want.slots)
    assert again.mark == coded.mark
    assert (again.recall, again.target) == (coded.recall, coded.target)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("codes", np.zeros((N, 3), np.uint8)),
        ("codes", np.zeros((N, 4), np.int64)),
        ("centroids", np.full((8, 16, 4), np.nan, np.float32)),
        ("centroids", np.zeros((8, 15, 4), np.float32)),
        ("rotation", np.zeros((3, 3), np.float32)),
        ("coarse", np.zeros((5, 7), np.float32)),
        ("lists", np.zeros(N, np.int32)),
        ("numbers", np.zeros(4, np.int64)),
        ("packed", np.zeros(7, np.uint8)),
        ("packed", np.zeros(N * 4, np.int8)),
        ("metric", np.array(["manhattan"])),
        ("dim", np.array([4096])),
    ],
)
def test_codes_that_do_not_fit_together_are_refused(coded, name, value):
    with pytest.raises(ValueError, match="do"):
        Coded.from_arrays({**coded.to_arrays(), name: value})


@pytest.mark.parametrize("n", [1, 31, 32, 33, 6000])
def test_codes_need_not_be_arranged_anew(vectors, coded, n):
    some = coded.take(np.arange(n))
    kernel = some.kernel()
    packed = kernel.packed()
    again = FastScan(coded.codebook, some.codes, None, "cosine", packed)
    assert np.array_equal(again.packed(), packed)
    for point in clustered(20, seed=18):
        for mask in (None, np.arange(n) % 3 == 0):
            want = kernel.search(point, 50, mask, probes=1)
            assert np.array_equal(again.search(point, 50, mask, probes=1), want)


def test_what_another_release_would_arrange_otherwise_is_arranged_anew(vectors, coded):
    strange = coded.kernel().packed()[::-1].copy()
    again = FastScan(coded.codebook, coded.codes, None, "cosine", strange)
    assert np.array_equal(again.packed(), coded.kernel().packed())


def test_kept_slots_keep_their_codes(vectors, coded):
    keep = np.arange(0, N, 2)
    fewer = coded.take(keep)
    assert fewer is not None
    assert np.array_equal(fewer.codes, coded.codes[keep])
    assert (
        recall(
            PqIndex(fewer, vectors[keep], "cosine"),
            vectors[keep],
            clustered(40, seed=9),
            10,
            "cosine",
        )
        >= 0.93
    )
    assert coded.take(np.array([N, N + 1])) is None


def test_lists(vectors):
    found = learn(vectors, np.arange(N), "cosine", target=0.95, lists=16)
    assert found is not None
    assert found.codebook.lists == 16
    index = PqIndex(Coded.from_arrays(found.to_arrays()), vectors, "cosine")
    assert recall(index, vectors, clustered(60, seed=10), 10, "cosine") >= 0.92


def test_a_dimension_that_no_part_divides():
    made = clustered(dim=37, seed=11)
    found = learn(made, np.arange(N), "cosine", target=0.9)
    assert found is not None
    assert found.codebook.padded >= 37
    assert recall(PqIndex(found, made, "cosine"), made, clustered(40, 37, 12), 10, "cosine") >= 0.87


def test_the_same_vectors_give_the_same_codes(vectors, coded):
    again = learn(vectors, np.arange(N), "cosine", target=0.95)
    assert again is not None
    assert np.array_equal(again.codes, coded.codes)


def test_more_of_the_same_grows_and_something_else_does_not(vectors, coded):
    more = np.concatenate([vectors, clustered(2000, seed=13)])
    grown = grow(coded, more, np.arange(len(more)))
    assert grown is not None
    assert grown.n == len(more)
    assert np.array_equal(grown.codes[:N], coded.codes)
    # All of it in a corner that the codebook has no centroid near.
    corner = clustered(40_000, seed=14) * np.float32(0.02)
    corner[:, 0] = 1.0
    strange = np.concatenate([vectors, normalise(corner, "cosine")])
    assert grow(coded, strange, np.arange(len(strange))) is None


def test_equal_vectors_are_equally_good():
    made = np.repeat(clustered(40, seed=15), 100, axis=0)
    found = learn(made, np.arange(len(made)), "cosine", target=0.99)
    assert found is not None
    assert found.recall >= 0.99


def test_what_no_code_can_tell_apart_is_left_to_the_scan():
    made = np.random.default_rng(16).standard_normal((20_000, 64)).astype(np.float32)
    made = normalise(made, "cosine")
    assert learn(made, np.arange(20_000), "cosine", target=0.999, part=32) is None


def test_too_few_vectors_are_not_worth_a_code(vectors):
    assert learn(vectors, np.arange(100), "cosine", target=0.9) is None


def test_progress_is_told_and_may_stop_it(vectors):
    seen = []

    def tell(what, done):
        seen.append((what, done))
        if what == "encode":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(vectors, np.arange(N), "cosine", target=0.9, progress=tell)
    assert [what for what, _ in seen][:1] == ["ask"]
    assert all(0.0 <= done <= 1.0 for _, done in seen)


def test_a_codebook_that_rotates_keeps_inner_products(vectors):
    book = train_codebook(vectors[:2000], metric="cosine", part=4, rotate=True)
    turned = book.prepared(vectors[:50])
    assert np.allclose(turned @ turned.T, vectors[:50] @ vectors[:50].T, atol=1e-5)


def test_the_true_nearest_agree_with_the_exact_scan(vectors):
    asked = clustered(10, seed=17)
    for metric in ("cosine", "dot", "euclidean"):
        exact = ExactIndex(vectors, metric)
        found = nearest(vectors, np.arange(N), asked, 20, metric)
        for point, row in zip(asked, found, strict=True):
            assert set(row.tolist()) == set(exact.search(point, 20, None).slots.tolist())
