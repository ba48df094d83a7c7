"""Of how many of the first k documents does nobody know whether they are relevant?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["UNJUDGED", "unjudged"]


def unjudged(places: Places, k: int | None) -> NDArray[np.float64]:
    """``unjudged@k = documents without a judgement among the first k / documents there``.

    The other metrics count such documents as not relevant. Where one system has more of them
    than another, the judgements may favour the other.

    Args:
        places: Rankings and judgements. A grade below 0 is a judgement.
        k: Places that count; None for all.

    Returns:
        float64, shape (queries,), from 0 to 1, lower is better; 0 where no document came back.

    Source:
        1 - Judged@k of ir-measures, MacAvaney, Macdonald and Ounis, "Streamlining evaluation
        with ir-measures", ECIR 2022, doi:10.1007/978-3-030-99739-7_38, over the documents
        that came back where those are fewer than k.
    """
    there = places.returned if k is None else np.minimum(places.returned, k)
    return places.share(there - places.judged[:, :k].sum(axis=1), there)


UNJUDGED = Metric(
    "unjudged",
    "share of the first k documents that nobody judged",
    "required",
    unjudged,
    higher_is_better=False,
)
