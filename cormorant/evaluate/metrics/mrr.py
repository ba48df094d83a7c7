"""How far down is the first relevant document?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["MRR", "mrr"]


def mrr(places: Places, k: int | None) -> NDArray[np.float64]:
    """``1 / rank of the first relevant document``; 0 if none is among the first k.

    Args:
        places: Rankings and judgements.
        k: Places that count; None for all.

    Returns:
        float64, shape (queries,), from 0 to 1: the reciprocal ranks, whose mean is the MRR.

    Source:
        Voorhees, "The TREC-8 Question Answering Track Report", 1999; trec_eval's
        ``recip_rank``, which counts all places.
    """
    hits = places.hits(k)
    if not hits.shape[1]:
        return np.zeros(len(hits))
    return np.where(hits.any(axis=1), 1.0 / (hits.argmax(axis=1) + 1), 0.0)


MRR = Metric("mrr", "1 / rank of the first relevant document", "optional", mrr)
