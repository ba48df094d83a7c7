"""What do records score, summed term by term, and how do the scores spread?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask
from cormorant.index.text.bm25 import Formula
from cormorant.index.text.kernels import current
from cormorant.index.text.lookup import QueryTerm, together
from cormorant.index.text.segment import Postings

__all__ = ["Spread", "Tally", "distinct"]

_BLOCK: Final = 4096  # scores squared and summed in float32 before float64 takes over
_CANCELLED: Final = 1e-3  # a variance below this share of the mean square is computed anew
_ROUNDING: Final = 4e-7  # a deviation below this share of the scores is float32's own
_SPARSE: Final = 8  # sorting a slot costs about what passing over this many does


_TOGETHER: Final = 65_536  # postings whose worth stays in a processor's cache
_SAMPLED: Final = 32  # of the postings summed, one in so many is asked for a good record


class Spread(NamedTuple):
    """Over all live records, those that score 0 included; ``largest`` is the best score."""

    mean: float
    std: float
    largest: float


class Tally:
    """The scores of one query, summed as far as they were needed: the rarest terms first.

    The order a record's score is summed in is the same however far it went and whoever goes
    on: so is every bit of it.

    Args:
        terms: Rarest first.
        formula: BM25 over the live records.
        n: Slots there are.
        mask: bool, shape (n,): who is scored at all: none of the dead; None: everyone.

    Attributes:
        terms: As given.
        weights: float32, one a term: count · idf, which no posting's worth exceeds.
        scores: float32: by slot, of the first ``done`` terms.
        kernel: Who does the arithmetic.
        done: How many terms are summed.
        read: Postings they have, of dead records too.
    """

    def __init__(
        self, terms: Sequence[QueryTerm], formula: Formula, n: int, mask: Mask | None = None
    ) -> None:
        self.terms = terms
        self.weights = np.array(
            [term.times * formula.idf(term.df) for term in terms], dtype=np.float32
        )
        self.kernel = current()
        self._formula = formula
        self._mask = mask
        self._blocks = np.zeros((-(-n // _BLOCK), _BLOCK), np.float32)
        self.scores = self._blocks.reshape(-1)[:n]
        self._slots: list[NDArray[np.int32]] = []
        self._worth: list[tuple[NDArray[np.float32], NDArray[np.int64]]] = []
        self.done = 0
        self.read = self._summed = 0

    def add(self, upto: int) -> None:
        """Sum the terms up to one."""
        terms = self.terms[self.done : upto]
        if not terms:
            return
        weights = self.weights[self.done : upto]
        worth = np.empty(sum(term.size for term in terms), np.float32)
        counts = np.zeros(len(terms), np.int64)
        at = 0
        for first, ends, postings in _blocks(terms):
            mine = slice(first, first + len(ends))
            slots = self.kernel.sum(
                self.scores, postings, ends, weights[mine], self._formula, self._mask, worth[at:]
            )
            counts[mine] += np.diff(ends, prepend=0)
            self._slots.append(slots)
            at += len(slots)
        self._worth.append((worth, counts))
        self._summed += at
        self.read += len(worth)
        self.done = upto

    def touched(self) -> NDArray[np.int32]:
        """The slots of the postings summed so far, as they came: one may come several times."""
        return _joined(self._slots)

    def rarest(self, count: int) -> Iterator[NDArray[np.int32]]:
        """Slots as :meth:`touched`: the first, at least ``count`` of them; then all."""
        count = max(count, self._summed // _SAMPLED)
        if self._summed > 2 * count:
            few, held = 0, 0
            while held < count:
                held += len(self._slots[few])
                few += 1
            yield _joined(self._slots[:few])[:count]
        yield self.touched()

    def above(self, least: float) -> NDArray[np.int64]:
        """The slots that score at least so much so far, and more than 0; ascending."""
        if self._summed * _SPARSE < len(self.scores):
            slots = self.touched()
            if least > 0:
                slots = slots[self.scores.take(slots) >= least]
            return distinct(slots).astype(np.int64)
        high = self.scores >= least if least > 0 else self.scores > 0
        return np.flatnonzero(high)

    def look_up(self, number: int, slots: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Add what one term is worth to the values of some ascending slots, as :meth:`add` would.

        Args:
            number: Which term.
            slots: Ascending.
            values: Changed in place.
        """
        for part in self.terms[number].parts:
            self.kernel.look_up(part, slots, values, self.weights[number], self._formula)

    # -- of everyone ---------------------------------------------------------------------

    def of(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The whole scores of some slots, in their order."""
        self.add(len(self.terms))
        return self.scores.take(slots)

    @cached_property
    def matched(self) -> int:
        """How many records score more than 0."""
        self.add(len(self.terms))
        if self._summed * _SPARSE < len(self.scores):
            return len(self.above(0.0))
        return int(np.count_nonzero(self.scores > 0))

    def spread(self, records: int) -> Spread:
        """Mean and deviation over ``records`` live ones; dead ones score 0 here."""
        if not self.terms:
            return Spread(0.0, 0.0, 0.0)
        self.add(len(self.terms))
        # Term by term, so that it depends neither on what was summed together nor on the dead;
        # summed pairwise: float32 is enough.
        mean = sum(
            float(np.add.reduce(worth[end - count : end]))
            for worth, counts in self._worth
            for count, end in zip(counts.tolist(), np.cumsum(counts).tolist(), strict=True)
        )
        mean /= records
        squares = np.einsum("ij,ij->i", self._blocks, self._blocks)
        square = float(squares.sum(dtype=np.float64)) / records
        variance = square - mean * mean
        if variance < _CANCELLED * square:
            off = self.scores[self.scores > 0].astype(np.float64) - mean
            rest = (records - self.matched) * mean * mean
            variance = float(np.add.reduce(off * off) + rest) / records
        std = math.sqrt(max(variance, 0.0))
        if std <= _ROUNDING * math.sqrt(square):
            std = 0.0
        return Spread(mean, std, float(self.scores.max()))


def _blocks(
    terms: Sequence[QueryTerm],
) -> Iterator[tuple[int, NDArray[np.int64], Postings]]:
    """The postings of terms: short lists together, to be few calls; long ones a piece at a time.

    Yields:
        Which term is the first, where each one's postings end, and the postings.
    """
    first = 0
    while first < len(terms):
        last, size = first, 0
        while last < len(terms) and size + terms[last].size <= _TOGETHER:
            size += terms[last].size
            last += 1
        if last > first:
            some = terms[first:last]
            ends = np.cumsum([term.size for term in some])
            yield first, ends, together([part for term in some for part in term.parts])
            first = last
            continue
        for part in terms[first].parts:
            for at in range(0, len(part.slots), _TOGETHER):
                piece = Postings(*(array[at : at + _TOGETHER] for array in part))
                yield first, np.array([len(piece.slots)]), piece
        first += 1


def _joined(arrays: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int32)


def distinct(slots: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each once, ascending; np.unique would hold the interpreter lock."""
    ordered = np.sort(slots)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
