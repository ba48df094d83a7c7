"""What about the newest records, whose postings are not worth sorting yet?"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np

from cormorant.index.growing import Growing
from cormorant.index.text.batch import Batch
from cormorant.index.text.segment import Postings, Segment, build

__all__ = ["TAIL_POSTINGS", "Tail"]

TAIL_POSTINGS: Final = 32_768
"""Comparing this many term numbers costs about what looking a term up in a segment does."""


class _Vocabulary:
    """Term → number, only ever added to, and shared by all tails that grew from one another.

    A tail does not meet numbers given after it: none of its postings has them.
    """

    __slots__ = ("lock", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.lock = threading.Lock()

    def add(self, terms: list[bytes]) -> list[int]:
        numbers = self.numbers
        with self.lock:
            return [numbers.setdefault(term, len(numbers)) for term in terms]


class Tail:
    """Postings in the order they came: term number, slot, tf, length of record. Immutable."""

    __slots__ = ("_ids", "_lengths", "_slots", "_tf", "_vocabulary")

    def __init__(
        self,
        vocabulary: _Vocabulary,
        ids: Growing[np.int32],
        slots: Growing[np.int32],
        tf: Growing[np.int32],
        lengths: Growing[np.int32],
    ) -> None:
        self._vocabulary = vocabulary
        self._ids = ids
        self._slots = slots
        self._tf = tf
        self._lengths = lengths

    @classmethod
    def empty(cls) -> Tail:
        """A tail of no records."""
        none = Growing(np.empty(0, np.int32))
        return cls(_Vocabulary(), none, none, none, none)

    def __len__(self) -> int:
        """Postings."""
        return len(self._ids)

    def append(self, batch: Batch, first_slot: int) -> Tail:
        """This tail with the records of a batch behind it."""
        numbers = np.array(self._vocabulary.add(batch.terms), np.int32)
        slots = np.arange(first_slot, first_slot + len(batch.lengths), dtype=np.int32)
        return Tail(
            self._vocabulary,
            self._ids.append(numbers[batch.ids]),
            self._slots.append(np.repeat(slots, batch.counts)),
            self._tf.append(batch.tf),
            self._lengths.append(np.repeat(batch.lengths, batch.counts)),
        )

    def find(self, term: bytes) -> Postings | None:
        """The postings of a term, None where it does not occur."""
        number = self._vocabulary.numbers.get(term)
        if number is None:
            return None
        at = np.flatnonzero(self._ids.view == number)
        return self._postings().at(at) if len(at) else None

    def _postings(self) -> Postings:
        return Postings(self._slots.view, self._tf.view, self._lengths.view)

    def to_segment(self) -> Segment:
        """The same postings, sorted by term."""
        with self._vocabulary.lock:
            terms = list(self._vocabulary.numbers)  # a number is its term's place in the order
        return build(terms, self._ids.view, *self._postings())
