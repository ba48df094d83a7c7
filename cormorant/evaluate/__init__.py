"""Is it better? Metrics and judgements; takes any callable from query to ranked ids."""

from __future__ import annotations

from cormorant.evaluate.metrics.ndcg import mean_ndcg, ndcg
from cormorant.evaluate.qrels import Qrels, parse_qrels, read_qrels

__all__ = ["Qrels", "mean_ndcg", "ndcg", "parse_qrels", "read_qrels"]
