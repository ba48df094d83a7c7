"""Which share of the relevant documents is among the first k?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["RECALL", "recall"]


def recall(places: Places, k: int | None) -> NDArray[np.float64]:
    """``recall@k = relevant among the first k / relevant judged``.

    Args:
        places: Rankings and judgements.
        k: Places that count; None for all.

    Returns:
        float64, shape (queries,), from 0 to 1; 0 where nothing relevant was judged.

    Source:
        Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, eq. 8.2;
        trec_eval's ``recall``.
    """
    return places.share(places.hits(k).sum(axis=1), places.relevant)


RECALL = Metric("recall", "share of the relevant documents among the first k", "required", recall)
