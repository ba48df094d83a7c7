"""How often do the test and the interval err, by simulation?

Prints, for several kinds of per-query differences and numbers of queries: how often the
randomisation test at .05 calls two equal systems different, and how often each kind of 95 %
interval holds the true mean difference, with its median width. ``sym`` is the one in use
(``cormorant.evaluate.comparing.bootstrap_interval``). The t interval needs scipy and is left out
without it. With ``CORMORANT_DATA`` (see ``fusion_quality.py``) also queries drawn from the
differences that two real systems have there.

Run: ``python benchmarks/comparison_rates.py [SIMULATIONS]`` (default 1,000).
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np

from cormorant.evaluate.comparing import bootstrap_interval, randomisation_p

SIZES = (10, 25, 50, 200)
RESAMPLES = 2000
NORMAL = NormalDist()
DISCOUNTED = np.array([0, 0.33, 0.36, 0.39, 0.43, 0.5, 0.63, 1.0])  # nDCG of one relevant document


def even(rng, n):
    """Changes of all sizes, normally distributed."""
    return rng.normal(0.02, 0.2, n)


def skewed(rng, n):
    """Many small losses, few large gains."""
    return rng.exponential(0.2, n) - 0.15


def tied(rng, n):
    """One relevant document a query: values on few steps, most queries unchanged."""
    first = rng.choice(DISCOUNTED, n, p=[0.15, 0.05, 0.05, 0.05, 0.05, 0.05, 0.1, 0.5])
    again = rng.choice(DISCOUNTED, n, p=[0.2, 0.05, 0.05, 0.05, 0.05, 0.05, 0.15, 0.4])
    return np.where(rng.random(n) < 0.6, first, again) - first


def sparse(rng, n):
    """Nine queries in ten unchanged."""
    return (rng.random(n) < 0.1) * rng.choice(
        [-1.0, -0.5, -0.37, 0.11, 0.37, 0.63], n, p=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2]
    )


def losses(rng, n):
    """Eight queries in a hundred lose, none gains."""
    return (rng.random(n) < 0.08) * rng.choice([-1.0, -0.5, -0.37, -0.13], n)


def real():
    """Differences between two real systems' queries, to draw from."""
    folder = os.environ.get("CORMORANT_DATA")
    if not folder:
        print("CORMORANT_DATA is not set: no real differences.")
        return
    from cormorant.evaluate import judge
    from cormorant.evaluate.reproduce import judged_set, runs

    for name, model in (("cranfield", "minilm"), ("xquad-en", "use")):
        held = judged_set(Path(folder), name, model)
        by_mode = {m: judge(r, held.qrels, "ndcg@10").of("ndcg@10") for m, r in runs(held)}
        for one, other in (("text", "hybrid"), ("vector", "hybrid")):
            apart = by_mode[other] - by_mode[one]
            share = f"{np.mean(apart != 0):.0%} moved"
            yield f"{name}, {one}→{other}, {share}", partial(drawn, apart), apart.mean()


def drawn(apart, rng, n):
    return rng.choice(apart, n)


def percentile_bca_studentised(values, rng):
    """Three other bootstrap intervals from one set of draws."""
    n, mean, deviation = len(values), values.mean(), values.std(ddof=1)
    if deviation == 0:
        return dict.fromkeys(("pct", "bca", "stud"), (mean, mean))
    draws = values[rng.integers(0, n, (RESAMPLES, n))]
    means, spread = draws.mean(axis=1), draws.std(axis=1, ddof=1)
    out = {"pct": tuple(np.quantile(means, (0.025, 0.975)))}
    below = (np.mean(means < mean) + np.mean(means <= mean)) / 2
    bias = NORMAL.inv_cdf(min(max(below, 1e-6), 1 - 1e-6))
    apart = values - mean
    skew = (apart**3).sum() / (6 * np.square(apart).sum() ** 1.5)
    at = [
        NORMAL.cdf(bias + (bias + z) / (1 - skew * (bias + z)))
        for z in (NORMAL.inv_cdf(0.025), NORMAL.inv_cdf(0.975))
    ]
    out["bca"] = tuple(np.quantile(means, at))
    there = spread > 1e-12
    t = np.where(means < mean, -1e9, 1e9)
    t[there] = (means - mean)[there] / spread[there]
    low, high = np.quantile(t, (0.025, 0.975), method="nearest")
    out["stud"] = (mean - high * deviation, mean - low * deviation)
    return out


def student(values):
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / sqrt(len(values))
    return values.mean() - half, values.mean() + half


def equal(kind, rng, n):
    """Differences of two equal systems: each might as well have had the other sign."""
    return kind(rng, n) * rng.choice([-1.0, 1.0], n)


def main():
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(2026)
    kinds = [(kind.__name__, kind, None) for kind in (even, skewed, tied, sparse, losses)]
    kinds += list(real())
    print("false: rate of p < .05 between equal systems; then coverage (median width); unchanged:")
    print("simulations without any difference, which have no interval and are left out")
    for name, kind, known in kinds:
        truth = kind(rng, 4_000_000).mean() if known is None else known
        for n in SIZES:
            began = time.process_time()
            false = np.mean(
                [
                    randomisation_p(equal(kind, rng, n), resamples=RESAMPLES, seed=seed) < 0.05
                    for seed in range(simulations)
                ]
            )
            held, unchanged = {}, 0
            for seed in range(simulations):
                values = kind(rng, n)
                if not values.any():
                    unchanged += 1
                    continue
                found = percentile_bca_studentised(values, rng)
                if find_spec("scipy"):
                    found["t"] = student(values)
                found["sym"] = bootstrap_interval(values, resamples=RESAMPLES, seed=seed)
                for method, (low, high) in found.items():
                    inside = low - 1e-9 <= truth <= high + 1e-9
                    held.setdefault(method, []).append((inside, min(high - low, 2.0)))
            figures = "  ".join(
                f"{m} {np.mean([i for i, _ in v]):.3f} ({np.median([w for _, w in v]):.3f})"
                for m, v in held.items()
            )
            spent = time.process_time() - began
            print(
                f"{name:32} n={n:<4} false {false:.3f}  {figures}  unchanged {unchanged}"
                f"  [{spent:.0f} s]",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
