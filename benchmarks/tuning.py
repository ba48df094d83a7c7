"""Does tuning help, and does it say so when it does not? Held-out nDCG@10 of every judged set.

Run: ``CORMORANT_DATA=FOLDER python benchmarks/tuning.py [SET …]``; the folder is described in
``fusion_quality.py``. Prints the table of docs/tuning.md, then what a sweep of 45 points costs
on each set: CPU seconds to ask the legs, and to rank and judge afterwards. Exits 1 if a
recommendation is worse on the held-out queries than the better leg alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fusion_quality import cases, load

import cormorant
from cormorant import Query
from cormorant.evaluate import read_qrels
from cormorant.evaluate.tuning import AS_SET, Space, tune

FORTY_FIVE = {
    "fusion": ["z", "minmax", "rrf"],
    "vector_weight": {"from": 0.15, "to": 0.85, "step": 0.05},
}


def filled(folder, model):
    docs, _, vectors = load(folder, model)
    store = cormorant.open(":memory:")
    store.add(
        {
            "id": doc["id"],
            "text": " ".join(filter(None, (doc.get("title"), doc["text"]))),
            "vector": vectors["doc"][doc["id"]],
        }
        for doc in docs
    )
    return store, {doc["id"] for doc in docs}


def asked(folder, model, known):
    _, queries, vectors = load(folder, model)
    qrels = read_qrels(folder / "qrels.tsv")
    judged = [q for q in queries if known & set(qrels.get(q["id"], ()))]
    return (
        {q["id"]: Query(text=q["text"], vector=vectors["query"][q["id"]]) for q in judged},
        {q["id"]: qrels[q["id"]] for q in judged},
    )


def row(name, model, tuned):
    held = {key: each.means[tuned.metric] for key, each in tuned.held_out.items()}
    chosen = "as set" if tuned.chosen is None else tuned.chosen.says
    as_set, text, vector = (held[k] for k in (AS_SET, "text leg alone", "vector leg alone"))
    moved, verdict = "", "keep as set"
    if tuned.comparison is not None:
        low, high = tuned.comparison.interval
        moved = f"{tuned.comparison.difference:+.4f} [{low:+.4f}, {high:+.4f}]"
    if tuned.recommended is not None:
        verdict = "use it"
    used = as_set if tuned.recommended is None else held[tuned.recommended.says]
    queries = len(next(iter(tuned.held_out.values())).queries)
    print(
        f"| {name}, {model} | {tuned.training.queries} / {queries} | {text:.4f} | {vector:.4f} | "
        f"{as_set:.4f} | {chosen} | {moved} | {verdict} |",
        flush=True,
    )
    return used - max(text, vector), tuned.recommended is not None


def main():
    root = os.environ.get("CORMORANT_DATA")
    if not root:
        print("Set CORMORANT_DATA to a folder of judged sets; skipped.")
        return 0
    print("| set, model | chosen by / judged by | text | vector | as set | chosen | difference | |")
    print("|---|---|---|---|---|---|---|---|")
    worst, misled, costs = 1.0, False, []
    for name, docs, queries, model in cases(Path(root), set(sys.argv[1:])):
        store, known = filled(docs, model)
        with store:
            questions, qrels = asked(queries, model, known)
            tuned = tune(store, questions, qrels)
            margin, recommended = row(name, model, tuned)
            worst = min(worst, margin)
            misled = misled or (recommended and margin < 0)
            sweep = tune(store, questions, qrels, space=Space.of(FORTY_FIVE), holdout=0.1)
            costs.append((name, model, sweep.training.queries, sweep.training.tried, sweep.cpu_s))
    print("\nqueries x configurations: CPU seconds asking the legs, then ranking and judging")
    for name, model, count, tried, cpu in costs:
        print(f"{name}, {model}: {count} x {tried}: {cpu['asking']:.2f}, {cpu['ranking']:.2f}")
    print(f"worst margin over the better leg, held out: {worst:+.4f}")
    return int(misled)


if __name__ == "__main__":
    sys.exit(main())
