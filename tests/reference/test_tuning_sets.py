"""Tuning and calibration on judged sets: CORMORANT_DATA names the folder, see benchmarks/."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import cormorant
from cormorant import Query
from cormorant.evaluate import calibrate, read_qrels, tune
from cormorant.evaluate.tuning import AS_SET

ROOT = os.environ.get("CORMORANT_DATA")
pytestmark = pytest.mark.skipif(not ROOT, reason="CORMORANT_DATA names no folder of judged sets")


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def loaded(name, model):
    folder = Path(ROOT or "") / name
    with np.load(folder / f"{model}.npz") as held:
        docs = dict(zip(held["doc_ids"].tolist(), held["docs"], strict=True))
        asked = dict(zip(held["query_ids"].tolist(), held["queries"], strict=True))
    store = cormorant.open(":memory:")
    store.add(
        {"id": d["id"], "text": f"{d.get('title') or ''} {d['text']}", "vector": docs[d["id"]]}
        for d in lines(folder / "docs.jsonl")
        if d["id"] in docs
    )
    qrels = read_qrels(folder / "qrels.tsv")
    queries = {
        q["id"]: Query(text=q["text"], vector=asked[q["id"]])
        for q in lines(folder / "queries.jsonl")
        if q["id"] in asked and any(id in docs for id in qrels.get(q["id"], ()))
    }
    return store, queries, {name: qrels[name] for name in queries}


def test_tuned_cranfield_beats_both_legs_on_questions_that_had_no_part_in_it():
    store, queries, qrels = loaded("cranfield", "minilm")
    with store:
        tuned = tune(store, queries, qrels)
        held = {name: each.means["ndcg@10"] for name, each in tuned.held_out.items()}
        used = held[AS_SET if tuned.recommended is None else tuned.recommended.says]
        assert used > max(held["text leg alone"], held["vector leg alone"])
        assert tuned.evidence == tune(store, queries, qrels).evidence


def test_where_nothing_helps_it_says_so():
    store, queries, qrels = loaded("xquad-zh", "use")
    with store:
        tuned = tune(store, queries, qrels)
        assert tuned.recommended is None
        assert "keep the store as it is set" in tuned.says or "keep it" in tuned.says
        assert not tuned.apply(store)


def test_a_threshold_of_point_8_is_as_precise_with_either_model():
    precision = {}
    for model in ("minilm", "use"):
        store, queries, qrels = loaded("xquad-en", model)
        with store:
            precision[model] = calibrate(store, queries, qrels).quality["hybrid"].at(0.8).precision
    assert min(precision.values()) > 0.9
    assert abs(precision["minilm"] - precision["use"]) < 0.04
