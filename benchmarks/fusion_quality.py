"""Is hybrid search ever worse than its better leg? nDCG@10 of each leg and each fusion.

Run: ``CORMORANT_DATA=FOLDER python benchmarks/fusion_quality.py [SET …]``. The folder holds
judged sets: ``SET/docs.jsonl`` (id, title, text), ``SET/queries.jsonl`` (id, text),
``SET/qrels.tsv`` and vectors made beforehand, ``SET/MODEL.npz`` (docs, queries, doc_ids,
query_ids). Every set is searched in a store of its own with the vectors of each model; sets
named ``NAME-LANGUAGE`` whose ids agree are also asked across languages. Exits 1 if hybrid by
default settings is below the better leg by more than ``ALLOWED`` anywhere.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import permutations
from pathlib import Path

import numpy as np

import cormorant
from cormorant import Query
from cormorant.evaluate import mean_ndcg, read_qrels

ALLOWED = 0.005
FUSIONS = ("z", "rrf", "minmax")


def read_jsonl(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def load(folder, model):
    """Ids, texts and vectors of the documents and of the queries that have all three."""
    with np.load(folder / f"{model}.npz") as held:
        vectors = {
            "doc": dict(zip(held["doc_ids"].tolist(), held["docs"], strict=True)),
            "query": dict(zip(held["query_ids"].tolist(), held["queries"], strict=True)),
        }
    docs = [d for d in read_jsonl(folder / "docs.jsonl") if d["id"] in vectors["doc"]]
    queries = [q for q in read_jsonl(folder / "queries.jsonl") if q["id"] in vectors["query"]]
    return docs, queries, vectors


def judge(doc_folder, query_folder, model):
    """nDCG@10 by kind of search, and CPU milliseconds per hybrid search."""
    docs, _, doc_vectors = load(doc_folder, model)
    _, queries, query_vectors = load(query_folder, model)
    known = {doc["id"] for doc in docs}
    qrels = read_qrels(query_folder / "qrels.tsv")
    asked = [q for q in queries if known & set(qrels.get(q["id"], ()))]
    judged = {q["id"]: qrels[q["id"]] for q in asked}
    settings = {"text": {"mode": "text"}, "vector": {"mode": "vector"}}
    settings |= {fusion: {"mode": "hybrid", "fusion": fusion} for fusion in FUSIONS}
    runs = {name: {} for name in settings}
    proven, cost = 0, 0.0
    with cormorant.open(":memory:") as store:
        store.add(
            {
                "id": doc["id"],
                "text": " ".join(filter(None, (doc.get("title"), doc["text"]))),
                "vector": doc_vectors["doc"][doc["id"]],
            }
            for doc in docs
        )
        for query in asked:
            for name, setting in settings.items():
                began = time.process_time()
                result = store.search(
                    Query(
                        text=query["text"],
                        vector=query_vectors["query"][query["id"]],
                        top_k=10,
                        **setting,
                    )
                )
                if name == "z":
                    cost += time.process_time() - began
                    proven += result.exact
                runs[name][query["id"]] = [hit.id for hit in result]
    scores = {name: mean_ndcg(run, judged) for name, run in runs.items()}
    return scores, len(docs), len(asked), proven / len(asked), 1e3 * cost / len(asked)


def cases(root, wanted):
    sets = sorted(p for p in root.iterdir() if (p / "qrels.tsv").exists())
    sets = [p for p in sets if not wanted or p.name in wanted]
    for folder in sets:
        for model in sorted(p.stem for p in folder.glob("*.npz")):
            yield folder.name, folder, folder, model
    for docs, queries in permutations(sets, 2):
        if "-" in docs.name and docs.name.split("-")[0] == queries.name.split("-")[0]:
            for model in sorted(
                {p.stem for p in docs.glob("*.npz")} & {p.stem for p in queries.glob("*.npz")}
            ):
                yield f"{queries.name}→{docs.name}", docs, queries, model


def main():
    root = os.environ.get("CORMORANT_DATA")
    if not root:
        print("Set CORMORANT_DATA to a folder of judged sets; skipped.")
        return 0
    columns = ("text", "vector", *FUSIONS)
    print("nDCG@10; margin: z (the default) minus the better leg; proven: queries whose fused")
    print("ranking is certainly a full scan's; ms: CPU of one hybrid search")
    print(
        f"{'set':24}{'model':8}{'docs':>6}{'asked':>6}"
        + "".join(f"{c:>8}" for c in columns)
        + f"{'margin':>8}{'proven':>8}{'ms':>6}"
    )
    worst = 1.0
    for name, docs, queries, model in cases(Path(root), set(sys.argv[1:])):
        scores, stored, asked, proven, cost = judge(docs, queries, model)
        margin = scores["z"] - max(scores["text"], scores["vector"])
        worst = min(worst, margin)
        figures = "".join(f"{scores[c]:8.4f}" for c in columns)
        print(
            f"{name:24}{model:8}{stored:6}{asked:6}{figures}{margin:+8.4f}{proven:8.1%}{cost:6.2f}",
            flush=True,
        )
    print(f"worst margin {worst:+.4f}, allowed {-ALLOWED:+.4f}")
    return int(worst < -ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
