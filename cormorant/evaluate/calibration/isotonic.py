"""Which never-falling curve fits yes-or-no answers best?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Steps", "isotonic"]

_MAX_STEPS: Final = 512
"""More are thinned out: they differ by less than can be measured."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A never-falling curve: its knots, ascending, with straight lines between.

    Attributes:
        x: float64, shape (m,), strictly ascending.
        y: float64, shape (m,), in (0, 1), never falling.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The curve's value at each point; beyond its ends that of the end."""
        return np.interp(x, self.x, self.y)


def isotonic(x: NDArray[np.float64], answers: NDArray[np.bool_]) -> Steps:
    """Isotonic regression by pooling adjacent violators.

    Points of equal ``x`` are one; then neighbours whose means fall are pooled until none does.
    A pool of ``n`` answers, ``s`` of them yes, stands for ``(s + 1/2) / (n + 1)``: few answers
    never say 0 or 1. Where that makes a small pool fall below the one before it, it is raised
    to it. A pool gives a knot at each of its ends.

    Args:
        x: Shape (n,), at least one; higher should mean yes.
        answers: Shape (n,).

    Source:
        Ayer, Brunk, Ewing, Reid and Silverman, An empirical distribution function for sampling
        with incomplete information, Ann. Math. Statist. 26(4), 1955; Barlow, Bartholomew,
        Bremner and Brunk, Statistical Inference under Order Restrictions, 1972, chapter 1. For
        probabilities: Zadrozny and Elkan, KDD 2002, doi:10.1145/775047.775151. Deviation: the
        half that is added to the answers (Krichevsky and Trofimov, IEEE Trans. Inf. Theory
        27(2), 1981).
    """
    places, inverse = np.unique(x, return_inverse=True)
    counts = np.bincount(inverse).astype(np.float64)
    yes = np.bincount(inverse, weights=answers.astype(np.float64))
    # Each pool: how many said yes, how many there are, its first and its last place.
    pools: list[tuple[float, float, int, int]] = []
    for place, (s, n) in enumerate(zip(yes.tolist(), counts.tolist(), strict=True)):
        pool = (s, n, place, place)
        # s/n falls or stays, written without dividing
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2], place)
        pools.append(pool)
    means = np.maximum.accumulate([(s + 0.5) / (n + 1.0) for s, n, _, _ in pools])
    ends = [(first, last) for _, _, first, last in pools]
    knots = np.array([place for pair in ends for place in dict.fromkeys(pair)])
    values = np.repeat(means, [len(set(pair)) for pair in ends])
    if len(knots) > _MAX_STEPS:
        kept = np.unique(np.linspace(0, len(knots) - 1, _MAX_STEPS).round().astype(np.int64))
        knots, values = knots[kept], values[kept]
    return Steps(places[knots], values)
