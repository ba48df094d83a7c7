"""How often do relevant documents stand above ones that were judged not to be?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["BPREF", "bpref"]


def bpref(places: Places, k: int | None = None) -> NDArray[np.float64]:  # noqa: ARG001 - every metric's
    """``bpref = 1/R Σ_r (1 - min(n_r, R) / min(N, R))``, unjudged documents left out.

    R documents were judged relevant and N judged 0; r runs over the relevant ones that came
    back, and n_r of the N stand above r.

    Args:
        places: Rankings and judgements. A grade below 0 counts as unjudged.
        k: Not read: all places count.

    Returns:
        float64, shape (queries,), from 0 to 1; 0 where nothing relevant was judged.

    Source:
        Buckley and Voorhees, "Retrieval evaluation with incomplete information", SIGIR 2004,
        doi:10.1145/1008992.1009000, with the bound min(N, R) that trec_eval's ``bpref`` has
        since version 8.
    """
    hits = places.hits()
    above = np.cumsum(places.judged & (places.grades == 0), axis=1)
    bound = np.minimum(places.refuted, places.relevant)
    lost = np.minimum(above, places.relevant[:, None]) / np.maximum(bound, 1)[:, None]
    return places.share(((1.0 - lost) * hits).sum(axis=1), places.relevant)


BPREF = Metric("bpref", "share of judged pairs in the right order", "none", bpref)
