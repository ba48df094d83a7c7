"""Which records hold which terms, and how does that change?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cormorant.defaults import BM25_B, BM25_K1
from cormorant.errors import UsageError
from cormorant.index.contract import Arrays, Mask
from cormorant.index.growing import Growing
from cormorant.index.text import layout
from cormorant.index.text.asked import Asked
from cormorant.index.text.batch import decode, encode
from cormorant.index.text.bm25 import Formula
from cormorant.index.text.levels import Merge, Merged, due, settle
from cormorant.index.text.lookup import find, locate
from cormorant.index.text.merge import merge, renumber
from cormorant.index.text.segment import Segment
from cormorant.index.text.sound import faults
from cormorant.index.text.tail import TAIL_POSTINGS, Tail

__all__ = ["TextIndex"]


class TextIndex:
    """BM25 over the terms of records 0 … n-1. Immutable; changes make a new one.

    ``alive`` says which records count (None: all): the dead are in no frequency, in no
    average and in no result, so removing them for good changes no score.

    Example:
        >>> index = TextIndex.empty().append(TextIndex.encode([["blue", "fish"], ["red", "fish"]]))
        >>> asked = index.ask(["red", "fish"])
        >>> asked.search(k=2).slots.tolist()
        [1, 0]
        >>> [match.term for match in asked.matches(1)]
        ['red', 'fish']
    """

    __slots__ = ("_counted", "_lengths", "_segments", "_tail", "_total")

    def __init__(
        self, segments: tuple[Segment, ...], tail: Tail, lengths: Growing[np.int32], total: int
    ) -> None:
        self._segments = segments
        self._tail = tail
        self._lengths = lengths
        self._total = total
        self._counted: tuple[Mask, int, int] | None = None

    # -- making and changing -------------------------------------------------------------

    @classmethod
    def empty(cls) -> TextIndex:
        """An index of no records."""
        return cls((), Tail.empty(), Growing(np.empty(0, np.int32)), 0)

    @staticmethod
    def encode(documents: Iterable[Sequence[str]]) -> bytes:
        """The bytes that :meth:`append` takes.

        Args:
            documents: The terms of each record, repeats kept.
        """
        return encode(documents)

    def append(self, blob: bytes) -> TextIndex:
        """This index with the records of :meth:`encode` behind it.

        Raises:
            CorruptionError: If the bytes are not what ``encode`` made, or this index is damaged.
        """
        batch = decode(blob)
        tail = self._tail.append(batch, self.n)
        segments = self._segments
        if len(tail) >= TAIL_POSTINGS:
            segments = settle((*segments, tail.to_segment()), self.n + len(batch.lengths))
            tail = Tail.empty()
        total = self._total + int(batch.lengths.sum(dtype=np.int64))
        return TextIndex(segments, tail, self._lengths.append(batch.lengths), total)

    def due(self) -> Merge | None:
        """The merge that this index would gain by; None if none is worth its time.

        Appending merges what takes little; larger merges wait for someone to run them aside,
        without a lock, and to put what came out into the index as it is then::

            merge = index.due()
            if merge is not None:
                merged = merge.run()  # takes long, changes nothing
                index = index.adopt(merged)  # takes no time
        """
        return due(self._segments, self.n)

    def adopt(self, merged: Merged) -> TextIndex:
        """This index with a merge's outcome in the place of what was merged.

        An index in which those segments are no more is returned as it is. No score changes.
        """
        segments = merged.put_into(self._segments)
        if segments is self._segments:
            return self
        return TextIndex(segments, self._tail, self._lengths, self._total)

    def take(self, keep: NDArray[np.int64]) -> TextIndex:
        """The records in ``keep`` alone, numbered anew.

        Args:
            keep: int64, ascending slots.

        Raises:
            UsageError: If the slots do not ascend or are not in the index.
            CorruptionError: If the index is damaged.
        """
        keep = np.asarray(keep, np.int64)
        if len(keep) and not (
            keep[0] >= 0 and keep[-1] < self.n and bool(np.all(keep[1:] > keep[:-1]))
        ):
            raise UsageError(f"take() needs ascending slots below {self.n}.")
        lengths = self._lengths.view[keep]
        renumbered = [renumber(segment, keep, self.n) for segment in self._one_segment()]
        segments = tuple(segment for segment in renumbered if len(segment.hashes))
        total = int(lengths.sum(dtype=np.int64))
        return TextIndex(segments, Tail.empty(), Growing(lengths), total)

    def _one_segment(self) -> tuple[Segment, ...]:
        segments = self._segments
        if len(self._tail):
            segments = (*segments, self._tail.to_segment())
        return (merge(segments, self.n),) if segments else ()

    def to_arrays(self) -> Arrays:
        """Named arrays for a derived file."""
        return layout.to_arrays(self._one_segment(), self._lengths.view)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> TextIndex:
        """The index that :meth:`to_arrays` described; works on read-only mapped arrays.

        Raises:
            CorruptionError: If an array is missing, or they do not fit together.
        """
        segments, lengths = layout.from_arrays(arrays)
        return cls(segments, Tail.empty(), Growing(lengths), int(lengths.sum(dtype=np.int64)))

    def problems(self) -> list[str]:
        """What is wrong inside, a sentence each; reads every posting."""
        found = [fault for segment in self._segments for fault in faults(segment, self.n)]
        # Only what can be followed can be merged.
        return found or layout.problems(self._one_segment(), self._lengths.view)

    @property
    def n(self) -> int:
        """Records, dead ones included."""
        return len(self._lengths)

    # -- asking --------------------------------------------------------------------------

    def ask(
        self,
        terms: Sequence[str],
        *,
        alive: Mask | None = None,
        k1: float = BM25_K1,
        b: float = BM25_B,
    ) -> Asked:
        """Look a query's terms up, once for all that is asked about it.

        Args:
            terms: The query's, repeats kept: each counts.
            alive: bool, shape (n,): who counts; None: all.
            k1: See :mod:`cormorant.index.text.bm25`.
            b: The same.

        Raises:
            CorruptionError: If the postings of a term are damaged.
        """
        records, total = self.n, self._total
        if alive is not None:
            records, total = self._living(alive)
            alive = alive if records < self.n else None
        return Asked(
            terms,
            find(terms, self._segments, self._tail, alive, self.n),
            Formula(records, total / records if records else 0.0, k1, b),
            alive=alive,
            n=self.n,
            segments=len(self._segments) + bool(len(self._tail)),
        )

    def _living(self, alive: Mask) -> tuple[int, int]:
        """How many records count, and how many terms they have.

        Counted once for an array that cannot be written to, as a snapshot's cannot.
        """
        held = self._counted
        if held is not None and held[0] is alive:
            return held[1:]
        dead = np.flatnonzero(~alive)
        records = self.n - len(dead)
        total = self._total - int(self._lengths.view[dead].sum(dtype=np.int64))
        if not alive.flags.writeable:
            self._counted = (alive, records, total)
        return records, total

    def contains_all(self, terms: Sequence[str]) -> Mask:
        """Which records have every term, dead ones included; none if there are no terms.

        Returns:
            bool, shape (n,).

        Raises:
            CorruptionError: If the postings of a term are damaged.
        """
        mask = np.zeros(self.n, np.bool_)
        found = find(terms, self._segments, self._tail, None, self.n)
        if not found or len(found) < len(set(terms)):
            return mask
        slots = found[0].postings().slots
        for term in found[1:]:
            _, has = locate(term.postings().slots, slots)
            slots = slots[has]
        mask[slots] = True
        return mask
