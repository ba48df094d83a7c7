"""Can a segment be followed without leaving its arrays? What is mapped from a file may be damaged.

A checksum tells only of the moment it is compared, and a crafted file has one that fits. What is
asked here costs little beside its use: of one term's postings when they are looked up, of a whole
segment before it is merged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.index.text.segment import REPAIR, Postings, Segment

__all__ = ["faults", "insist", "insist_postings"]


def faults(segment: Segment, n: int) -> list[str]:
    """What would lead out of the arrays, a sentence each.

    Args:
        segment: Whose arrays' lengths fit together.
        n: Slots there are.
    """
    wrong = []
    if not _ascends(segment.offsets, len(segment.slots), strictly=True):
        wrong.append("Array 'offsets' does not ascend from 0.")
    if not _ascends(segment.term_offsets, len(segment.term_bytes), strictly=False):
        wrong.append("Array 'term_offsets' does not ascend from 0.")
    if not _within(segment.slots, n):
        wrong.append(f"A posting points outside the {n} records.")
    at = segment.big_at
    if len(at) and not (_within(at, len(segment.slots)) and bool(np.all(at[1:] > at[:-1]))):
        wrong.append("Large term frequencies are not where they are pointed to.")
    return wrong


def insist(segment: Segment, n: int) -> None:
    """Nothing, if the segment can be followed.

    Raises:
        CorruptionError: If :func:`faults` finds any.
    """
    wrong = faults(segment, n)
    if wrong:
        raise CorruptionError(f"Postings are damaged. {' '.join(wrong)} {REPAIR}")


def insist_postings(postings: Postings, n: int) -> None:
    """Nothing, if one term's postings point to records and can be scored.

    Raises:
        CorruptionError: If they cannot.
    """
    lengths = postings.lengths
    if (
        not _within(postings.slots, n)
        or int(postings.tf.min()) < 1
        or (lengths.dtype.kind == "i" and int(lengths.min()) < 0)
    ):
        raise CorruptionError(
            f"Postings are damaged: one points outside the {n} records, or counts nothing. {REPAIR}"
        )


def _within(values: NDArray[Any], n: int) -> bool:
    # Read without their signs, negative numbers are the largest: one pass finds both ends.
    return int(values.view(f"u{values.itemsize}").max()) < n


def _ascends(offsets: NDArray[np.int64], end: int, *, strictly: bool) -> bool:
    before, after = offsets[:-1], offsets[1:]  # a difference of two damaged ones may overflow
    steps = after > before if strictly else after >= before
    return int(offsets[0]) == 0 and int(offsets[-1]) == end and bool(np.all(steps))
