"""Is any relevant document among the first k?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["HIT", "hit"]


def hit(places: Places, k: int | None) -> NDArray[np.float64]:
    """``hit@k = 1`` if a relevant document is among the first k, else 0; its mean is the hit rate.

    Args:
        places: Rankings and judgements.
        k: Places that count; None for all.

    Returns:
        float64, shape (queries,), 0 or 1.

    Source:
        trec_eval's ``success``.
    """
    return np.where(places.hits(k).any(axis=1), 1.0, 0.0)


HIT = Metric("hit", "1 if a relevant document is among the first k", "required", hit)
