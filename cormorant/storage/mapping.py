"""How is a vector file read without copying it?"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError

__all__ = ["map_vectors"]


def map_vectors(fd: int, n: int, dim: int, path: Path) -> NDArray[np.float32]:
    """The first ``n`` vectors of an open file, read-only.

    Only the committed length is mapped: what lies behind it may be cut off by the next
    writer, and touching it then would kill the process.

    Raises:
        CorruptionError: If the file is shorter than that.
    """
    length = n * dim * 4
    if length == 0:
        empty = np.empty((0, dim), np.float32)
        empty.flags.writeable = False
        return empty
    size = os.fstat(fd).st_size
    if size < length:
        raise CorruptionError(
            f"{path} is damaged: it is {size} bytes long; {length} were committed. Restore the "
            "store from a backup.",
            str(path),
        )
    mapped = mmap.mmap(fd, length, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype="<f4").reshape(n, dim)
