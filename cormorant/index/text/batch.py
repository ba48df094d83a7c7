"""Which bytes carry the postings of one batch of records?

A blob numbers its records 0 … d-1, so it can be replayed wherever they land. Little-endian:

    magic "CTB1" · crc32 of what follows · u32 d, p, v, b · u8 sizes of the five arrays, 3 zeros
    lengths[d]  terms per record, repeats counted
    counts[d]   distinct terms per record
    ids[p]      position of each posting's term in the batch's vocabulary
    tf[p]       how often the term occurs
    widths[v]   bytes per term
    terms[b]    the terms in UTF-8, one behind the other

Every array of numbers has the narrowest of 1, 2 and 4 bytes that holds its largest value.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.index.text.segment import REPAIR

__all__ = ["Batch", "decode", "encode", "encode_term"]

_MAGIC: Final = b"CTB1"
_HEAD: Final = struct.Struct("<4sI")
_SHAPE: Final = struct.Struct("<IIII5B3x")
_SIZES: Final = frozenset({1, 2, 4})
_INT32: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """The postings of a batch, record by record.

    Attributes:
        lengths: int32, shape (d,).
        counts: int64, shape (d,): how many of ``ids`` and ``tf`` belong to each record.
        ids: int64, shape (p,): positions in ``terms``.
        tf: int32, shape (p,), at least 1.
        terms: The distinct terms, in UTF-8.
    """

    lengths: NDArray[np.int32]
    counts: NDArray[np.int64]
    ids: NDArray[np.int64]
    tf: NDArray[np.int32]
    terms: list[bytes]


def encode_term(term: str) -> bytes:
    """A term's bytes. Lone surrogates, which no analyzer makes, are kept as they are."""
    return term.encode("utf-8", "surrogatepass")


def encode(documents: Iterable[Sequence[str]]) -> bytes:
    """The blob for the terms of each record, in order."""
    vocabulary: dict[str, int] = {}
    lengths: list[int] = []
    counts: list[int] = []
    ids: list[int] = []
    tf: list[int] = []
    for terms in documents:
        found = Counter(terms)
        lengths.append(len(terms))
        counts.append(len(found))
        ids += [vocabulary.setdefault(term, len(vocabulary)) for term in found]
        tf += found.values()
    encoded = [encode_term(term) for term in vocabulary]
    text = b"".join(encoded)
    arrays = [_narrow(values) for values in (lengths, counts, ids, tf, list(map(len, encoded)))]
    sizes = [array.itemsize for array in arrays]
    shape = _SHAPE.pack(len(lengths), len(ids), len(encoded), len(text), *sizes)
    body = b"".join([shape, *(array.tobytes() for array in arrays), text])
    return _HEAD.pack(_MAGIC, zlib.crc32(body)) + body


def _narrow(values: list[int]) -> NDArray[np.unsignedinteger]:
    array = np.array(values, dtype="<u4")
    largest = int(array.max(initial=0))
    return array.astype("<u1" if largest < 1 << 8 else "<u2" if largest < 1 << 16 else "<u4")


def decode(blob: bytes) -> Batch:
    """The batch a blob carries.

    Raises:
        CorruptionError: If these are not the bytes :func:`encode` made.
    """
    if len(blob) < _HEAD.size + _SHAPE.size:
        raise CorruptionError(f"A batch of postings is cut short: {len(blob)} bytes. {REPAIR}")
    magic, crc = _HEAD.unpack_from(blob)
    if magic != _MAGIC:
        raise CorruptionError(
            f"A batch of postings begins with {magic!r}, not {_MAGIC!r}. {REPAIR}"
        )
    if zlib.crc32(memoryview(blob)[_HEAD.size :]) != crc:
        raise CorruptionError(f"A batch of postings does not match its checksum. {REPAIR}")
    d, p, v, b, *sizes = _SHAPE.unpack_from(blob, _HEAD.size)
    at = _HEAD.size + _SHAPE.size
    counted = list(zip((d, d, p, p, v), sizes, strict=True))
    if not set(sizes) <= _SIZES or at + sum(map(math.prod, counted)) + b != len(blob):
        raise CorruptionError(f"A batch of postings is not as long as it says. {REPAIR}")
    arrays: list[NDArray[np.unsignedinteger]] = []
    for count, size in counted:
        arrays.append(np.frombuffer(blob, dtype=f"<u{size}", count=count, offset=at))
        at += count * size
    lengths, counts, ids, tf, widths = arrays
    if not _fits(lengths, counts, ids, tf, v) or int(widths.sum(dtype=np.int64)) != b:
        raise CorruptionError(f"A batch of postings contradicts itself. {REPAIR}")
    ends = np.cumsum(widths, dtype=np.int64).tolist()
    text = blob[at : at + b]
    terms = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return Batch(
        lengths=lengths.astype(np.int32),
        counts=counts.astype(np.int64),
        ids=ids.astype(np.int64),
        tf=tf.astype(np.int32),
        terms=terms,
    )


def _fits(
    lengths: NDArray[np.unsignedinteger],
    counts: NDArray[np.unsignedinteger],
    ids: NDArray[np.unsignedinteger],
    tf: NDArray[np.unsignedinteger],
    vocabulary: int,
) -> bool:
    """Whether every posting has a record, a term and a count, and they add up."""
    if int(counts.sum(dtype=np.int64)) != len(ids):
        return False
    if len(ids) and not (int(ids.max()) < vocabulary and int(tf.min()) > 0):
        return False
    if int(lengths.max(initial=0)) > _INT32:  # no tf is larger, as they add up
        return False
    records = np.repeat(np.arange(len(counts)), counts)
    return np.array_equal(np.bincount(records, tf, len(counts)), lengths)
