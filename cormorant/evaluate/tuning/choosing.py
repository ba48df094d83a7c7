"""Which configuration is the simplest that is as good as the best, as far as can be told?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.groups import Grouping
from cormorant.evaluate.tuning.point import Point, simplicity

__all__ = ["Choice", "Fold", "choose", "cross_validate"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and beside what.

    Attributes:
        chosen: Its number among the configurations.
        best: The number of the one with the highest mean.
        within: How many configurations were as good as the best, within noise.
    """

    chosen: int
    best: int
    within: int


@dataclass(frozen=True, slots=True)
class Fold:
    """One part of cross-validation.

    Attributes:
        chosen: What was chosen on the other parts.
        gain: Mean of it minus that of the store as it is set, on this part.
        queries: How many this part has.
    """

    chosen: Point | None
    gain: float
    queries: int


def choose(
    values: NDArray[np.float64],
    points: Sequence[Point | None],
    among: Grouping | None = None,
) -> Choice:
    """The simplest configuration within one standard error of the best.

    Within noise is whose paired differences to the best have a mean of at most one standard
    error: ``mean(b - c) ≤ sd(b - c) / √n``.

    Args:
        values: Of each configuration at each query, shape (points, queries); higher is better.
        points: The configurations, in the order of the rows.
        among: The queries in groups; the standard error is then one over groups.

    Source:
        Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, section
        3.4.3: the one-standard-error rule. Deviation: the standard error is that of paired
        differences over queries, not of the best one's own mean, which is far wider and would
        call almost everything the same.
    """
    means = values.mean(axis=1)
    order = sorted(range(len(points)), key=lambda number: simplicity(points[number]))
    top = means.max()
    # Sums of the same values in another order differ in the last digits: those are ties.
    best = next(number for number in order if means[number] >= top - 1e-12)
    apart = values[best] - values
    told = apart if among is None else np.stack([among.witnesses(row) for row in apart])
    error = told.std(axis=1, ddof=1) / math.sqrt(told.shape[1])
    near = apart.mean(axis=1) <= error + 1e-12
    chosen = next(number for number in order if near[number])
    return Choice(chosen, best, int(np.count_nonzero(near)))


def cross_validate(
    values: NDArray[np.float64],
    points: Sequence[Point | None],
    *,
    folds: int,
    among: Grouping | None = None,
) -> tuple[Fold, ...]:
    """What does choosing gain on queries that had no part in the choice?

    Args:
        values: As in :func:`choose`; queries in shuffled order. The first row is the store as
            it is set.
        points: As in :func:`choose`.
        folds: Parts; each is judged by what the others choose.
        among: The queries in groups, none of which is parted.

    Source:
        Stone, Cross-validatory choice and assessment of statistical predictions, J. R.
        Statist. Soc. B 36(2), 1974.
    """
    out = []
    units = among or Grouping(np.arange(values.shape[1]), values.shape[1])
    for numbers in np.array_split(np.arange(units.count), folds):
        inside = np.isin(units.numbers, numbers)
        part, others = np.flatnonzero(inside), np.flatnonzero(~inside)
        rest = None if among is None else among.part(others)
        chosen = choose(values[:, others], points, rest).chosen
        gain = float((values[chosen, part] - values[0, part]).mean())
        out.append(Fold(points[chosen], gain, len(part)))
    return tuple(out)
