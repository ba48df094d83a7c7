"""Which named arrays hold a text index in a derived file, and do they fit together?"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.index.contract import Arrays
from cormorant.index.text.segment import REPAIR, TF_MAX, Segment

__all__ = ["from_arrays", "problems", "to_arrays"]

_LENGTHS: Final = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.int32))
_KINDS: Final[dict[str, Any]] = {
    "hashes": np.uint64,
    "term_offsets": np.int64,
    "term_bytes": np.uint8,
    "offsets": np.int64,
    "slots": np.int32,
    "tf": np.uint8,
    "big_at": np.int64,
    "big_tf": np.int32,
    "lengths": None,  # of the postings' records: one of _LENGTHS
    "record_lengths": np.int32,
}


def to_arrays(segments: tuple[Segment, ...], lengths: NDArray[np.int32]) -> Arrays:
    """The arrays of one segment, or of none, and the lengths by slot."""
    arrays: dict[str, NDArray[Any]] = {
        name: getattr(segments[0], name) if segments else np.empty(0, kind or np.uint8)
        for name, kind in _KINDS.items()
        if name != "record_lengths"
    }
    return {**arrays, "record_lengths": lengths}


def from_arrays(arrays: Arrays) -> tuple[tuple[Segment, ...], NDArray[np.int32]]:
    """The segment, or none, and the lengths.

    Raises:
        CorruptionError: If an array is missing or of another kind, or sizes do not fit.
            Postings are not read: what is looked up is checked then, and all by :func:`problems`.
    """
    for name, kind in _KINDS.items():
        held = arrays.get(name)
        kinds = (np.dtype(kind),) if kind else _LENGTHS
        if held is None or held.dtype not in kinds or held.ndim != 1:
            got = "nothing" if held is None else f"{held.dtype} with {held.ndim} dimensions"
            raise CorruptionError(
                f"Postings: array {name!r} should be {' or '.join(map(str, kinds))} with 1 "
                f"dimension; got {got}. {REPAIR}"
            )
    given: dict[str, Any] = dict(arrays)
    segment = Segment(**{name: given[name] for name in _KINDS if name != "record_lengths"})
    terms = len(segment.hashes)
    if terms and (
        not len(segment.offsets) == len(segment.term_offsets) == terms + 1
        or int(segment.term_offsets[-1]) != len(segment.term_bytes)
        or int(segment.offsets[-1]) != len(segment.slots)
        or not len(segment.slots) == len(segment.tf) == len(segment.lengths)
        or len(segment.big_at) != len(segment.big_tf)
    ):
        raise CorruptionError(f"Postings: the arrays' lengths do not fit together. {REPAIR}")
    if int(given["record_lengths"].min(initial=0)) < 0:
        raise CorruptionError(f"Postings: a record has fewer than no terms. {REPAIR}")
    return ((segment,) if terms else ()), given["record_lengths"]


def problems(segments: tuple[Segment, ...], lengths: NDArray[np.int32]) -> list[str]:
    """What a full read of one segment, or of none, finds wrong; a sentence each.

    Args:
        segments: Without :func:`cormorant.index.text.sound.faults`.
        lengths: By slot.
    """
    if not segments:
        return ["Records have terms, but there are no postings."] if np.any(lengths) else []
    segment = segments[0]
    wrong = []
    if np.any(segment.hashes[1:] < segment.hashes[:-1]):
        wrong.append("Term hashes are out of order.")
    if not np.array_equal(segment.big_at, np.flatnonzero(segment.tf == TF_MAX)):
        wrong.append("Large term frequencies are not where they are pointed to.")
    if wrong:
        return wrong
    starts = np.zeros(len(segment.slots), np.bool_)
    starts[segment.offsets[:-1]] = True
    if np.any((np.diff(segment.slots) <= 0) & ~starts[1:]):
        wrong.append("A term's postings are out of order.")
    tf = segment.tf.astype(np.int64)
    tf[segment.big_at] = segment.big_tf
    if not np.array_equal(np.bincount(segment.slots, tf, len(lengths)), lengths):
        wrong.append("Record lengths are not the sums of their term frequencies.")
    if not np.array_equal(segment.lengths, lengths[segment.slots]):
        wrong.append("Postings disagree with their records about lengths.")
    return wrong
