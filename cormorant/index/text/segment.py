"""Where are a term's postings? Sorted arrays, in memory or mapped from a file alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError

__all__ = [
    "REPAIR",
    "TF_MAX",
    "Postings",
    "Segment",
    "build",
    "hash_term",
    "length_type",
    "offsets_of",
]

TF_MAX: Final = 255
"""A ``tf`` of this value stands for a larger or equal one, kept in ``big_tf``."""

REPAIR: Final = "check(repair=True) builds the indexes anew from the records."
_DAMAGED: Final = f"Postings are damaged: an offset leads out of its array. {REPAIR}"


def hash_term(term: bytes) -> int:
    """64 bits, the same in every process; equal hashes are told apart by the terms themselves."""
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little")


class Postings(NamedTuple):
    """Where one term occurs.

    Attributes:
        slots: int32, ascending.
        tf: uint8 or int32, how often, at least 1.
        lengths: uint8, uint16 or int32: the terms of each of these records.
    """

    slots: NDArray[np.int32]
    tf: NDArray[Any]
    lengths: NDArray[Any]

    def at(self, which: NDArray[np.intp]) -> Postings:
        """Those at some positions."""
        return Postings(self.slots.take(which), self.tf.take(which), self.lengths.take(which))


@dataclass(frozen=True, slots=True)
class Segment:
    """The inverted postings of a range of slots. Immutable.

    Attributes:
        hashes: uint64, shape (t,), t at least 1, ascending; equal ones by the bytes of their terms.
        term_offsets: int64, shape (t + 1,): where each term begins in ``term_bytes``.
        term_bytes: uint8: the terms in UTF-8, in the order of ``hashes``.
        offsets: int64, shape (t + 1,): where each term's postings begin; every term has some.
        slots: int32, shape (p,): ascending within a term.
        tf: uint8, shape (p,); :data:`TF_MAX` means: look in ``big_tf``.
        big_at: int64, ascending: positions of those postings.
        big_tf: int32: their true counts.
        lengths: uint8, uint16 or int32, whichever holds the longest, shape (p,): how many terms
            the record of each posting has. Kept beside the postings, since a look-up by slot
            costs a cache miss each, more than all the rest of the formula.
        sound: Positions of ``hashes`` whose postings were found to be usable: asked once.
    """

    hashes: NDArray[np.uint64]
    term_offsets: NDArray[np.int64]
    term_bytes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int32]
    tf: NDArray[np.uint8]
    big_at: NDArray[np.int64]
    big_tf: NDArray[np.int32]
    lengths: NDArray[Any]
    sound: set[int] = field(default_factory=set, compare=False, repr=False)

    def find(
        self, hashes: NDArray[np.uint64], terms: Sequence[bytes]
    ) -> list[tuple[int, int, Postings]]:
        """Where each term that occurs was asked for, its position in ``hashes``, its postings.

        Args:
            hashes: uint64, one a term.
            terms: Distinct ones.

        Raises:
            CorruptionError: If an offset leads out of its array.
        """
        held = self.hashes
        at = np.searchsorted(held, hashes)
        hit = np.flatnonzero(held.take(at, mode="clip") == hashes)
        places = at.take(hit)
        starts, ends = (self.term_offsets.take(places + i).tolist() for i in (0, 1))
        froms, tos = (self.offsets.take(places + i).tolist() for i in (0, 1))
        text = self.term_bytes.data
        found = []
        for i, (which, first) in enumerate(zip(hit.tolist(), places.tolist(), strict=True)):
            # A wrong term, also where an offset is damaged, goes the long way.
            if starts[i] >= 0 and text[starts[i] : ends[i]] == terms[which]:
                found.append((which, first, self._postings(froms[i], tos[i])))
                continue
            position = first
            while self.term(position) != terms[which]:  # an equal hash, an unequal term
                position += 1
                if position == len(held) or held[position] != held[first]:
                    break
            else:
                found.append((which, position, self.postings(position)))
        return found

    def term(self, position: int) -> bytes:
        """The term at a position of ``hashes``."""
        start, end = self.term_offsets[position : position + 2].tolist()
        if not 0 <= start <= end <= len(self.term_bytes):
            raise CorruptionError(_DAMAGED)
        return self.term_bytes[start:end].tobytes()

    def postings(self, position: int) -> Postings:
        """The postings of the term at a position of ``hashes``."""
        return self._postings(*self.offsets[position : position + 2].tolist())

    def _postings(self, start: int, end: int) -> Postings:
        if not 0 <= start < end <= len(self.slots):
            raise CorruptionError(_DAMAGED)
        tf: NDArray[Any] = self.tf[start:end]
        if len(self.big_at):
            first, last = np.searchsorted(self.big_at, (start, end)).tolist()
            if last > first:
                at = self.big_at[first:last] - start
                if int(at.min()) < 0 or int(at.max()) >= end - start:
                    raise CorruptionError(_DAMAGED)
                tf = tf.astype(np.int32)
                tf[at] = self.big_tf[first:last]
        return Postings(self.slots[start:end], tf, self.lengths[start:end])


def offsets_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of these lengths begin, and where the last one ends; shape (len + 1,)."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def length_type(longest: int) -> type[np.generic]:
    """The narrowest type for lengths up to ``longest``."""
    return np.uint8 if longest < 1 << 8 else np.uint16 if longest < 1 << 16 else np.int32


def build(
    terms: Sequence[bytes],
    ids: NDArray[np.int32],
    slots: NDArray[np.int32],
    tf: NDArray[np.int32],
    lengths: NDArray[np.int32],
) -> Segment:
    """Invert postings given record by record.

    Args:
        terms: The vocabulary; terms without a posting are left out.
        ids: Shape (p,): each posting's position in ``terms``.
        slots: Shape (p,): ascending; a slot has a term once.
        tf: Shape (p,), at least 1.
        lengths: Shape (p,): terms of each posting's record.
    """
    per_term = np.bincount(ids, minlength=len(terms))
    hashes = np.fromiter(map(hash_term, terms), np.uint64, len(terms))
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    if np.any(sorted_hashes[1:] == sorted_hashes[:-1]):
        order = np.array(sorted(order.tolist(), key=lambda i: (hashes[i], terms[i])), np.int64)
    order = order[per_term[order] > 0]
    rank = np.zeros(len(terms), np.int64)
    rank[order] = np.arange(len(order))
    ranks = rank[ids]
    if len(order) <= 1 << 16:
        ranks = ranks.astype(np.uint16)  # sorted by radix, several times faster
    by_term = np.argsort(ranks, kind="stable")
    tf = tf[by_term]
    big_at = np.flatnonzero(tf >= TF_MAX)
    kept = [terms[i] for i in order.tolist()]
    return Segment(
        hashes=hashes[order],
        term_offsets=offsets_of(np.fromiter(map(len, kept), np.int64, len(kept))),
        term_bytes=np.frombuffer(b"".join(kept), np.uint8),
        offsets=offsets_of(per_term[order]),
        slots=slots[by_term],
        tf=np.minimum(tf, TF_MAX).astype(np.uint8),
        big_at=big_at,
        big_tf=tf[big_at],
        lengths=lengths[by_term].astype(length_type(int(lengths.max(initial=0)))),
    )
