"""How many of the true nearest does a scan of codes find? Asked with points made of the vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import Mask
from cormorant.index.vector.codebook import one_thread
from cormorant.index.vector.coded import Coded
from cormorant.index.vector.metric import normalise, scores
from cormorant.index.vector.truth import nearest
from cormorant.model import Metric

__all__ = ["Curve", "Questions", "midpoints"]

ASKED = 200
_SEED = 4321


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean recall by how many codes' vectors were compared exactly.

    Attributes:
        rescored: Ascending.
        ten, hundred: Recall of the 10, and of the 100, nearest; float64, one for each.
    """

    rescored: tuple[int, ...]
    ten: NDArray[np.float64]
    hundred: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Points whose true nearest are known.

    They lie half way between two stored vectors. A question does not lie on a stored vector,
    whose own nearest are easily told apart; half way between two, the curve of recall follows
    that of held-out real queries, from a little below (docs/decisions/0015).

    Attributes:
        asked: float32, shape (q, dim).
        tenth, hundredth: float32, shape (q,): the exact score of the 10th and of the 100th
            nearest. What scores as much was found as well: equal vectors are equally near.
    """

    asked: NDArray[np.float32]
    tenth: NDArray[np.float32]
    hundredth: NDArray[np.float32]

    @classmethod
    def draw(
        cls,
        vectors: NDArray[np.float32],
        usable: NDArray[np.int64],
        metric: Metric,
        progress: Callable[[float], None] = lambda _done: None,
    ) -> Questions:
        """Make them, and find their true nearest by comparing all vectors.

        Args:
            vectors: float32, shape (n, dim); read block by block.
            usable: int64, ascending: the slots whose vectors mean something; at least 100.
            metric: How to compare.
            progress: Told what part of the vectors was seen.

        Returns:
            The same from the same vectors.
        """
        asked = midpoints(vectors, usable, metric, ASKED, _SEED)
        with one_thread():
            true = nearest(vectors, usable, asked, 100, metric, progress)
        floors = [
            scores(point, vectors[[row[9], row[-1]]], metric)
            for point, row in zip(asked, true, strict=True)
        ]
        tenth, hundredth = np.stack(floors).T
        return cls(asked, tenth, hundredth)

    def curve(
        self,
        coded: Coded,
        vectors: NDArray[np.float32],
        mask: Mask | None,
        rescored: tuple[int, ...],
        *,
        probes: int,
    ) -> Curve:
        """Ask them of codes.

        Args:
            coded: Whose codes.
            vectors: float32, shape (n, dim): what the codes stand for.
            mask: bool, shape (coded.n,): which slots may be found; None: all.
            rescored: Ascending: how many of the nearest codes to compare exactly.
            probes: Lists looked into.
        """
        kernel = coded.kernel()
        counts = np.array(rescored)
        ten, hundred = np.zeros(len(counts)), np.zeros(len(counts))
        for point, tenth, hundredth in zip(self.asked, self.tenth, self.hundredth, strict=True):
            near = kernel.search(point, rescored[-1], mask, probes=probes)
            found = scores(point, vectors[near], coded.metric)
            ten += _among(found >= tenth, counts, 10)
            hundred += _among(found >= hundredth, counts, 100)
        return Curve(rescored, ten / len(self.asked), hundred / len(self.asked))


def midpoints(
    vectors: NDArray[np.float32], usable: NDArray[np.int64], metric: Metric, count: int, seed: int
) -> NDArray[np.float32]:
    """Points half way between two stored vectors, as :func:`check_vector` would return them.

    Args:
        vectors: float32, shape (n, dim).
        usable: int64: the slots whose vectors mean something; at least one.
        metric: How vectors are compared.
        count: How many points; fewer if there are fewer vectors.
        seed: The same points from the same one.
    """
    rng = np.random.default_rng(seed)
    one, other = (rng.choice(usable, min(count, len(usable)), replace=False) for _ in range(2))
    asked = vectors[one] + vectors[other]
    asked /= 2
    if metric == "cosine":
        opposite = ~asked.any(axis=1)  # two vectors that cancel have no middle
        asked[opposite] = vectors[one[opposite]]
    return normalise(asked, metric)


def _among(hit: NDArray[np.bool_], counts: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Which part of ``k`` is hit among the first of each count."""
    so_far = np.concatenate([[0], np.cumsum(hit)])
    found: NDArray[np.float64] = np.minimum(so_far[np.minimum(counts, len(hit))], k) / k
    return found
