"""Which share of the first k places holds a relevant document?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["PRECISION", "precision"]


def precision(places: Places, k: int | None) -> NDArray[np.float64]:
    """``precision@k = relevant among the first k / k``.

    Args:
        places: Rankings and judgements.
        k: Places that count, also where fewer documents came back; None for as many as came.

    Returns:
        float64, shape (queries,), from 0 to 1.

    Source:
        Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, eq. 8.1
        and section 8.4; trec_eval's ``P``.
    """
    return places.share(places.hits(k).sum(axis=1), places.returned if k is None else k)


PRECISION = Metric(
    "precision", "share of the first k places that hold a relevant document", "required", precision
)
