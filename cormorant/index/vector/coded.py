"""Which slots have codes, and how far can the codes be trusted?"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cormorant.defaults import METRICS
from cormorant.index.contract import Arrays
from cormorant.index.vector.codebook import Codebook
from cormorant.index.vector.fastscan import FastScan, packed_size
from cormorant.model import Metric

__all__ = ["Coded"]


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Codes of a generation's first slots; immutable.

    Attributes:
        codebook: That made them.
        codes: uint8, shape (n, m / 2), in slot order.
        lists: int32, shape (n,): each code's list; None if there is one list.
        metric: How vectors are compared.
        probes: Lists a search looks into.
        rescore_10, rescore_100: How many of the nearest codes are compared exactly when 10, and
            when 100, hits are wanted.
        recall: Part of the true 10 nearest that a search with these settings found, as
            measured when they were chosen.
        target: The recall that was asked for.
        measured_n: How many slots had codes then.
        packed: The codes as the kernel holds them, uint8, as a derived file has them; None:
            they are arranged when first scanned.
    """

    codebook: Codebook
    codes: NDArray[np.uint8]
    lists: NDArray[np.int32] | None
    metric: Metric
    probes: int
    rescore_10: int
    rescore_100: int
    recall: float
    target: float
    measured_n: int
    packed: NDArray[np.uint8] | None = None
    _kernel: list[FastScan] = field(default_factory=list, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def n(self) -> int:
        """Slots that have codes: 0 … n − 1."""
        return len(self.codes)

    @property
    def lists_n(self) -> int:
        """How many lists they are sorted into."""
        return self.codebook.lists

    @property
    def mark(self) -> tuple[int, ...]:
        """Tells codes apart without looking at all of them."""
        return (zlib.crc32(self.codebook.centroids.tobytes()), self.n, self.probes, self.rescore_10)

    def rescored(self, k: int) -> int:
        """How many of the nearest codes are compared exactly when ``k`` hits are wanted.

        On the line through what was measured for 10 and for 100; at least 4 · k.
        """
        slope = max(0.0, (self.rescore_100 - self.rescore_10) / 90)
        return max(4 * k, round(self.rescore_10 + slope * max(0, k - 10)))

    def kernel(self) -> FastScan:
        """The codes as they are scanned; made when first asked for."""
        with self._lock:
            if not self._kernel:
                self._kernel.append(
                    FastScan(self.codebook, self.codes, self.lists, self.metric, self.packed)
                )
            return self._kernel[0]

    def take(self, keep: NDArray[np.int64]) -> Coded | None:
        """The codes of ``keep``, ascending slots, numbered anew; None if none of them has one."""
        keep = keep[keep < self.n]
        if not len(keep):
            return None
        lists = None if self.lists is None else self.lists[keep]
        return replace(self, codes=self.codes[keep], lists=lists, packed=None)

    def to_arrays(self) -> Arrays:
        """As named arrays, for a derived file."""
        return {
            **self.codebook.to_arrays(),
            "codes": self.codes,
            "packed": np.empty(0, np.uint8) if self.lists_n > 1 else self.kernel().packed(),
            "lists": np.empty(0, np.int32) if self.lists is None else self.lists,
            "numbers": np.array(
                [self.probes, self.rescore_10, self.rescore_100, self.measured_n], np.int64
            ),
            "recall": np.array([self.recall, self.target], np.float64),
            "metric": np.array([self.metric], np.str_),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Coded:
        """What :meth:`to_arrays` gave; nothing is copied but the codebook.

        Raises:
            KeyError: If an array is missing.
            ValueError: If arrays do not fit each other.
        """
        codebook = Codebook.from_arrays(arrays)
        codes, lists, packed = arrays["codes"], arrays["lists"], arrays["packed"]
        probes, ten, hundred, measured_n = (int(number) for number in arrays["numbers"])
        recall, target = (float(number) for number in arrays["recall"])
        metric = str(arrays["metric"][0])
        many = codebook.lists > 1
        sound = (
            metric in METRICS
            and codes.dtype == np.uint8
            and codes.shape[1:] == (codebook.m // 2,)
            and packed.dtype == np.uint8
            and packed.shape == ((0,) if many else (packed_size(len(codes), codebook.m),))
            and lists.dtype == np.int32
            and lists.shape == ((len(codes),) if many else (0,))
            and (not len(lists) or 0 <= int(lists.min()) <= int(lists.max()) < codebook.lists)
            and min(probes, ten, hundred) >= 1
        )
        if not sound:
            raise ValueError("the vector index's codes do not fit its codebook")
        return cls(
            codebook,
            np.asarray(codes, np.uint8),
            np.asarray(lists, np.int32) if many else None,
            cast("Metric", metric),
            probes,
            ten,
            hundred,
            recall,
            target,
            measured_n,
            np.asarray(packed, np.uint8),
        )
