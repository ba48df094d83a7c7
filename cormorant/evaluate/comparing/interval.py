"""Between which limits does the true mean lie?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.comparing.values import check_resamples, checked

__all__ = ["Interval", "bootstrap_interval"]

_CHUNK = 2_000_000
"""Places drawn at once: 16 MB, and as much again for the values there."""


class Interval(NamedTuple):
    """Limits of a mean; infinite where the data set none.

    Attributes:
        low: The lower limit.
        high: The upper limit.
    """

    low: float
    high: float


def bootstrap_interval(
    values: ArrayLike,
    *,
    confidence: float = defaults.CONFIDENCE,
    resamples: int = defaults.RESAMPLES,
    seed: int = defaults.RESAMPLING_SEED,
) -> Interval:
    """An interval that holds the true mean in ``confidence`` of all cases.

    The symmetric studentised bootstrap: queries are drawn anew, with replacement, and

        mean ± t · s / √n,   t = the ``confidence`` quantile of  |mean* - mean| / (s* / √n)

    over the draws (*). A draw without any spread has t = ∞, so where very few queries differ
    from the rest the limits are infinite: the data do not say. Values that are all equal give
    that value alone. ``docs/decisions/0041-comparison.md`` has the coverage measured beside the
    percentile, BCa, equal-tailed studentised and t intervals.

    Args:
        values: One number a query, shape (queries,): differences of two systems, or the values
            of one.
        confidence: Between 0 and 1.
        resamples: Draws.
        seed: Of the draws. The result does not depend on the queries' order, and negated
            values give the negated interval.

    Returns:
        The limits, around the values' mean.

    Raises:
        UsageError: If there are fewer than two values, one is not a finite number, or
            ``confidence`` or ``resamples`` is out of its range.

    Source:
        Hall, "On symmetric bootstrap confidence intervals", J. R. Statist. Soc. B 50(1), 1988,
        doi:10.1111/j.2517-6161.1988.tb01707.x; for retrieval: Sakai, "Evaluating evaluation
        metrics based on the bootstrap", SIGIR 2006, doi:10.1145/1148170.1148261.
    """
    given = np.sort(checked(values, least=2))
    check_resamples(resamples)
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    mean = math.fsum(given) / len(given)
    if given[0] == given[-1]:
        return Interval(float(given[0]), float(given[0]))
    apart = given - mean
    mirrored = -apart[::-1]
    unlike = np.flatnonzero(mirrored != apart)
    if len(unlike) and mirrored[unlike[0]] < apart[unlike[0]]:
        apart = mirrored  # the same draws for the negated values
    t = _draws(apart, resamples, seed)
    rank = min(math.ceil(confidence * (resamples + 1)), resamples) - 1
    half = float(np.partition(t, rank)[rank]) * float(apart.std(ddof=1)) / math.sqrt(len(apart))
    return Interval(mean - half, mean + half)


def _draws(apart: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """``|mean* - mean| / (s* / √n)`` of each draw; infinite without spread. Mean 0 given."""
    n = len(apart)
    none = 1e-12 * float(np.square(apart).max())
    rng = np.random.default_rng(seed)
    out = np.full(resamples, math.inf)
    step = max(1, _CHUNK // n)
    for start in range(0, resamples, step):
        drawn = apart[rng.integers(0, n, (min(step, resamples - start), n))]
        means = drawn.mean(axis=1)
        spread = np.maximum(np.square(drawn).mean(axis=1) - np.square(means), 0.0)
        there = spread > none
        t = out[start : start + len(drawn)]
        t[there] = np.abs(means[there]) / np.sqrt(spread[there] / (n - 1))
    return out
