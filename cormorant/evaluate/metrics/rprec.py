"""With R relevant documents, which share of the first R places holds one?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["RPREC", "r_precision"]


def r_precision(places: Places, k: int | None = None) -> NDArray[np.float64]:  # noqa: ARG001 - every metric's
    """``R-precision = relevant among the first R / R``, R being how many were judged relevant.

    Args:
        places: Rankings and judgements.
        k: Not read: each query has its own R.

    Returns:
        float64, shape (queries,), from 0 to 1; 0 where nothing relevant was judged.

    Source:
        Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, section
        8.4; trec_eval's ``Rprec``.
    """
    hits = places.hits()
    counted = np.arange(hits.shape[1]) < places.relevant[:, None]
    return places.share((hits & counted).sum(axis=1), places.relevant)


RPREC = Metric(
    "rprec", "precision at as many places as there are relevant documents", "none", r_precision
)
