"""Into which small code does a vector go? A product quantiser, and the lists codes are kept in.

faiss is loaded when a codebook is used, never by importing this.

A vector is padded to a multiple of four, rotated if that was found to help, cut into ``m``
parts, and each part replaced by the number of the nearest of 16 centroids: m / 2 bytes a vector.

Source: Jégou, Douze and Schmid, "Product quantization for nearest neighbor search", IEEE TPAMI
33(1), 2011, doi:10.1109/TPAMI.2010.57; with 4 bits a part, so that a scan runs in registers:
André, Kermarrec and Le Scouarnec, "Cache locality is not enough", VLDB 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Arrays
from cormorant.model import Metric

__all__ = ["Codebook", "flat", "one_thread", "padded_dim", "train_codebook"]

CENTROIDS = 16
_BLOCK = 16_384  # vectors rotated and encoded in one go
_COLUMNS = 32  # of a rotation made orthonormal in one go
_SEED = 1234


@dataclass(frozen=True, slots=True, eq=False)
class Codebook:
    """What was learned from a sample; it never changes.

    Attributes:
        dim: Numbers per vector.
        centroids: float32, shape (m, 16, padded dim / m).
        rotation: float32, shape (padded dim, dim), orthonormal columns; None: only padded.
        coarse: float32, shape (lists, padded dim): the lists' centres; None: one list.
    """

    dim: int
    centroids: NDArray[np.float32]
    rotation: NDArray[np.float32] | None = None
    coarse: NDArray[np.float32] | None = None

    @property
    def m(self) -> int:
        """Parts a vector is cut into."""
        return int(self.centroids.shape[0])

    @property
    def padded(self) -> int:
        """Numbers per vector as it is encoded."""
        return int(self.centroids.shape[0] * self.centroids.shape[2])

    @property
    def lists(self) -> int:
        """How many lists codes are kept in."""
        return 1 if self.coarse is None else len(self.coarse)

    def prepared(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Padded and rotated: float32, shape (n, padded)."""
        return _prepared(vectors, self.rotation, self.padded)

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Codes, uint8, shape (n, m / 2), of vectors, float32, shape (n, dim)."""
        with one_thread():
            return self._encode(vectors)

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        quantiser = self._quantiser()
        codes = np.empty((len(vectors), self.m // 2), np.uint8)
        for start in range(0, len(vectors), _BLOCK):
            part = self.prepared(vectors[start : start + _BLOCK])
            codes[start : start + _BLOCK] = quantiser.compute_codes(part)
        return codes

    def assign(self, vectors: NDArray[np.float32], metric: Metric) -> NDArray[np.int32]:
        """The list each vector belongs to, int32, shape (n,)."""
        found = np.zeros(len(vectors), np.int32)
        if self.coarse is None:
            return found
        index = flat(self.coarse, metric)
        with one_thread():
            for start in range(0, len(vectors), _BLOCK):
                part = self.prepared(vectors[start : start + _BLOCK])
                found[start : start + _BLOCK] = index.search(part, 1)[1][:, 0]
        return found

    def to_arrays(self) -> Arrays:
        """As named arrays."""
        none = np.empty((0, 0), np.float32)
        return {
            "dim": np.array([self.dim], np.int64),
            "centroids": self.centroids,
            "rotation": none if self.rotation is None else self.rotation,
            "coarse": none if self.coarse is None else self.coarse,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Codebook:
        """What :meth:`to_arrays` gave.

        Raises:
            KeyError: If an array is missing.
            ValueError: If shapes do not fit each other, or a number is not finite.
        """
        dim = int(arrays["dim"][0])
        parts = {
            name: np.ascontiguousarray(arrays[name], np.float32)
            for name in ("centroids", "rotation", "coarse")
        }
        centroids, rotation, coarse = parts.values()
        shape = centroids.shape
        sound = (
            len(shape) == 3
            and shape[0] % 2 == 0
            and shape[1] == CENTROIDS
            and dim >= 1
            and shape[0] * shape[2] >= dim
            and (not rotation.size or rotation.shape == (shape[0] * shape[2], dim))
            and (not coarse.size or coarse.shape[1:] == (shape[0] * shape[2],))
            and all(np.isfinite(part).all() for part in parts.values())
        )
        if not sound:
            raise ValueError("the vector index's codebook does not fit together")
        return cls(
            dim,
            centroids,
            rotation if rotation.size else None,
            coarse if coarse.size else None,
        )

    def _quantiser(self) -> Any:
        import faiss

        quantiser = faiss.ProductQuantizer(self.padded, self.m, 4)
        faiss.copy_array_to_vector(self.centroids.ravel(), quantiser.centroids)
        return quantiser


def padded_dim(dim: int, part: int) -> int:
    """The next number that parts of ``part`` numbers, an even count of them, fill."""
    return -(-dim // (2 * part)) * 2 * part


def train_codebook(
    sample: NDArray[np.float32],
    *,
    metric: Metric,
    part: int,
    rotate: bool,
    lists: int = 1,
) -> Codebook:
    """Learn a codebook.

    Args:
        sample: float32, shape (n, dim); at least 16 rows, better 10,000 and more.
        metric: How vectors are compared.
        part: Numbers in each part: fewer keep more of a vector.
        rotate: Turn vectors by a fixed random rotation first, which spreads what differs
            evenly over the parts.
        lists: Into how many lists codes are sorted; needs 39 rows of sample each.

    Returns:
        The same from the same sample, on the same machine.
    """
    import faiss

    with one_thread():
        return _train(faiss, sample, metric, part, rotate=rotate, lists=lists)


def _train(
    faiss: Any,
    sample: NDArray[np.float32],
    metric: Metric,
    part: int,
    *,
    rotate: bool,
    lists: int,
) -> Codebook:
    dim = sample.shape[1]
    padded = padded_dim(dim, part)
    rotation = _rotation(dim, padded) if rotate else None
    ready = np.concatenate(
        [
            _prepared(sample[start : start + _BLOCK], rotation, padded)
            for start in range(0, len(sample), _BLOCK)
        ]
    )
    coarse = None
    if lists > 1:
        kmeans = faiss.Kmeans(
            padded, lists, niter=10, seed=_SEED, spherical=metric == "cosine", verbose=False
        )
        kmeans.train(ready)
        coarse = np.ascontiguousarray(kmeans.centroids, np.float32)
    quantiser = faiss.ProductQuantizer(padded, padded // part, 4)
    quantiser.cp.seed = _SEED
    quantiser.train(ready)
    centroids = faiss.vector_to_array(quantiser.centroids)
    return Codebook(dim, centroids.reshape(padded // part, CENTROIDS, part), rotation, coarse)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep faiss, in the calling thread, from starting threads of its own.

    On a machine that is busy its threads wait for each other in busy loops: five times the CPU
    for the same work.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def flat(vectors: NDArray[np.float32], metric: Metric) -> Any:
    """An exact faiss index: what lists are chosen by."""
    import faiss

    kind = faiss.METRIC_L2 if metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexFlat(vectors.shape[1], kind)
    index.add(vectors)
    return index


def _prepared(
    vectors: NDArray[np.float32], rotation: NDArray[np.float32] | None, padded: int
) -> NDArray[np.float32]:
    if rotation is not None:
        turned: NDArray[np.float32] = vectors @ rotation.T
        return turned
    short = padded - vectors.shape[1]
    filled = np.pad(vectors, ((0, 0), (0, short))) if short else vectors
    return np.ascontiguousarray(filled, np.float32)


def _rotation(dim: int, padded: int) -> NDArray[np.float32]:
    """Orthonormal columns, shape (padded, dim): lengths and inner products stay as they are.

    By Gram and Schmidt, each block of columns and each column freed twice of what came before
    it: a decomposition of the whole would hold the interpreter's lock all the while.
    """
    rng = np.random.default_rng(_SEED)
    made = np.empty((padded, dim))
    for start in range(0, dim, _COLUMNS):
        block = rng.standard_normal((padded, min(_COLUMNS, dim - start)))
        before = made[:, :start]
        for _ in range(2):
            block -= before @ (before.T @ block)
        for at in range(block.shape[1]):
            column, done = block[:, at], block[:, :at]
            for _ in range(2):
                column -= done @ (done.T @ column)
            column /= np.sqrt(column @ column)
        made[:, start : start + block.shape[1]] = block
    return np.ascontiguousarray(made, np.float32)
