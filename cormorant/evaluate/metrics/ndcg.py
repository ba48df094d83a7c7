"""How much of the ideal order's gain did this ranking collect in its first k places?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cormorant.errors import UsageError

__all__ = ["mean_ndcg", "ndcg"]


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], k: int = 10) -> float:
    """Normalised discounted cumulative gain of one ranked list, linear gain.

    ``DCG@k = Σ_{i=1..k} grade_i / log2(i + 1)`` and ``nDCG@k = DCG@k / ideal DCG@k``,
    where the ideal list holds all judged documents by falling grade.

    Args:
        ranked: Document ids, best first, each once.
        grades: Judged ids and their grades; a missing id counts as 0, a negative grade too.
        k: Places that count, at least 1.

    Returns:
        From 0 to 1, higher is better; 0 if nothing relevant was judged.

    Raises:
        UsageError: If ``k`` is less than 1 or ``ranked`` names an id twice.

    Example:
        >>> ndcg(["b", "a"], {"a": 1})
        0.6309297535714575

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        20(4), 2002, doi:10.1145/582415.582418, with the discount log2(i + 1) from the first
        place on and gain = grade, as trec_eval's ``ndcg_cut`` computes it.
    """
    if k < 1:
        raise UsageError(f"k must be a whole number of at least 1; got {k!r}.")
    if len(set(ranked)) != len(ranked):
        raise UsageError("A ranked list must name each document once; it names one twice.")
    gains = [max(grades.get(doc, 0), 0) for doc in ranked[:k]]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
    best = _dcg(ideal)
    return _dcg(gains) / best if best else 0.0


def mean_ndcg(
    run: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]], k: int = 10
) -> float:
    """The mean of :func:`ndcg` over all judged queries.

    Args:
        run: Query id to ranked document ids. A judged query that is missing counts as 0; a
            query without judgements is left out, as trec_eval does with ``-c``.
        qrels: Query id to grades.
        k: Places that count.

    Returns:
        From 0 to 1, higher is better.

    Raises:
        UsageError: If there are no judgements.
    """
    if not qrels:
        raise UsageError("There are no judgements: qrels is empty.")
    return math.fsum(ndcg(run.get(q, ()), grades, k) for q, grades in qrels.items()) / len(qrels)


def _dcg(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))
