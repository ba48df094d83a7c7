"""How far do two judges agree beyond chance?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.comparing.interval import Interval

__all__ = ["Agreement", "Weights", "agreement", "cohen_kappa", "qrels_agreement"]

Weights: TypeAlias = Literal["linear", "quadratic"]

_CHUNK: Final = 4_000_000
"""Numbers drawn at once: 32 MB."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree.

    Attributes:
        kappa: Cohen's; 1 is full agreement, 0 that of chance. NaN if both gave one and the
            same grade throughout: nothing is known then.
        interval: Its limits; infinite where the data set none.
        observed: Share of pairs with the same grade.
        pairs: Judged by both.
        groups: Of pairs that are not independent of each other, such as queries.
        weights: How far apart two grades count; None: equal or not.
        grades: That occur, ascending.
        table: How often the first judge gave the row's grade and the second the column's.
    """

    kappa: float
    interval: Interval
    observed: float
    pairs: int
    groups: int
    weights: Weights | None
    grades: tuple[float, ...]
    table: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        kind = "kappa" if self.weights is None else f"{self.weights} weighted kappa"
        return (
            f"{kind} {self.kappa:.3f} [{self.interval.low:.3f}, {self.interval.high:.3f}] over "
            f"{self.pairs} pairs; same grade in {self.observed:.0%}"
        )


def cohen_kappa(
    ours: Sequence[float], theirs: Sequence[float], *, weights: Weights | None = None
) -> float:
    """Agreement beyond chance: 1 is full, 0 that of chance.

        κ = 1 - Σ w·o / Σ w·e

    over all pairs of grades, ``o`` being the share of things that got this pair, ``e`` what it
    would be if the judges gave their grades independently, ``w`` how far the two grades are
    apart: 0 or 1, or with ``linear`` weights ``|a - b|``, with ``quadratic`` ``(a - b)²``.

    Args:
        ours: One judge's grades.
        theirs: The other's, in the same order.
        weights: None for names without order.

    Returns:
        NaN if all grades are the same one: chance would agree fully, too.

    Raises:
        UsageError: If they are not as many, none, or no finite numbers.

    Source:
        Cohen, A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20(1), 1960,
        doi:10.1177/001316446002000104; weighted: Cohen, Psychol. Bull. 70(4), 1968,
        doi:10.1037/h0026256. Deviation from scikit-learn's: grades are weighed by their own
        distance, not by their places among those that occur.

    Example:
        >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
        0.5
    """
    table, grades = _table(_checked(ours, theirs), [0] * len(ours))
    return float(_kappas(table.sum(axis=0)[None, :], grades, weights)[0])


def agreement(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    weights: Weights | None = None,
    groups: Sequence[Hashable] | None = None,
    confidence: float = defaults.CONFIDENCE,
    resamples: int = defaults.RESAMPLES,
    seed: int = defaults.RESAMPLING_SEED,
) -> Agreement:
    """Cohen's kappa with a bootstrap interval.

    Args:
        ours: One judge's grades.
        theirs: The other's, in the same order.
        weights: See :func:`cohen_kappa`.
        groups: What each thing belongs to, such as its query: judgements of one query are not
            independent, so queries are drawn, with all of theirs. None: each thing by itself.
        confidence: Of the interval, between 0 and 1.
        resamples: Draws.
        seed: Of the draws.

    Raises:
        UsageError: As :func:`cohen_kappa`; on a confidence out of its range.

    Example:
        >>> agreement([1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10).kappa
        0.5

    Source:
        The percentile bootstrap over clusters: Efron and Tibshirani, An Introduction to the
        Bootstrap, 1993, chapter 13; Field and Welsh, Bootstrapping clustered data, J. R.
        Statist. Soc. B 69(3), 2007. A draw in which kappa is not defined counts as below and
        above all others: with few things the limits are infinite.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    pairs = _checked(ours, theirs)
    if groups is not None and len(groups) != len(pairs):
        raise UsageError(f"groups must name one for each of {len(pairs)}; got {len(groups)}.")
    tables, grades = _table(pairs, list(range(len(pairs))) if groups is None else list(groups))
    whole = tables.sum(axis=0)
    low, high = _limits(tables, grades, weights, confidence, resamples, seed)
    size = len(grades)
    square = whole.reshape(size, size)
    return Agreement(
        kappa=float(_kappas(whole[None, :], grades, weights)[0]),
        interval=Interval(low, high),
        observed=float(np.trace(square) / whole.sum()),
        pairs=len(pairs),
        groups=len(tables),
        weights=weights,
        grades=tuple(grades.tolist()),
        table=tuple(tuple(int(count) for count in row) for row in square.tolist()),
    )


def qrels_agreement(
    ours: Mapping[str, Mapping[str, float]],
    theirs: Mapping[str, Mapping[str, float]],
    *,
    weights: Weights | None = "linear",
    **options: Any,
) -> Agreement:
    """The agreement of two sets of judgements, over the pairs that both have judged.

    Args:
        ours: Query id to document ids and grades.
        theirs: The other's.
        weights: See :func:`cohen_kappa`; for yes-or-no grades all are the same.
        **options: ``confidence``, ``resamples``, ``seed``; the queries are the groups.

    Raises:
        UsageError: If they have no pair in common.

    Example:
        >>> ours = {str(q): {"a": 1, "b": 0} for q in range(9)}
        >>> qrels_agreement(ours, ours).kappa
        1.0
    """
    common = [
        (query, grade, theirs[query][doc])
        for query, grades in ours.items()
        if query in theirs
        for doc, grade in grades.items()
        if doc in theirs[query]
    ]
    if not common:
        raise UsageError(
            "The two sets have no pair of query and document in common, so nothing can be said "
            "of their agreement. Let both judge the same pairs."
        )
    queries, first, second = zip(*common, strict=True)
    return agreement(first, second, weights=weights, groups=queries, **options)


def _checked(ours: Sequence[float], theirs: Sequence[float]) -> NDArray[np.float64]:
    if len(ours) != len(theirs) or not len(ours):
        raise UsageError(
            f"Two judges give as many grades, at least one; got {len(ours)} and {len(theirs)}."
        )
    try:
        pairs = np.array([ours, theirs], dtype=np.float64).T
    except (TypeError, ValueError) as error:
        raise UsageError(f"Grades are numbers; {error}.") from error
    if not np.isfinite(pairs).all():
        raise UsageError(
            "Grades are finite numbers; got one that is not. Leave out what was not judged."
        )
    return pairs


def _table(
    pairs: NDArray[np.float64], groups: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts of each pair of grades by group, shape (groups, grades²), and the grades."""
    grades, places = np.unique(pairs, return_inverse=True)
    cells = places.reshape(pairs.shape) @ np.array([len(grades), 1])
    number: dict[Hashable, int] = {}
    rows = [number.setdefault(group, len(number)) for group in groups]
    table = np.zeros((len(number), len(grades) ** 2))
    np.add.at(table, (rows, cells), 1.0)
    return table, grades


def _kappas(
    tables: NDArray[np.float64], grades: NDArray[np.float64], weights: Weights | None
) -> NDArray[np.float64]:
    """Of each table, shape (n, grades²)."""
    apart = np.abs(grades[:, None] - grades[None, :])
    if weights is None:
        apart = (apart > 0).astype(np.float64)
    elif weights == "quadratic":
        apart = np.square(apart)
    elif weights != "linear":
        raise UsageError(f"weights is None, 'linear' or 'quadratic'; got {weights!r}.")
    size = len(grades)
    counts = tables.reshape(-1, size, size)
    total = counts.sum(axis=(1, 2))
    by_chance = np.einsum("ni,ij,nj->n", counts.sum(axis=2), apart, counts.sum(axis=1))
    observed = np.einsum("nij,ij->n", counts, apart)
    out = np.full(len(counts), math.nan)
    there = by_chance > 0
    out[there] = 1.0 - observed[there] * total[there] / by_chance[there]
    return out


def _limits(
    tables: NDArray[np.float64],
    grades: NDArray[np.float64],
    weights: Weights | None,
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float]:
    count = len(tables)
    rng = np.random.default_rng(seed)
    # Groups with the same table are drawn as one: the sum is the same, and there are few of them.
    kinds, many = np.unique(tables, axis=0, return_counts=True)
    drawn = []
    step = max(1, _CHUNK // len(kinds))
    for start in range(0, resamples, step):
        times = rng.multinomial(count, many / count, size=min(step, resamples - start))
        drawn.append(_kappas(times.astype(np.float64) @ kinds, grades, weights))
    kappas = np.concatenate(drawn)
    tail = (1.0 - confidence) / 2.0
    low = np.quantile(np.nan_to_num(kappas, nan=-math.inf), tail, method="lower")
    high = np.quantile(np.nan_to_num(kappas, nan=math.inf), 1.0 - tail, method="higher")
    return float(low), float(high)
