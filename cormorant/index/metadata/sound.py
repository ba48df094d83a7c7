"""Do a column's arrays hold what a column can hold? What is mapped from a file may be damaged.

A checksum tells only of the moment it is compared, and a crafted file has one that fits. What is
asked here is asked once, when a filter first needs the column, so that no look-up leaves the
arrays.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.index.metadata.table import FLOATS, stretches

__all__ = [
    "MAX_SLOTS",
    "check_coded",
    "check_shape",
    "check_slots",
    "check_strings",
    "check_values",
]

MAX_SLOTS: Final = (1 << 31) - 1


def check_shape(sort: str, parts: object) -> None:
    """Are these the stretches of a column of that sort?

    Raises:
        ValueError: They are not.
    """
    wanted = stretches(sort)
    if not isinstance(parts, list) or len(parts) != wanted:
        raise ValueError(f"{sort!r} is described by {parts!r:.80}, not by {wanted} stretches")
    for part in parts:
        numbers = part[-2:] if isinstance(part, list) else []
        if len(numbers) != 2 or any(type(one) is not int or one < 0 for one in numbers):
            raise ValueError(f"{sort!r} has the stretch {part!r:.80}")


def check_slots(slots: NDArray[Any], n: int) -> None:
    """Do they ascend, and lie within the ``n`` there are?

    Raises:
        ValueError: They do not.
    """
    _integers("slots", slots)
    if len(slots) and not (
        int(slots[0]) >= 0 and int(slots[-1]) < n and bool((slots[1:] >= slots[:-1]).all())
    ):
        raise ValueError(f"slots out of order, or beyond the {n} there are")


def check_values(sort: str, values: NDArray[Any]) -> None:
    """Are they floats where floats are kept, and else integers?

    Raises:
        ValueError: They are not.
    """
    if sort != FLOATS:
        _integers("values", values)
    elif values.dtype.kind != "f":
        raise ValueError(f"values of {values.dtype} among floats")


def check_coded(codes: NDArray[Any], strings: int) -> None:
    """Does every code stand for one of so many strings?

    Raises:
        ValueError: One does not.
    """
    if len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < strings):
        raise ValueError(f"a code beyond the {strings} strings there are")
    if strings - 1 > np.iinfo(codes.dtype).max:
        raise ValueError(f"{strings} strings, and codes of {codes.dtype}")


def check_strings(offsets: NDArray[Any], blob: NDArray[Any]) -> None:
    """Do the offsets cut all of the bytes, one string behind the other?

    Raises:
        ValueError: They do not.
    """
    _integers("offsets", offsets)
    if len(blob) and blob.dtype != np.uint8:
        raise ValueError(f"strings in {blob.dtype}")
    if not (
        len(offsets)
        and int(offsets[0]) == 0
        and int(offsets[-1]) == len(blob)
        and bool((offsets[1:] >= offsets[:-1]).all())
    ):
        raise ValueError("offsets that do not cut the strings one behind the other")


def _integers(what: str, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} of {array.dtype}")
