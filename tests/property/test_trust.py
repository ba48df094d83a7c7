"""Learned trust: never negative, the same again, and lower the more noise the vectors hold."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.model import Record
from cormorant.search import Trust, learn
from cormorant.search.fuse import LegScores
from cormorant.search.legs import Statistics

sys.path.insert(0, str(Path(__file__).parents[1]))

from searchlab import MemorySnapshot

TOPICS, WORDS, DIM = 12, 8, 32


def store(seed: int, noise: float) -> MemorySnapshot:
    """Records about topics; a vector is its topic's, some words', and noise."""
    rng = np.random.default_rng(seed)
    topics, words = rng.standard_normal((2, TOPICS * WORDS, DIM))
    records = []
    for i in range(60):
        topic = int(rng.integers(TOPICS))
        chosen = topic * WORDS + rng.permutation(WORDS)[:5]
        vector = topics[topic] + words[chosen].mean(axis=0)
        vector += noise * np.linalg.norm(vector) / np.sqrt(DIM) * rng.standard_normal(DIM)
        text = " ".join(f"word{n}x" for n in [*chosen, *(900 + rng.integers(40, size=3))])
        records.append(Record(str(i), text, vector))
    return MemorySnapshot(records)


def share(seed: int, noise: float) -> float:
    trust = learn(store(seed, noise), newest=60, fingerprint=None)
    assert trust.vector >= 0
    assert trust.text >= 0
    return trust.share


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_noise_added_to_the_vectors_lowers_trust(seed: int) -> None:
    clean, some, much = (share(seed, noise) for noise in (0.0, 2.0, 30.0))
    assert clean > some > much >= 0
    assert share(seed, 2.0) == some


numbers = st.floats(-50, 50, width=32)


@st.composite
def views(draw: st.DrawFn, size: int) -> LegScores:
    scores = np.array(draw(st.lists(numbers, min_size=size, max_size=size)), np.float32)
    fetched = draw(st.integers(0, size))
    ranks = np.zeros(size, np.int64)
    best = np.argsort(-scores, kind="stable")[:fetched]
    ranks[best] = np.arange(1, fetched + 1)
    statistics = Statistics(draw(numbers), draw(st.sampled_from([0.0, 0.1, 1.0, 10.0])))
    return LegScores(1.0, scores, ranks, statistics)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 12), st.floats(0, 1), st.floats(0, 1), st.integers(0, 500))
def test_weights_are_weights_whatever_the_legs_say(
    data: st.DataObject, size: int, vector: float, text: float, records: int
) -> None:
    trust = Trust(vector, text, records, 0)
    assert Trust.from_json(trust.to_json()) == trust
    left, right = data.draw(views(size)), data.draw(views(size))
    known = data.draw(st.floats(0, 1))
    weights = trust.weigh(left, right, known=known).weights
    assert 0 < weights["vector"] < 1
    assert weights["vector"] + weights["text"] == 1.0
    assert weights == trust.weigh(left, right, known=known).weights
    assert trust.weigh(left, right, known=0.0).weights["vector"] >= weights["vector"]
