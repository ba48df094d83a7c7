"""What does judging cost? 1,000 queries, 100 hits each, ten metrics: CPU seconds, best of five.

python benchmarks/evaluate_speed.py
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from cormorant.evaluate import Run, judge, read_run, write_run

QUERIES, HITS, JUDGED = 1_000, 100, 40
METRICS = (
    "ndcg@10",
    "ndcg_exp@10",
    "recall@100",
    "precision@10",
    "hit@10",
    "mrr@10",
    "map",
    "rprec",
    "bpref",
    "unjudged@10",
)


def cpu(work, times=5):
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def main():
    rng = random.Random(0)
    pool = [f"document-{i:06}" for i in range(20_000)]
    rankings, qrels = {}, {}
    for number in range(QUERIES):
        docs = rng.sample(pool, HITS)
        scores = sorted((rng.random() for _ in docs), reverse=True)
        rankings[str(number)] = tuple(zip(docs, scores, strict=True))
        judged = [*rng.sample(docs, JUDGED // 2), *rng.sample(pool, JUDGED // 2)]
        qrels[str(number)] = {doc: rng.choice((0, 0, 1, 2)) for doc in judged}
    run = Run("random", rankings)
    print(f"{QUERIES:,} queries, {HITS} hits, {len(METRICS)} metrics; CPU seconds")
    print(f"judge            {cpu(lambda: judge(run, qrels, METRICS)):.3f}")
    print(f"a Run, checked   {cpu(lambda: Run('random', rankings)):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("trec", "csv", "jsonl"):
            path = Path(folder) / f"run.{ending}"
            written = cpu(lambda path=path: write_run(run, path), times=2)
            read = cpu(lambda path=path: read_run(path), times=2)
            print(f"{ending:<6} write {written:.3f}   read {read:.3f}")


if __name__ == "__main__":
    main()
