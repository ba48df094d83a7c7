"""Is it better? Metrics and judgements; takes any callable from query to ranked ids."""

from __future__ import annotations

from cormorant.evaluate.answers import Reply, ranking_of
from cormorant.evaluate.beir import read_beir, read_beir_corpus, write_beir
from cormorant.evaluate.calibration import Calibrated, calibrate
from cormorant.evaluate.comparing import Comparison, Groups, by_field, compare, compare_all
from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.files import (
    read_groups,
    read_qrels,
    read_queries,
    read_run,
    write_qrels,
    write_queries,
    write_run,
)
from cormorant.evaluate.formats.trec import parse_qrels
from cormorant.evaluate.gate import Gate, Verdict, check_gates
from cormorant.evaluate.golden import Golden
from cormorant.evaluate.keeping import forget_golden, keep_golden, kept_golden
from cormorant.evaluate.metrics.ndcg import mean_ndcg, ndcg
from cormorant.evaluate.names import DEFAULT_METRICS, METRICS, parse_metric, parse_metrics
from cormorant.evaluate.qrels import Qrels
from cormorant.evaluate.reporting import Report, report
from cormorant.evaluate.run import Cost, Ranking, Run
from cormorant.evaluate.running import System, run_system
from cormorant.evaluate.scoring import judge
from cormorant.evaluate.spending import Spending, spending
from cormorant.evaluate.store_system import StoreSystem, store_settings
from cormorant.evaluate.tuning import Chunking, Point, Space, Tuned, tune

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Calibrated",
    "Chunking",
    "Comparison",
    "Cost",
    "Evaluation",
    "Gate",
    "Golden",
    "Groups",
    "Point",
    "Qrels",
    "Ranking",
    "Reply",
    "Report",
    "Run",
    "Space",
    "Spending",
    "StoreSystem",
    "System",
    "Tuned",
    "Verdict",
    "by_field",
    "calibrate",
    "check_gates",
    "compare",
    "compare_all",
    "forget_golden",
    "judge",
    "keep_golden",
    "kept_golden",
    "mean_ndcg",
    "ndcg",
    "parse_metric",
    "parse_metrics",
    "parse_qrels",
    "ranking_of",
    "read_beir",
    "read_beir_corpus",
    "read_groups",
    "read_qrels",
    "read_queries",
    "read_run",
    "report",
    "run_system",
    "spending",
    "store_settings",
    "tune",
    "write_beir",
    "write_qrels",
    "write_queries",
    "write_run",
]
