"""The same as nDCG, for graded judgements whose high grades should count for much more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.ndcg import normalised
from cormorant.evaluate.metrics.places import Places

__all__ = ["NDCG_EXP", "ndcg_exponential"]


def ndcg_exponential(places: Places, k: int | None) -> NDArray[np.float64]:
    """Normalised discounted cumulative gain with gain ``2^grade - 1``.

    ``DCG@k = Σ_{i=1..k} (2^grade_i - 1) / log2(i + 1)`` over that of the ideal list.

    Args:
        places: Rankings and judgements. A document without a grade counts as 0, a negative
            grade too.
        k: Places that count; None for all.

    Returns:
        float64, shape (queries,), from 0 to 1; 0 where nothing relevant was judged. With
        grades 0 and 1 alone it is the same as ``ndcg``.

    Source:
        Burges et al., "Learning to rank using gradient descent", ICML 2005,
        doi:10.1145/1102351.1102363, section 7. trec_eval has no such measure.
    """
    # All gains of a query are divided by 2^its highest grade, so that none overflows.
    highest = places.ideal.max(axis=1, initial=0.0, keepdims=True)
    least = np.exp2(-highest)
    gains = np.exp2(np.maximum(places.grades, 0.0) - highest) - least
    return normalised(places, gains, np.exp2(places.ideal - highest) - least, k)


NDCG_EXP = Metric("ndcg_exp", "the same with gain = 2^grade - 1", "optional", ndcg_exponential)
