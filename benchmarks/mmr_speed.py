"""How much CPU does diversifying cost, against langchain-core's function?

Run: ``python benchmarks/mmr_speed.py``. Prints CPU milliseconds over all threads for the same
candidates, and whether the picks agree; exits 1 if at 1000 candidates it is not ``WANTED``
times cheaper or any pick differs.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from cormorant.search import pick_diverse

WANTED = 50
DIM = 384


def cpu_ms(pick, arguments, repeats):
    """What it picks, and the least of three means: other work on the machine only adds."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for _ in range(repeats):
            picked = pick(*arguments)
        best = min(best, (time.process_time() - began) / repeats)
    return list(picked), 1e3 * best


def ours(query, vectors, mmr_lambda, k):
    return pick_diverse(query, vectors, mmr_lambda=mmr_lambda, k=k).positions.tolist()


def main():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((30, DIM))  # clustered, as real candidates are
    print(f"CPU ms to pick k of n candidates of {DIM} numbers, lambda .5")
    print(f"{'n':>6}{'k':>4}{'langchain-core':>16}{'cormorant':>11}{'ratio':>8}  same picks")
    failed = False
    for n, k in ((20, 4), (100, 10), (1000, 10), (1000, 50)):
        rows = centres[rng.integers(0, 30, n)] + 0.7 * rng.standard_normal((n, DIM))
        vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        query = (centres[0] + rng.standard_normal(DIM)).astype(np.float32)
        listed, asked = vectors.tolist(), query.astype(np.float64)
        wanted, theirs = cpu_ms(maximal_marginal_relevance, (asked, listed, 0.5, k), 1)
        picked, cost = cpu_ms(ours, (query, vectors, 0.5, k), 20)
        same = picked == wanted
        failed |= not same or (n >= 1000 and theirs < WANTED * cost)
        print(f"{n:6}{k:4}{theirs:16.2f}{cost:11.3f}{theirs / cost:7.0f}×  {same}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
