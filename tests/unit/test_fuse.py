"""Each fusion on numbers small enough for paper."""

from __future__ import annotations

import numpy as np
import pytest

from cormorant.search import FUSIONS, LegScores, Statistics, fuse

INF = np.float32(np.inf)


def leg(scores, ranks, weight=0.5, mean=0.0, std=1.0):
    return LegScores(
        weight,
        np.array(scores, dtype=np.float32),
        np.array(ranks, dtype=np.int64),
        Statistics(mean, std),
    )


def test_z_counts_deviations_above_the_mean():
    vector = leg([0.9, 0.5, -INF], [1, 2, 0], weight=0.5, mean=0.1, std=0.2)
    text = leg([0.0, 6.0, 3.0], [0, 1, 2], weight=2.0, mean=1.0, std=2.0)
    fused = fuse([vector, text], fusion="z", rrf_k=60)
    assert fused.standards[0] == pytest.approx([4.0, 2.0, 0.0])
    assert fused.standards[1] == pytest.approx([-0.5, 2.5, 1.0])
    assert fused.contributions[0] == pytest.approx([2.0, 1.0, 0.0])
    assert fused.contributions[1] == pytest.approx([-1.0, 5.0, 2.0])
    assert fused.scores == pytest.approx([1.0, 6.0, 2.0])


def test_z_of_scores_that_do_not_differ_is_nothing():
    same = leg([3.0, 3.0], [1, 2], mean=3.0, std=0.0)
    assert fuse([same], fusion="z", rrf_k=60).scores.tolist() == [0.0, 0.0]


def test_a_deviation_that_is_only_rounding_is_none():
    assert Statistics.of(1000.0, 1e-4, 1000.0).std == 0.0
    assert Statistics.of(0.0, 1e-7, 1e-7).std == 1e-7


def test_rrf_is_one_over_k_plus_rank_from_one():
    first, second = leg([9, 8, 7], [1, 2, 0], weight=1.0), leg([1, 2, 3], [0, 2, 1], weight=1.0)
    fused = fuse([first, second], fusion="rrf", rrf_k=60)
    assert fused.scores == pytest.approx([1 / 61, 1 / 62 + 1 / 62, 1 / 61])
    weighted = fuse([leg([9], [1], weight=0.7), leg([9], [4], weight=0.3)], fusion="rrf", rrf_k=10)
    assert weighted.scores == pytest.approx([0.7 / 11 + 0.3 / 14])
    assert fuse([leg([9], [1], weight=1.0)], fusion="rrf", rrf_k=0).scores.tolist() == [1.0]


def test_minmax_runs_from_the_worst_fetched_to_the_best():
    fused = fuse([leg([8, 2, 5, 1, -INF], [1, 3, 2, 0, 0], weight=1.0)], fusion="minmax", rrf_k=60)
    assert fused.scores == pytest.approx([1.0, 0.0, 0.5, 0.0, 0.0])
    alone = fuse([leg([4, 1], [1, 0], weight=1.0)], fusion="minmax", rrf_k=60)
    assert alone.scores.tolist() == [1.0, 0.0]
    none = fuse([leg([0, 0], [0, 0], weight=1.0)], fusion="minmax", rrf_k=60)
    assert none.scores.tolist() == [0.0, 0.0]


def test_one_leg_keeps_its_scores():
    fused = fuse([leg([0.25, -3.0], [1, 2], weight=1.0)], fusion=None, rrf_k=60)
    assert fused.scores.tolist() == [0.25, -3.0]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_fusing_changes_no_argument(fusion):
    legs = [leg([3, 2], [1, 2]), leg([1, 5], [2, 1])]
    held = [(one.scores.copy(), one.ranks.copy()) for one in legs]
    fuse(legs, fusion=fusion, rrf_k=60)
    for one, (scores, ranks) in zip(legs, held, strict=True):
        assert one.scores.tolist() == scores.tolist()
        assert one.ranks.tolist() == ranks.tolist()
