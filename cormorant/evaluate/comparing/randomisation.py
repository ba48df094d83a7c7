"""Could a difference this large have come about by chance?"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cormorant import defaults
from cormorant.evaluate.comparing.values import check_resamples, checked

__all__ = ["randomisation_p"]

_EXACT = 14
"""Up to so many moved queries every assignment of signs is counted, 16,384 of them."""
_CHUNK = 2_000_000
"""Signs drawn at once: 16 MB."""


def randomisation_p(
    differences: ArrayLike,
    *,
    resamples: int = defaults.RESAMPLES,
    seed: int = defaults.RESAMPLING_SEED,
) -> float:
    """How often would two equal systems differ at least this much in the mean? Two-sided.

    If the systems are equal, each query's difference might as well have had the other sign.
    The p-value is the share of sign assignments whose mean is at least as far from 0 as the
    one observed: counted over all ``2^m`` if at most 14 queries moved (m; the sign of a zero
    changes nothing), else estimated from ``resamples`` random ones as
    ``(count + 1) / (resamples + 1)``, which keeps the false-positive rate.

    Args:
        differences: One system minus the other, query by query, shape (queries,).
        resamples: Random assignments; the smallest p that can come out is about 1 / resamples.
        seed: Of the random assignments. The result does not depend on the queries' order,
            nor on which system is subtracted.

    Returns:
        From 0 (exclusive) to 1; 1 if no query moved.

    Raises:
        UsageError: If there are no differences, one is not a number, or ``resamples`` is less
            than 1.

    Example:
        >>> randomisation_p([0.1, 0.2, 0.1, 0.3, 0.1, 0.2])
        0.03125

    Source:
        Fisher's randomisation test, as Smucker, Allan and Carterette describe it for retrieval,
        "A comparison of statistical significance tests for information retrieval evaluation",
        CIKM 2007, doi:10.1145/1321440.1321528; the estimate: Phipson and Smyth, 2010,
        doi:10.2202/1544-6115.1585.
    """
    given = checked(differences, least=1)
    check_resamples(resamples)
    sizes = np.sort(np.abs(given[given != 0]))
    if not len(sizes):
        return 1.0
    whole = sizes.sum()
    # Sums of the same numbers in another order differ in their last digits: those are ties.
    observed = abs(given.sum()) - 1e-9 * whole
    if len(sizes) <= _EXACT:
        signs = np.array(list(product((0.0, 1.0), repeat=len(sizes))))
        return float(np.mean(np.abs(whole - 2 * (signs @ sizes)) >= observed))
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // len(sizes))
    count = sum(
        _as_far(rng, sizes, whole, observed, min(step, resamples - start))
        for start in range(0, resamples, step)
    )
    return (count + 1) / (resamples + 1)


def _as_far(
    rng: np.random.Generator,
    sizes: NDArray[np.float64],
    whole: float,
    observed: float,
    draws: int,
) -> int:
    """How many of ``draws`` random sign assignments lie as far from 0 as what was observed."""
    packed = np.frombuffer(rng.bytes(draws * -(-len(sizes) // 8)), np.uint8).reshape(draws, -1)
    flipped = np.unpackbits(packed, axis=1, count=len(sizes)).astype(np.float64)
    return int(np.count_nonzero(np.abs(whole - 2 * (flipped @ sizes)) >= observed))
