"""Who does the arithmetic over postings: numpy, or machine code compiled by numba?

Both do the same float32 operations in the same order, so that every score has the same bits. What
is here is numpy's; :mod:`cormorant.index.text.compiled` is numba's, which nothing loads but
:func:`use_kernel`: importing it and compiling takes longer than opening a store and asking it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.index.text.lookup import locate

if TYPE_CHECKING:
    from cormorant.index.contract import Mask
    from cormorant.index.text.bm25 import Formula
    from cormorant.index.text.segment import Postings

__all__ = ["KERNELS", "Kernel", "Sum", "current", "kernel", "use_kernel"]

KERNELS: Final = ("numpy", "numba")


Sum: TypeAlias = Callable[
    [
        NDArray[np.float32],
        "Postings",
        NDArray[np.int64],
        NDArray[np.float32],
        "Formula",
        "Mask | None",
        NDArray[np.float32],
    ],
    NDArray[np.int32],
]
"""Add some terms' postings to the scores of the slots that a mask admits.

Takes the scores by slot, the postings, where each term's end among them, each term's weight, the
formula, the mask, and where to put what each posting is worth. Returns the slots of those that
were summed, and changes the ends to be theirs.
"""

LookUp: TypeAlias = Callable[
    ["Postings", NDArray[np.int64], NDArray[np.float32], np.float32, "Formula"], None
]


class Kernel(NamedTuple):
    """One way to do it.

    Attributes:
        name: One of :data:`KERNELS`.
        long: Postings; shorter lists are summed before anything is known about them.
        sum: See :data:`Sum`.
        look_up: Add what a term is worth to the values of some ascending slots, in place.
    """

    name: str
    long: int
    sum: Sum
    look_up: LookUp


def _sum(
    scores: NDArray[np.float32],
    postings: Postings,
    ends: NDArray[np.int64],
    weights: NDArray[np.float32],
    formula: Formula,
    mask: Mask | None,
    worth: NDArray[np.float32],
) -> NDArray[np.int32]:
    each = weights[0] if len(weights) == 1 else np.repeat(weights, np.diff(ends, prepend=0))
    if mask is not None:
        kept = np.flatnonzero(mask.take(postings.slots))
        postings = postings.at(kept)
        each = each.take(kept) if len(weights) > 1 else each
        ends[:] = np.searchsorted(kept, ends)
    one = formula.saturation(postings, each)
    np.add.at(scores, postings.slots, one)
    worth[: len(one)] = one
    return postings.slots


def _look_up(
    postings: Postings,
    slots: NDArray[np.int64],
    values: NDArray[np.float32],
    weight: np.float32,
    formula: Formula,
) -> None:
    at, has = locate(postings.slots, slots)
    values[has] += formula.saturation(postings.at(at), weight)


_NUMPY: Final = Kernel("numpy", 16_384, _sum, _look_up)
_chosen: list[Kernel] = [_NUMPY]


def current() -> Kernel:
    """The one in use."""
    return _chosen[0]


def kernel() -> str:
    """Which of :data:`KERNELS` text searches of this process run on."""
    return _chosen[0].name


def use_kernel(name: Literal["numpy", "numba"]) -> None:
    """Let text searches of this process run on numpy, as they do unless told, or on numba.

    Rankings and scores are the same to the last bit; numba needs less time for long lists of
    postings. Loading it takes about a second, and compiling, once per machine, some more: call
    this when a service starts, not when it is asked.

    Args:
        name: ``"numpy"`` or ``"numba"``.

    Raises:
        UsageError: If it is neither.
        MissingDependency: If numba is not installed.
    """
    if name not in KERNELS:
        raise UsageError(
            f"There is no kernel {name!r} for text searches; there are {' and '.join(KERNELS)}."
        )
    if name == "numpy":
        _chosen[0] = _NUMPY
        return
    from cormorant.index.text.compiled import load

    _chosen[0] = load()
