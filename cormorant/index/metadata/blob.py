"""How do a delta's arrays travel through the change log as bytes?

``CMC1``, the number of arrays, then each array's name and length, then their data,
widest first; little-endian, nothing pickled.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, FormatError
from cormorant.index.contract import Arrays
from cormorant.index.metadata.dictionary import REPAIR

__all__ = ["pack", "unpack"]

_MAGIC = b"CMC"
_VERSION = b"1"
_HEAD = struct.Struct("<4sI")
_ENTRY = struct.Struct("<4s2sQ")


def pack(arrays: Arrays) -> bytes:
    """The arrays as bytes."""
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    parts = [_HEAD.pack(_MAGIC + _VERSION, len(ordered))]
    parts += [
        _ENTRY.pack(name.encode(), array.dtype.str[1:].encode(), len(array))
        for name, array in ordered
    ]
    parts += [array.tobytes() for _, array in ordered]
    return b"".join(parts)


def unpack(blob: bytes) -> dict[str, NDArray[Any]]:
    """The arrays again, as read-only views of the bytes.

    Raises:
        CorruptionError: The bytes are not whole.
        FormatError: A later release wrote them.
    """
    try:
        magic, count = _HEAD.unpack_from(blob)
        if magic[:3] == _MAGIC and magic[3:] != _VERSION:
            raise FormatError(
                f"A metadata delta is of version {magic[3:]!r}; this release reads {_VERSION!r}. "
                "Open the store with the release that wrote it, or a later one."
            )
        if magic[:3] != _MAGIC:
            raise CorruptionError(
                f"A metadata delta begins with {magic!r}, not with {_MAGIC!r}. {REPAIR}"
            )
        at = _HEAD.size + count * _ENTRY.size
        arrays = {}
        for i in range(count):
            name, dtype, length = _ENTRY.unpack_from(blob, _HEAD.size + i * _ENTRY.size)
            kind = np.dtype("<" + dtype.decode())
            if kind.kind not in "iuf" or length * kind.itemsize > len(blob) - at:
                raise ValueError(f"{length} numbers of {kind} in {len(blob) - at} bytes")
            array = np.frombuffer(blob, dtype=kind, count=length, offset=at)
            arrays[name.rstrip(b"\0").decode()] = array
            at += array.nbytes
    except (struct.error, ValueError, TypeError, UnicodeDecodeError) as error:
        raise CorruptionError(f"A metadata delta is damaged: {error!r}. {REPAIR}") from error
    if at != len(blob):
        raise CorruptionError(
            f"A metadata delta has {len(blob)} bytes where {at} are described. {REPAIR}"
        )
    return arrays
