"""How much of the ideal order's gain did this ranking collect in its first k places?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.places import Places

__all__ = ["NDCG", "mean_ndcg", "ndcg", "ndcg_linear", "normalised"]


def ndcg_linear(places: Places, k: int | None) -> NDArray[np.float64]:
    """Normalised discounted cumulative gain, the gain being the grade.

    ``DCG@k = Σ_{i=1..k} grade_i / log2(i + 1)`` and ``nDCG@k = DCG@k / ideal DCG@k``,
    where the ideal list holds all judged documents by falling grade.

    Args:
        places: Rankings and judgements. A document without a grade counts as 0, a negative
            grade too.
        k: Places that count; None for all.

    Returns:
        float64, shape (queries,), from 0 to 1; 0 where nothing relevant was judged.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        20(4), 2002, doi:10.1145/582415.582418, with the discount log2(i + 1) from the first
        place on and gain = grade, as trec_eval's ``ndcg`` and ``ndcg_cut`` compute it.
    """
    return normalised(places, np.maximum(places.grades, 0.0), places.ideal, k)


def normalised(
    places: Places, gains: NDArray[np.float64], ideal: NDArray[np.float64], k: int | None
) -> NDArray[np.float64]:
    """Discounted gains over the discounted gains of the ideal list; 0 where there are none."""
    return places.share(_dcg(gains[:, :k]), _dcg(ideal[:, :k]))


def _dcg(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    # Not a matrix product: what is at the last places must not depend on how BLAS adds up.
    discounts = np.log2(np.arange(2, gains.shape[1] + 2))
    summed: NDArray[np.float64] = (gains / discounts).sum(axis=1)
    return summed


NDCG = Metric(
    "ndcg", "discounted gain over the ideal order's, gain = grade", "optional", ndcg_linear
)


def ndcg(ranked: Sequence[str], grades: Mapping[str, float], k: int = 10) -> float:
    """:func:`ndcg_linear` of one ranked list.

    Args:
        ranked: Document ids, best first, each once.
        grades: Judged ids and their grades.
        k: Places that count, at least 1.

    Returns:
        From 0 to 1, higher is better; 0 if nothing relevant was judged.

    Raises:
        UsageError: If ``k`` is less than 1 or ``ranked`` names an id twice.

    Example:
        >>> ndcg(["b", "a"], {"a": 1})
        0.6309297535714575
    """
    return mean_ndcg({"": ranked}, {"": grades}, k)


def mean_ndcg(
    run: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, float]], k: int = 10
) -> float:
    """The mean of :func:`ndcg_linear` over all judged queries.

    Args:
        run: Query id to ranked document ids. A judged query that is missing counts as 0; a
            query without judgements is left out, as trec_eval does with ``-c``.
        qrels: Query id to grades.
        k: Places that count.

    Returns:
        From 0 to 1, higher is better.

    Raises:
        UsageError: If there are no judgements, ``k`` is less than 1, or a ranked list names an
            id twice.

    Example:
        >>> round(mean_ndcg({"1": ["a"], "2": ["b", "a"]}, {"1": {"a": 1}, "2": {"a": 1}}), 4)
        0.8155
    """
    if k < 1:
        raise UsageError(f"k must be a whole number of at least 1; got {k!r}.")
    for ranked in run.values():
        if len(set(ranked)) != len(ranked):
            raise UsageError("A ranked list must name each document once; it names one twice.")
    return float(ndcg_linear(Places.of(run, qrels), k).mean())
