"""Fusion against arithmetic done outside: exact fractions, and judged collections."""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cormorant.analysis import analyzer_for
from cormorant.index.vector import check_vector
from cormorant.model import Query, Record
from cormorant.search import run

sys.path.insert(0, str(Path(__file__).parents[1]))
from searchlab import MemorySnapshot

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location(
    "fusion_quality", ROOT / "benchmarks" / "fusion_quality.py"
)
FOLDER = os.environ.get("CORMORANT_DATA")

# Angles in degrees from the query's vector, and texts: how the legs disagree.
WORLD = {
    "both": (10, "fish fish bird"),
    "near": (5, "stone"),
    "said": (70, "fish bird bird fish fish"),
    "weak": (40, "fish and many other words that make it long"),
    "none": (90, "stone and water"),
}


@pytest.fixture
def world():
    def at(degrees):
        return [float(np.cos(np.deg2rad(degrees))), float(np.sin(np.deg2rad(degrees)))]

    return MemorySnapshot(
        [Record(id=id, text=text, vector=at(angle)) for id, (angle, text) in WORLD.items()]
    )


def asked(**settings):
    return Query(text="fish bird", vector=[1.0, 0.0], top_k=5, explain=True, **settings)


def test_rrf_by_exact_fractions(world):
    result = run(world, asked(fusion="rrf", rrf_k=60.0, weights={"vector": 0.5, "text": 0.5}))
    vector = ["near", "both", "weak", "said", "none"]
    text = [hit.id for hit in run(world, Query(text="fish bird"))]
    assert set(text) == {"both", "said", "weak"}
    wanted = {
        id: sum(
            Fraction(1, 2) / (60 + ranked.index(id) + 1)
            for ranked in (vector, text)
            if id in ranked
        )
        for id in WORLD
    }
    assert {hit.id: hit.score for hit in result} == pytest.approx(
        {id: float(score) for id, score in wanted.items()}, rel=1e-12
    )
    assert [hit.id for hit in result] == sorted(wanted, key=wanted.__getitem__, reverse=True)


def test_z_by_the_statistics_module(world):
    result = run(world, asked(fusion="z", weights={"vector": 0.25, "text": 0.75}))
    cosines = {id: float(np.cos(np.deg2rad(angle))) for id, (angle, _) in WORLD.items()}
    texts = dict.fromkeys(WORLD, 0.0) | {
        hit.id: hit.score for hit in run(world, Query(text="fish bird"))
    }
    for hit in result:
        for name, scores, weight in (("vector", cosines, 0.25), ("text", texts, 0.75)):
            mean = statistics.fmean(scores.values())
            standard = (scores[hit.id] - mean) / statistics.pstdev(scores.values())
            assert hit.legs[name].standard == pytest.approx(standard, rel=1e-5)
            assert hit.contributions[name] == pytest.approx(weight * standard, rel=1e-5)


def test_z_is_wider_by_what_no_record_says(world):
    """std² + U² / n, U the weight of `whale` twice: it occurs nowhere."""
    query = Query(text="fish whale whale", vector=[1.0, 0.0], top_k=5)
    terms = analyzer_for("english").query_terms(query.text)
    assert sorted(terms) == ["fish", "whale", "whale"]
    n = len(WORLD)
    unseen = 2 * np.log(1 + (n + 0.5) / 0.5)
    texts = [0.0] * n
    for i, hit in enumerate(run(world, Query(text="fish"))):
        texts[i] = hit.score
    mean = statistics.fmean(texts)
    std = float(np.sqrt(statistics.pvariance(texts) + unseen**2 / n))
    for hit in run(world, query):
        leg = hit.legs["text"]
        assert leg.standard == pytest.approx((leg.score - mean) / std, rel=1e-5)


def test_cosine_is_the_cosine_of_what_was_given():
    given = np.random.default_rng(0).standard_normal((20, 7))
    asked = given[3] + 0.5
    snapshot = MemorySnapshot([Record(id=str(i), vector=v * (i + 1)) for i, v in enumerate(given)])
    cosines = given @ asked / np.linalg.norm(given, axis=1) / np.linalg.norm(asked)
    for hit in run(snapshot, Query(vector=asked, top_k=20)):
        assert hit.score == pytest.approx(cosines[int(hit.id)], abs=1e-6)
    assert np.linalg.norm(check_vector(asked, dim=7, metric="cosine")) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="CORMORANT_DATA names no folder of judged sets")
def test_hybrid_is_nowhere_below_its_better_leg(capsys):
    assert SPEC is not None
    assert SPEC.loader is not None
    quality = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(quality)
    assert FOLDER is not None
    seen = 0
    for name, docs, queries, model in quality.cases(Path(FOLDER), set()):
        scores, *_ = quality.judge(docs, queries, model)
        better = max(scores["text"], scores["vector"])
        with capsys.disabled():
            print(f"{name} {model}: {scores}")
        assert scores["z"] >= better - quality.ALLOWED, name
        if (name, model) == ("cranfield", "minilm"):
            assert scores["z"] >= 0.40
        seen += 1
    assert seen
