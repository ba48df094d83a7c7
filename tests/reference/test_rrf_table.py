"""Reciprocal rank fusion against what ranx gave, kept as a table: no ranx is needed here.

``scripts/check_rrf_against_ranx.py --write`` made the table, and compares far more runs.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Fixed, doc

from cormorant.langchain.retrievers import EnsembleRetriever, HybridRetriever

TABLE = json.loads(Path(__file__).with_name("rrf_by_ranx.json").read_text(encoding="utf-8"))
CASES = TABLE["cases"]


def test_the_table_says_who_made_it_and_is_worth_the_name():
    assert TABLE["made by"].startswith("ranx ")
    assert len(CASES) == 20
    shared = [set(case["lists"][0]) & set(case["lists"][1]) for case in CASES]
    assert sum(map(bool, shared)) > 10, "documents that several lists hold are what fusion is about"
    assert {case["k"] for case in CASES} == {0, 10, 60}


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_ensemble_gives_ranxs_scores(case):
    legs = [Fixed(docs=[doc(id, id) for id in ids]) for ids in case["lists"]]
    made = EnsembleRetriever(retrievers=legs, weights=[1.0] * len(legs), c=case["k"])
    hits = made.retrieve("q").hits
    assert {hit.id: hit.score for hit in hits} == pytest.approx(case["scores"], rel=1e-12)
    # ranx tells no order among equals; ours is that of the leg that comes first.
    assert all(case["scores"][a.id] >= case["scores"][b.id] - 1e-12 for a, b in pairwise(hits))


@pytest.mark.parametrize("case", [c for c in CASES if len(c["lists"]) == 2], ids=lambda c: c["k"])
def test_so_does_the_hybrid_with_equal_weights(case):
    vector, words = (Fixed(docs=[doc(id, id) for id in ids]) for ids in case["lists"])
    made = HybridRetriever(
        vector_retriever=vector,
        keyword_retriever=words,
        vector_weight=1,
        keyword_weight=1,
        rrf_k=case["k"],
        top_k=3,
    )
    best = sorted(case["scores"].values(), reverse=True)[:3]
    assert [hit.score for hit in made.retrieve("q")] == pytest.approx(best, rel=1e-12)
