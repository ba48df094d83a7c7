"""The arithmetic over postings, compiled by numba (``pip install "cormorant[fast]"``).

The operations of :meth:`Formula.saturation` and their order, without arrays between them. No
``fastmath``, which would let the compiler fuse or reorder them: results are numpy's to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, MissingDependency
from cormorant.index.text.kernels import Kernel
from cormorant.index.text.segment import REPAIR, Postings

if TYPE_CHECKING:
    from cormorant.index.contract import Mask
    from cormorant.index.text.bm25 import Formula

__all__ = ["load"]

_LONG: Final = 4096  # a look-up costs one call here, so shorter lists may be left unread
_NOTHING: Final = np.empty(0, np.int32)
_EVERYONE: Final = np.empty(0, np.bool_)  # a mask of length 0 stands for none


@cache
def load() -> Kernel:
    """Numba's kernel, compiled.

    Raises:
        MissingDependency: If numba is not installed.
    """
    try:
        import numba
    except ImportError as error:
        raise MissingDependency("Text searches compiled by numba", extra="fast") from error
    sum_all, probe = _compiled(numba)

    def total(
        scores: NDArray[np.float32],
        postings: Postings,
        ends: NDArray[np.int64],
        weights: NDArray[np.float32],
        formula: Formula,
        mask: Mask | None,
        worth: NDArray[np.float32],
    ) -> NDArray[np.int32]:
        kept = _NOTHING if mask is None else np.empty(len(postings.slots), np.int32)
        admits = _EVERYONE if mask is None else np.ascontiguousarray(mask)
        part, slope, base = _narrowed(postings), formula.slope, formula.base
        count = sum_all(scores, *part, ends, weights, slope, base, worth, admits, kept)
        if count < 0:
            raise CorruptionError(f"Postings are damaged: one points outside the records. {REPAIR}")
        return postings.slots if mask is None else kept[:count]

    def look_up(
        postings: Postings,
        slots: NDArray[np.int64],
        values: NDArray[np.float32],
        weight: np.float32,
        formula: Formula,
    ) -> None:
        probe(values, slots, *_narrowed(postings), formula.slope, formula.base, weight)

    return Kernel("numba", _LONG, total, look_up)


def _narrowed(part: Postings) -> Postings:
    """Of types that there is code for; those of nearly all lists are, as they come."""
    tf, lengths = part.tf, part.lengths
    if tf.dtype != np.uint8 or lengths.dtype not in (np.uint8, np.uint16):
        return Postings(part.slots, tf.astype(np.int32), lengths.astype(np.int32))
    return part


def _compiled(numba: Any) -> tuple[Callable[..., int], Callable[..., None]]:
    types = numba.types
    f32, i64, i32, u8 = types.float32, types.int64, types.int32, types.uint8

    def held(kind: Any) -> Any:
        return types.Array(kind, 1, "C", readonly=True)

    kinds = [(u8, u8), (u8, types.uint16), (i32, i32)]  # of tf and lengths

    def compiled(signatures: list[Any]) -> Callable[..., Any]:
        settings = {"nogil": True, "error_model": "numpy"}

        def decorate(function: Callable[..., Any]) -> Any:
            try:
                return numba.njit(signatures, cache=True, **settings)(function)
            except RuntimeError:  # no folder it may write to: compiled by each process, then
                return numba.njit(signatures, **settings)(function)

        return decorate

    @compiled(
        [
            i64(
                f32[::1], held(i32), held(tf), held(length), i64[::1], held(f32), f32, f32,
                f32[::1], held(types.boolean), i32[::1],
            )
            for tf, length in kinds
        ]
    )  # fmt: skip
    def sum_all(
        scores: Any,
        slots: Any,
        tf: Any,
        lengths: Any,
        ends: Any,
        weights: Any,
        slope: Any,
        base: Any,
        worth: Any,
        mask: Any,
        kept: Any,
    ) -> int:
        """How many postings were summed, with ``ends`` set to where each term's end; or -1."""
        count, start = 0, 0
        for term in range(len(ends)):
            weight, end = weights[term], ends[term]
            here, often, long = slots[start:end], tf[start:end], lengths[start:end]
            if len(mask):
                for i in range(len(here)):
                    slot = here[i]
                    if slot < 0 or slot >= len(mask):
                        return -1
                    if mask[slot]:
                        times = np.float32(often[i])
                        worth[count] = times / (np.float32(long[i]) * slope + base + times) * weight
                        scores[slot] += worth[count]
                        kept[count] = slot
                        count += 1
            else:
                each = worth[start:end]
                for i in range(len(each)):  # by itself, eight at a time
                    times = np.float32(often[i])
                    each[i] = times / (np.float32(long[i]) * slope + base + times) * weight
                for i in range(len(each)):
                    slot = here[i]
                    if slot < 0 or slot >= len(scores):
                        return -1
                    scores[slot] += each[i]
                count = end
            ends[term] = count
            start = end
        return count

    @compiled(
        [
            types.void(f32[::1], held(i64), held(i32), held(tf), held(length), f32, f32, f32)
            for tf, length in kinds
        ]
    )
    def probe(
        values: Any,
        wanted: Any,
        slots: Any,
        tf: Any,
        lengths: Any,
        slope: Any,
        base: Any,
        weight: Any,
    ) -> None:
        low = 0
        for j in range(len(wanted)):
            slot, step = wanted[j], 1
            while low + step < len(slots) and slots[low + step] < slot:
                step *= 2
            high = min(low + step, len(slots))
            while low < high:  # the first that is not below it
                middle = (low + high) // 2
                if slots[middle] < slot:
                    low = middle + 1
                else:
                    high = middle
            if low == len(slots):
                return
            if slots[low] == slot:
                often = np.float32(tf[low])
                norm = np.float32(lengths[low]) * slope + base + often
                values[j] += often / norm * weight

    return sum_all, probe
