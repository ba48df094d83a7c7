"""Who does the arithmetic over postings: numpy, or machine code compiled by numba?

Both do the same float32 operations in the same order, so that every score has the same bits. What
is here is numpy's; :mod:`cormorant.index.text.compiled` is numba's, which nothing loads but
:func:`use_kernel`: importing it and compiling takes longer than opening a store and asking it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.index.text.lookup import locate, together

if TYPE_CHECKING:
    from cormorant.index.contract import Mask
    from cormorant.index.text.bm25 import Formula
    from cormorant.index.text.lookup import QueryTerm
    from cormorant.index.text.segment import Postings

__all__ = ["KERNELS", "Kernel", "Sums", "current", "kernel", "split", "use_kernel"]

KERNELS: Final = ("numpy", "numba")


class Sums(NamedTuple):
    """What was summed.

    Attributes:
        slots: Of the postings, in the order they were summed.
        worth: float32: what each posting is worth, an array a term.
    """

    slots: NDArray[np.int32]
    worth: list[NDArray[np.float32]]


Add: TypeAlias = Callable[
    [
        NDArray[np.float32],
        "Sequence[QueryTerm]",
        NDArray[np.float32],
        "Formula",
        "Mask | None",
    ],
    Sums,
]
LookUp: TypeAlias = Callable[
    ["Postings", NDArray[np.int64], NDArray[np.float32], np.float32, "Formula"], None
]


class Kernel(NamedTuple):
    """One way to do it.

    Attributes:
        name: One of :data:`KERNELS`.
        long: Postings; shorter lists are summed before anything is known about them.
        add: Sum terms, with a weight each, into scores by slot, of slots the mask admits.
        look_up: Add what a term is worth to the values of some ascending slots, in place.
    """

    name: str
    long: int
    add: Add
    look_up: LookUp


def _add(
    scores: NDArray[np.float32],
    terms: Sequence[QueryTerm],
    weights: NDArray[np.float32],
    formula: Formula,
    mask: Mask | None,
) -> Sums:
    """All terms together, so that rare ones cost no calls of their own."""
    counts = [term.df for term in terms]
    postings = together([part for term in terms for part in term.parts])
    each, ends = np.repeat(weights, counts), np.cumsum(counts)
    if mask is not None:
        kept = np.flatnonzero(mask.take(postings.slots))
        postings, each = postings.at(kept), each.take(kept)
        ends = np.searchsorted(kept, ends)
    worth = formula.saturation(postings, each)
    np.add.at(scores, postings.slots, worth)
    return Sums(postings.slots, split(worth, ends))


def split(worth: NDArray[np.float32], ends: NDArray[np.int64]) -> list[NDArray[np.float32]]:
    """An array a term, from where each one's postings end."""
    at = ends.tolist()
    return [worth[start:end] for start, end in zip([0, *at], at, strict=False)]


def _look_up(
    postings: Postings,
    slots: NDArray[np.int64],
    values: NDArray[np.float32],
    weight: np.float32,
    formula: Formula,
) -> None:
    at, has = locate(postings.slots, slots)
    values[has] += formula.saturation(postings.at(at), weight)


_NUMPY: Final = Kernel("numpy", 16_384, _add, _look_up)
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
