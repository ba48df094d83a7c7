"""Which records score highest, without summing what cannot change that?

MaxScore (Turtle and Flood, Query evaluation: strategies and optimizations, 1995), term at a time:
a record is worth at most what its terms so far are worth and the weights of the terms to come. The
rarest terms give some good records; looked up in all other lists, the k-th of them is a score that
k records reach. Records that have only the commonest terms cannot reach it, so those lists are not
summed: the few that still can are looked up in them. Nothing is approximate. Records that tie with
the k-th are all kept, and no sum is taken in another order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask
from cormorant.index.text.tally import Tally, distinct

__all__ = ["Scored", "best"]

_PROBED: Final = 4096  # of the rarest terms' postings: looked at for records that score well
_LOOKED_UP: Final = 24  # summing this many postings costs what looking one record up does
_MARGIN: Final = 0.6  # lists to come may add so much of the k-th score: else too many still could
_ROUNDING: Final = 2.0**-22  # of a sum, a term: four times what float32 can be off by


class Scored(NamedTuple):
    """Slots by descending score, ties by the lower slot.

    Attributes:
        candidates: How many were compared.
    """

    slots: NDArray[np.int64]
    scores: NDArray[np.float32]
    candidates: int


def best(tally: Tally, k: int, mask: Mask | None) -> Scored:
    """The ``k`` best of the slots where ``mask`` is True (None: of all) that score at all.

    Args:
        tally: Summed to anywhere; it is summed further as far as needed.
        k: At least 1.
        mask: bool, by slot.
    """
    rest = _rest(tally)
    least = _reached(tally, k, mask, rest)
    done = int(np.argmax(rest < _MARGIN * least)) if least > 0 else len(tally.terms)
    tally.add(done)
    found = _allowed(tally.above(_cut(least, rest, tally.done)), mask)
    values = tally.scores.take(found)
    while tally.done < len(tally.terms):
        if len(found) * _LOOKED_UP < tally.terms[tally.done].size:
            found, values = _looked_up(tally, found, values, least, rest)
            return _top(found, values, k)
        tally.add(tally.done + 1)
        values = tally.scores.take(found)
        found, values = _kept(found, values, _cut(least, rest, tally.done))
    return _top(found, values, k)


def _rest(tally: Tally) -> NDArray[np.float64]:
    """What the terms from each one on add at most; 0 behind the last."""
    rest = np.zeros(len(tally.weights) + 1)
    np.cumsum(tally.weights[::-1].astype(np.float64), out=rest[1:])
    return rest[::-1]


def _cut(least: float, rest: NDArray[np.float64], done: int) -> float:
    """What a sum of the first terms must be to reach ``least`` in the end, rounded or not."""
    return least / (1.0 + _ROUNDING * len(rest)) - float(rest[done])


def _allowed(slots: NDArray[np.int64], mask: Mask | None) -> NDArray[np.int64]:
    return slots if mask is None else slots[mask.take(slots)]


def _kept(
    slots: NDArray[np.int64], values: NDArray[np.float32], least: float
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    kept = np.flatnonzero(values >= least)
    return slots.take(kept), values.take(kept)


def _reached(tally: Tally, k: int, mask: Mask | None, rest: NDArray[np.float64]) -> float:
    """A score that ``k`` allowed records reach; 0 if not so many score at all."""
    upto = max(tally.done, sum(term.size < tally.kernel.long for term in tally.terms))
    while True:
        tally.add(upto)
        good = _good(tally, k, mask)
        if len(good) >= k:
            _, values = _looked_up(tally, good, tally.scores.take(good), 0.0, rest)
            return _kth(values, k)
        if upto == len(tally.terms):
            return 0.0
        upto += 1


def _good(tally: Tally, k: int, mask: Mask | None) -> NDArray[np.int64]:
    """At least ``k`` allowed slots that score well so far, ascending; all there are, if fewer.

    They are taken from the postings of the rarest terms, where good ones are.
    """
    wanted = 4 * k
    for some in tally.rarest(max(_PROBED, 8 * k)):
        slots = some if mask is None else some[mask.take(some)]
        values = tally.scores.take(slots)
        while len(slots) > wanted:
            good = distinct(slots[values >= _kth(values, wanted)])
            if len(good) >= k:
                return good.astype(np.int64)
            wanted *= 4  # they came several times, one for each of their terms
        good = distinct(slots)
        if len(good) >= k:
            break
    return good.astype(np.int64)


def _looked_up(
    tally: Tally,
    slots: NDArray[np.int64],
    values: NDArray[np.float32],
    least: float,
    rest: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Whole scores of some ascending slots, from their sums so far.

    Those that cannot reach ``least`` are left out on the way.
    """
    for number in range(tally.done, len(tally.terms)):
        if least > 0:
            slots, values = _kept(slots, values, _cut(least, rest, number))
        tally.look_up(number, slots, values)
    return (slots, values) if least <= 0 else _kept(slots, values, least)


def _top(slots: NDArray[np.int64], values: NDArray[np.float32], k: int) -> Scored:
    candidates = len(slots)
    if candidates > k:
        slots, values = _kept(slots, values, _kth(values, k))
    order = np.lexsort((slots, -values))[:k]
    return Scored(slots[order], values[order], candidates)


def _kth(values: NDArray[np.float32], k: int) -> float:
    """The ``k``-th largest."""
    at = len(values) - k
    return float(np.partition(values, at)[at])
