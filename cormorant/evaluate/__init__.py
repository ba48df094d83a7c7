"""Is it better? Metrics and judgements; takes any callable from query to ranked ids."""

from __future__ import annotations

from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.judging import judge
from cormorant.evaluate.metrics.ndcg import mean_ndcg, ndcg
from cormorant.evaluate.names import DEFAULT_METRICS, METRICS, parse_metric, parse_metrics
from cormorant.evaluate.qrels import Qrels, parse_qrels, read_qrels
from cormorant.evaluate.run import Cost, Ranking, Run

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Cost",
    "Evaluation",
    "Qrels",
    "Ranking",
    "Run",
    "judge",
    "mean_ndcg",
    "ndcg",
    "parse_metric",
    "parse_metrics",
    "parse_qrels",
    "read_qrels",
]
