"""How precise is the ranking at each relevant document, on average?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["MAP", "average_precision"]


def average_precision(places: Places, k: int | None) -> NDArray[np.float64]:
    """``AP = Σ precision@i over the places i ≤ k of relevant documents / relevant judged``.

    Args:
        places: Rankings and judgements.
        k: Places that count; None for all. A relevant document behind them counts 0.

    Returns:
        float64, shape (queries,), from 0 to 1, whose mean is the MAP; 0 where nothing relevant
        was judged.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000,
        doi:10.1145/345508.345543; trec_eval's ``map`` and ``map_cut``.
    """
    hits = places.hits(k)
    precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return places.share((precisions * hits).sum(axis=1), places.relevant)


MAP = Metric(
    "map", "mean of the precision at each relevant document", "optional", average_precision
)
