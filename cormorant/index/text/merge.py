"""How do several segments become one, and how do dead records leave?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.index.text.segment import Segment, length_type, offsets_of
from cormorant.index.text.sound import insist

__all__ = ["merge", "renumber"]

_BLOCK: Final = 1 << 20  # elements copied at a time: bounds the memory of the index arrays


def merge(segments: Sequence[Segment], n: int) -> Segment:
    """One segment with the postings of all.

    Args:
        segments: At least one, in ascending order of their slots, which do not overlap.
        n: Slots there are.

    Raises:
        CorruptionError: If a segment leads out of its arrays, or its postings out of the slots.
    """
    for segment in segments:
        insist(segment, n)
    if len(segments) == 1:
        return segments[0]
    terms = np.concatenate([[len(segment.hashes)] for segment in segments])
    origin = np.repeat(np.arange(len(segments)), terms)
    local = np.concatenate([np.arange(count) for count in terms])
    hashes = np.concatenate([segment.hashes for segment in segments])
    order = np.argsort(hashes, kind="stable")  # equal terms in the order of their segments
    order, same = _group(segments, hashes, origin, local, order)

    term_starts, widths = _runs([segment.term_offsets for segment in segments])
    starts, counts = _runs([segment.offsets for segment in segments])
    first = np.flatnonzero(~same)
    placed = np.empty(len(order), np.int64)  # where each entry's postings go
    placed[order] = np.cumsum(counts[order]) - counts[order]

    size = int(counts.sum())
    slots, tf = np.empty(size, np.int32), np.empty(size, np.uint8)
    lengths = np.empty(size, max((segment.lengths.dtype for segment in segments), key=_width))
    big_at: list[NDArray[np.int64]] = []
    big_tf: list[NDArray[np.int32]] = []
    chosen = order[first]  # the entry that gives each term its bytes
    term_offsets = offsets_of(widths[chosen])
    term_bytes = np.empty(int(term_offsets[-1]), np.uint8)
    for number, segment in enumerate(segments):
        mine = origin == number
        _copy_runs(segment.slots, slots, starts[mine], placed[mine], counts[mine])
        _copy_runs(segment.tf, tf, starts[mine], placed[mine], counts[mine])
        _copy_runs(segment.lengths, lengths, starts[mine], placed[mine], counts[mine])
        named = origin[chosen] == number
        entries = chosen[named]
        _copy_runs(
            segment.term_bytes,
            term_bytes,
            term_starts[entries],
            term_offsets[:-1][named],
            widths[entries],
        )
        if len(segment.big_at):
            entry = np.searchsorted(segment.offsets, segment.big_at, side="right") - 1
            big_at.append(segment.big_at - starts[mine][entry] + placed[mine][entry])
            big_tf.append(segment.big_tf)
    positions = np.concatenate([np.empty(0, np.int64), *big_at])
    by_position = np.argsort(positions)
    return Segment(
        hashes=hashes[chosen],
        term_offsets=term_offsets,
        term_bytes=term_bytes,
        offsets=offsets_of(np.add.reduceat(counts[order], first)),
        slots=slots,
        tf=tf,
        big_at=positions[by_position],
        big_tf=np.concatenate([np.empty(0, np.int32), *big_tf])[by_position],
        lengths=lengths,
    )


def renumber(segment: Segment, keep: NDArray[np.int64], n: int) -> Segment:
    """The postings of the slots in ``keep``, numbered anew from 0.

    Args:
        segment: Whose slots are below ``n``.
        keep: Ascending slots.
        n: Slots there are.
    """
    new = np.full(n, -1, np.int32)
    new[keep] = np.arange(len(keep), dtype=np.int32)
    slots = new[segment.slots]
    alive = slots >= 0
    counts = np.add.reduceat(alive, segment.offsets[:-1], dtype=np.int64)
    left = np.flatnonzero(counts)
    term_starts, widths = _runs([segment.term_offsets])
    term_offsets = offsets_of(widths[left])
    term_bytes = np.empty(int(term_offsets[-1]), np.uint8)
    _copy_runs(segment.term_bytes, term_bytes, term_starts[left], term_offsets[:-1], widths[left])
    lengths = segment.lengths[alive]
    big = alive[segment.big_at]
    moved = np.cumsum(alive, dtype=np.int64)[segment.big_at[big]] - 1
    return Segment(
        hashes=segment.hashes[left],
        term_offsets=term_offsets,
        term_bytes=term_bytes,
        offsets=offsets_of(counts[left]),
        slots=slots[alive],
        tf=segment.tf[alive],
        big_at=moved,
        big_tf=segment.big_tf[big],
        lengths=lengths.astype(length_type(int(lengths.max(initial=0)))),
    )


def _width(kind: np.dtype[Any]) -> int:
    return kind.itemsize


def _runs(offsets: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts (in each one's own array) and lengths of all runs."""
    return np.concatenate([one[:-1] for one in offsets]), np.concatenate(
        list(map(np.diff, offsets))
    )


def _group(
    segments: Sequence[Segment],
    hashes: NDArray[np.uint64],
    origin: NDArray[np.int64],
    local: NDArray[np.int64],
    order: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The order with unequal terms of equal hash apart; True where an entry goes on with a term."""
    ordered = hashes[order]
    same = np.zeros(len(order), np.bool_)
    same[1:] = ordered[1:] == ordered[:-1]
    twins = np.flatnonzero(same)
    unequal = twins[~_equal_terms(segments, origin, order[twins - 1], order[twins])]
    for value in np.unique(ordered[unequal]).tolist():  # once in some 2^64 pairs of terms
        low, high = np.searchsorted(ordered, [value, value]).tolist()
        high = int(np.searchsorted(ordered, np.uint64(value), side="right"))
        names = {
            int(i): segments[int(origin[i])].term(int(local[i])) for i in order[low:high].tolist()
        }
        sorted_entries = sorted(names, key=lambda i: (names[i], i))
        order[low:high] = sorted_entries
        for at, (before, entry) in enumerate(pairwise(sorted_entries)):
            same[low + at + 1] = names[before] == names[entry]
    return order, same


def _equal_terms(
    segments: Sequence[Segment],
    origin: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether two entries' terms are the same bytes, pair by pair."""
    starts, widths = _runs([segment.term_offsets for segment in segments])
    base = np.cumsum([0, *(len(segment.term_bytes) for segment in segments[:-1])])
    text = np.concatenate([segment.term_bytes for segment in segments])
    starts = starts + base[origin]
    equal: NDArray[np.bool_] = widths[left] == widths[right]
    both = np.flatnonzero(equal & (widths[left] > 0))
    for chunk in np.array_split(both, len(both) // (_BLOCK >> 4) + 1):
        if len(chunk):
            width = widths[left[chunk]]
            a = text[_flat(starts[left[chunk]], width)]
            b = text[_flat(starts[right[chunk]], width)]
            equal[chunk] = np.logical_and.reduceat(a == b, np.cumsum(width) - width)
    return equal


def _flat(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of runs, one behind the other."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def _copy_runs(
    source: NDArray[Any],
    target: NDArray[Any],
    starts: NDArray[np.int64],
    places: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Copy ``source[start : start + count]`` to ``target[place :]`` for every run."""
    total = np.cumsum(counts)
    low = 0
    while low < len(counts):
        done = int(total[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(total, done + _BLOCK, side="right")))
        some = slice(low, high)
        target[_flat(places[some], counts[some])] = source[_flat(starts[some], counts[some])]
        low = high
