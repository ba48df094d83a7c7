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

__all__ = ["FastScan"]

_BLOCK_ROWS = 32  # codes faiss scans in one step


class FastScan:
    """Codes as the kernel wants them; immutable, and safe to search from many threads.

    Args:
        codebook: That made the codes.
        codes: uint8, shape (n, m / 2), in slot order; copied into the kernel's layout.
        lists: int32, shape (n,): each code's list; None if there is one list.
        metric: How vectors are compared.
    """

    def __init__(
        self,
        codebook: Codebook,
        codes: NDArray[np.uint8],
        lists: NDArray[np.int32] | None,
        metric: Metric,
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
        inverted: Any = plain.invlists
        for number, members in enumerate(_members(lists, self.n, len(coarse))):
            held = np.ascontiguousarray(codes[members] if lists is not None else codes)
            slots = np.ascontiguousarray(members, np.int64)
            inverted.add_entries(number, len(slots), faiss.swig_ptr(slots), faiss.swig_ptr(held))
        plain.ntotal = self.n
        self._index = faiss.IndexIVFPQFastScan(plain, _BLOCK_ROWS)

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


def _members(lists: NDArray[np.int32] | None, n: int, count: int) -> list[NDArray[np.int64]]:
    """The slots in each list, ascending."""
    if lists is None:
        return [np.arange(n)]
    order = np.argsort(lists, kind="stable")
    return np.split(order, np.searchsorted(lists[order], np.arange(1, count)))
