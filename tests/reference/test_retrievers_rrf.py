"""Reciprocal rank fusion against the published formula, on random runs.

    score(d) = Σ over lists of weight / (k + rank of d in the list), ranks from 1

Source: Cormack, Clarke, Buettcher, Reciprocal rank fusion outperforms Condorcet and individual
rank learning methods, SIGIR 2009; ranx computes the same with equal weights, which
``scripts/check_rrf_against_ranx.py`` checks.
"""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Fixed, doc

from cormorant.langchain.retrievers import EnsembleRetriever

Runs = list[list[str]]


def random_runs(seed: int) -> Runs:
    """Two to five ranked lists of up to 40 of 60 documents."""
    chance = random.Random(seed)
    ids = [f"d{number}" for number in range(60)]
    return [chance.sample(ids, chance.randint(0, 40)) for _ in range(chance.randint(2, 5))]


def by_formula(runs: Runs, weights: list[float], k: int) -> dict[str, Fraction]:
    scores: dict[str, Fraction] = {}
    for run, weight in zip(runs, weights, strict=True):
        for rank, id in enumerate(run, start=1):
            scores[id] = scores.get(id, Fraction(0)) + Fraction(weight) / (k + rank)
    return scores


@pytest.mark.parametrize("seed", range(40))
def test_equals_the_formula(seed: int) -> None:
    runs = random_runs(seed)
    chance = random.Random(seed)
    weights = [1.0] * len(runs) if seed % 2 else [chance.uniform(0.1, 2) for _ in runs]
    k = (60, 0, 1, 1000)[seed % 4]
    retriever = EnsembleRetriever(
        retrievers=[Fixed(docs=[doc(id, id) for id in run]) for run in runs], weights=weights, c=k
    )
    expected = by_formula(runs, weights, k)
    hits = retriever.retrieve("q").hits
    assert {hit.id: hit.score for hit in hits} == {
        id: pytest.approx(float(score), rel=1e-12) for id, score in expected.items()
    }
    exact = [expected[hit.id] for hit in hits]
    # Scores that differ by less than float64 can tell may stand in either order.
    assert all(
        one >= other or one == pytest.approx(other, rel=1e-14) for one, other in pairwise(exact)
    )
