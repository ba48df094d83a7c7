"""Which postings do a query's terms have?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask
from cormorant.index.text.batch import encode_term
from cormorant.index.text.segment import Postings, Segment, hash_term
from cormorant.index.text.sound import insist_postings
from cormorant.index.text.tail import Tail

__all__ = ["QueryTerm", "find", "locate", "together"]


class QueryTerm(NamedTuple):
    """A query term that occurs in live records.

    Attributes:
        term: As given.
        times: How often the query has it.
        df: How many live records have it.
        size: How many records have it, dead ones included.
        parts: Its postings, by ascending slots, dead ones included.
    """

    term: str
    times: int
    df: int
    size: int
    parts: list[Postings]

    def postings(self) -> Postings:
        """All parts as one."""
        return together(self.parts)


def together(parts: Sequence[Postings]) -> Postings:
    """Several lists, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    return Postings(*map(np.concatenate, zip(*parts, strict=True)))


def find(
    terms: Sequence[str], segments: Sequence[Segment], tail: Tail, alive: Mask | None, n: int
) -> list[QueryTerm]:
    """The terms that live records have, rarest first: the order scores are summed in.

    The order is that of the records' contents, so it does not depend on how they are spread
    over segments, nor on whether dead ones are still there.

    Args:
        terms: Repeats kept.
        segments: In ascending order of their slots.
        tail: What came after them.
        alive: bool, shape (n,); None: all.
        n: Slots there are.

    Raises:
        CorruptionError: If postings lead out of the index.
    """
    counts = Counter(terms)
    names = {term: encode_term(term) for term in counts}
    encoded = list(names.values())
    parts: list[list[Postings]] = [[] for _ in encoded]
    if segments:
        hashes = np.array(list(map(hash_term, encoded)), np.uint64)
        for segment in segments:
            for which, position, postings in segment.find(hashes, encoded):
                if position not in segment.sound:
                    insist_postings(postings, n)
                    segment.sound.add(position)
                parts[which].append(postings)
    for held, name in zip(parts, encoded, strict=True):
        newest = tail.find(name)
        if newest is not None:
            held.append(newest)
    found = []
    for (term, count), held in zip(counts.items(), parts, strict=True):
        size = sum(len(part.slots) for part in held)
        df = size
        if alive is not None:
            df = sum(int(np.count_nonzero(alive.take(part.slots))) for part in held)
        if df:
            found.append(QueryTerm(term, count, df, size, held))
    found.sort(key=lambda one: (one.df, names[one.term]))
    return found


def locate(
    held: NDArray[np.int32], wanted: NDArray[np.int64] | NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions in ``held`` (ascending) of the wanted slots that are there, and in ``wanted``."""
    at = np.searchsorted(held, wanted.astype(held.dtype))
    at[at == len(held)] = 0
    has = np.flatnonzero(held[at] == wanted) if len(held) else at[:0]
    return at[has], has
