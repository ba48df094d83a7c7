"""How good is this run, by these judgements?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.metrics.places import Places
from cormorant.evaluate.names import DEFAULT_METRICS, parse_metrics
from cormorant.evaluate.run import Run

__all__ = ["judge"]


def judge(
    run: Run,
    qrels: Mapping[str, Mapping[str, float]],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
) -> Evaluation:
    """Judge a run, query by query.

    Every judged query counts, as with ``trec_eval -c``: one that the run does not answer, or
    that failed, has each metric's value of an empty ranking, and the evaluation names it
    (``missing``, ``failed``). Queries without judgements are left out. A query whose
    judgements name nothing relevant counts, with 0 in all metrics but ``unjudged``, as in
    trec_eval.

    Args:
        run: What a system answered.
        qrels: Query id to judged document ids and their grades; above 0 is relevant.
        metrics: Names such as ``ndcg@10``; one, several separated by commas, or a list.

    Returns:
        Each metric's value for each judged query, in the judgements' order.

    Raises:
        UsageError: If there are no judgements, or on a metric that does not exist.

    Example:
        >>> run = Run("a", {"1": (("x", 2.0), ("y", 1.0))})
        >>> judge(run, {"1": {"y": 1}}, "mrr, recall@1").means
        {'mrr': 0.5, 'recall@1': 0.0}
    """
    named = parse_metrics(metrics)
    places = Places.of({query: run.ids(query) for query in qrels}, qrels)
    values = np.stack([each.of(places) for each in named], axis=1)
    return Evaluation(run, tuple(qrels), tuple(each.name for each in named), values, qrels)
