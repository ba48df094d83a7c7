"""What is learned trust worth? nDCG@10 beside equal weights and other fusions, paired.

Run: ``CORMORANT_DATA=FOLDER python benchmarks/trust_quality.py [SET …]``, with the judged sets of
``fusion_quality.py``. No judgement is used to learn. ``share``: the store's weights alone, the
same for every query. An interval is that of the mean difference to equal weights over the
queries (percentile bootstrap, 95 %: finite also where few queries moved). Under each set are rows
whose records' vectors, or queries', are replaced by noise; the last rows are of stores in two
languages, every other record of a set in the other one.
Exits 1 if hybrid by learned weights is below the better leg, or below equal weights, by more
than ``ALLOWED`` anywhere.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from fusion_quality import cases, load

import cormorant
from cormorant import Query
from cormorant.evaluate import ndcg, read_qrels

ALLOWED = 0.003
EQUAL = {"vector": 0.5, "text": 0.5}


def noise(like, seed):
    rng = np.random.default_rng(seed)
    return {id: rng.standard_normal(len(vector)) for id, vector in like.items()}


def percentiles(apart, draws=4_000):
    """Of the mean of a sample drawn anew: where its middle 95 % lie."""
    places = np.random.default_rng(0).integers(0, len(apart), (draws, len(apart)))
    return np.quantile(apart[places].mean(axis=1), (0.025, 0.975))


def judge(doc_folder, query_folder, model, corrupted="", beside=None):
    """By kind of search: nDCG@10 of every query; and what was learned, in how many CPU-s.

    Args:
        doc_folder, query_folder: Of judged sets.
        model: Whose vectors.
        corrupted: ``records`` or ``queries``: their vectors are noise.
        beside: Another folder with the same ids: every other record is taken from it.
    """
    docs, _, doc_vectors = load(doc_folder, model)
    if beside is not None:
        others, _, other_vectors = load(beside, model)
        others = {doc["id"]: doc for doc in others[1::2]}
        docs = [others.get(doc["id"], doc) for doc in docs]
        doc_vectors["doc"] |= {id: other_vectors["doc"][id] for id in others}
    _, queries, query_vectors = load(query_folder, model)
    stored, asking = doc_vectors["doc"], query_vectors["query"]
    if corrupted == "records":
        stored = noise(stored, 0)
    elif corrupted == "queries":
        asking = noise(asking, 1)
    known = {doc["id"] for doc in docs}
    qrels = read_qrels(query_folder / "qrels.tsv")
    asked = [q for q in queries if known & set(qrels.get(q["id"], ()))]
    with cormorant.open(":memory:") as store:
        store.add(
            {
                "id": doc["id"],
                "text": " ".join(filter(None, (doc.get("title"), doc["text"]))),
                "vector": stored[doc["id"]],
            }
            for doc in docs
        )

        def judged(**settings):
            values = np.empty(len(asked))
            for i, query in enumerate(asked):
                one = Query(text=query["text"], vector=asking[query["id"]], **settings)
                values[i] = ndcg([hit.id for hit in store.search(one)], qrels[query["id"]])
            return values

        values = {
            "text": judged(mode="text"),
            "vector": judged(mode="vector"),
            "z": judged(weights=EQUAL),  # before anything is known of the store's scripts
            "rrf": judged(fusion="rrf"),
            "minmax": judged(fusion="minmax"),
        }
        began = time.process_time()
        trust = store.learn_trust()
        cost = time.process_time() - began
        values["share"] = judged(weights={"vector": trust.share, "text": 1.0 - trust.share})
        values["learned"] = judged()
    return values, trust, cost


def told(name, model, values, trust, cost):
    """Print a row; returns how far learned weights are below the best of what they must reach."""
    means = {kind: float(value.mean()) for kind, value in values.items()}
    margin = means["learned"] - max(means[kind] for kind in ("text", "vector", "z"))
    row = f"{name:34}{model:8}" + "".join(f"{mean:8.4f}" for mean in means.values())
    for kind in ("rrf", "minmax", "share", "learned"):
        apart = values[kind] - values["z"]
        if not apart.any():
            row += f"{'+0.000':>24}"
            continue
        low, high = percentiles(apart)
        row += f"{apart.mean():+8.3f} [{low:+.3f}, {high:+.3f}]"
    print(f"{row}{margin:+8.4f}{trust.share:6.2f}{cost:6.1f}", flush=True)
    return margin


def main():
    root = os.environ.get("CORMORANT_DATA")
    if not root:
        print("Set CORMORANT_DATA to a folder of judged sets; skipped.")
        return 0
    print(
        "set, model; nDCG@10 of text, vector, z, rrf, minmax, share, learned; rrf, minmax, share "
        "and learned minus z; margin; learned share; CPU-s"
    )
    worst = 1.0
    mixed = []
    for name, docs, queries, model in cases(Path(root), set(sys.argv[1:])):
        worst = min(worst, told(name, model, *judge(docs, queries, model)))
        if docs == queries:
            for corrupted in ("records", "queries"):
                told(f"{name}, noise for {corrupted}", model, *judge(docs, docs, model, corrupted))
        else:
            mixed.append((f"{queries.name}, half {docs.name}", queries, queries, model, "", docs))
    for name, docs, queries, model, *how in mixed:
        worst = min(worst, told(name, model, *judge(docs, queries, model, *how)))
    print(f"worst margin without noise {worst:+.4f}, allowed {-ALLOWED:+.4f}")
    return int(worst < -ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
