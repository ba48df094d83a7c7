"""Which codes are nearest? faiss's fast scan over codes that a codebook made.

Source: André, Kermarrec and Le Scouarnec, "Quicker ADC", IEEE TPAMI 43(5), 2021,
doi:10.1109/TPAMI.2019.2952606, as faiss implements it (IndexIVFPQFastScan).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask
from cormorant.index.vector.codebook import Codebook, flat
from cormorant.model import Metric

__all__ = ["FastScan", "packed_size"]

_BLOCK_ROWS = 32  # codes faiss scans in one step


class FastScan:
    """Codes as the kernel wants them; immutable, and safe to search from many threads.

    Args:
        codebook: That made the codes.
        codes: uint8, shape (n, m / 2), in slot order; copied into the kernel's layout.
        lists: int32, shape (n,): each code's list; None if there is one list.
        metric: How vectors are compared.
        packed: What :meth:`packed` gave for the same codes: then they need not be arranged
            anew. Used if it is as this release of faiss would arrange it.
    """

    def __init__(
        self,
        codebook: Codebook,
        codes: NDArray[np.uint8],
        lists: NDArray[np.int32] | None,
        metric: Metric,
        packed: NDArray[np.uint8] | None = None,
    ) -> None:
        import faiss

        self._faiss = faiss
        self._codebook = codebook
        self.n = len(codes)
        coarse = codebook.coarse
        if coarse is None:  # one list, whose centre is never looked at
            coarse = np.zeros((1, codebook.padded), np.float32)
        # Kept, because faiss does not count references: the index points to its quantizer.
        self._coarse = flat(coarse, metric)
        plain = faiss.IndexIVFPQ(
            self._coarse, codebook.padded, len(coarse), codebook.m, 4, self._coarse.metric_type
        )
        plain.by_residual = False
        faiss.copy_array_to_vector(codebook.centroids.ravel(), plain.pq.centroids)
        plain.is_trained = True
        arranged = None
        if packed is not None and _fits(packed, codebook, codes, metric):
            codes, arranged = codes[:0], packed
        inverted: Any = plain.invlists
        for number, members in enumerate(_members(lists, len(codes), len(coarse))):
            held = np.ascontiguousarray(codes[members] if lists is not None else codes)
            slots = np.ascontiguousarray(members, np.int64)
            inverted.add_entries(number, len(slots), faiss.swig_ptr(slots), faiss.swig_ptr(held))
        plain.ntotal = len(codes)
        self._index: Any = faiss.IndexIVFPQFastScan(plain, _BLOCK_ROWS)
        if arranged is not None:
            blocks: Any = self._index.invlists
            blocks.resize(0, self.n)
            faiss.rev_swig_ptr(blocks.get_codes(0), len(arranged))[:] = arranged
            faiss.rev_swig_ptr(blocks.get_ids(0), self.n)[:] = np.arange(self.n)
            self._index.ntotal = self.n

    def packed(self) -> NDArray[np.uint8]:
        """The codes of the one list as the kernel holds them: a copy, of :func:`packed_size`."""
        blocks: Any = self._index.invlists
        size = packed_size(self.n, self._codebook.m)
        view = self._faiss.rev_swig_ptr(blocks.get_codes(0), size)
        return np.array(view, np.uint8)

    def search(
        self, query: NDArray[np.float32], count: int, mask: Mask | None, *, probes: int
    ) -> NDArray[np.int64]:
        """The ``count`` slots whose codes are nearest, nearest first.

        Args:
            query: float32, shape (dim,).
            count: At least 1.
            mask: bool, shape (n,): which slots may be found; None: all.
            probes: Lists looked into.

        Returns:
            Fewer than ``count`` only if the lists looked into hold no more.
        """
        faiss = self._faiss
        ready = self._codebook.prepared(query[None])
        parameters = faiss.IVFSearchParameters(nprobe=min(probes, self._codebook.lists))
        if mask is not None:
            bits = np.packbits(mask, bitorder="little")
            # Named, so that both live until the search is over: faiss holds bare pointers.
            selector = faiss.IDSelectorBitmap(self.n, faiss.swig_ptr(bits))
            parameters.sel = selector
        _, numbered = self._index.search(ready, min(count, self.n), params=parameters)
        found: NDArray[np.int64] = numbered[0]
        return found[found >= 0]


def packed_size(n: int, m: int) -> int:
    """Bytes of ``n`` codes of ``m`` parts as the kernel holds them: whole blocks of rows."""
    return -(-n // _BLOCK_ROWS) * _BLOCK_ROWS * m // 2


def _fits(
    packed: NDArray[np.uint8], codebook: Codebook, codes: NDArray[np.uint8], metric: Metric
) -> bool:
    """Is it of the right size, and its first block as faiss arranges these codes?"""
    if codebook.lists > 1 or len(packed) != packed_size(len(codes), codebook.m) or not len(codes):
        return False
    first = FastScan(codebook, codes[:_BLOCK_ROWS], None, metric).packed()
    return np.array_equal(first, packed[: len(first)])


def _members(lists: NDArray[np.int32] | None, n: int, count: int) -> list[NDArray[np.int64]]:
    """The slots in each list, ascending."""
    if lists is None:
        return [np.arange(n)]
    order = np.argsort(lists, kind="stable")
    return np.split(order, np.searchsorted(lists[order], np.arange(1, count)))
