"""Is it better? Takes a store, or any callable from query to ranked ids.

What one sits down to do, and what to begin with; ``docs/evaluate.md`` shows each at work.

- ask a system and judge its answers: :func:`run_system`, :func:`judge`
- compare judged runs: :func:`compare`, :func:`report`; let a change through or not: :class:`Gate`
- see what changed, and why: :func:`diff`; more in :mod:`cormorant.evaluate.diffing`
- find better settings: :func:`tune`; make thresholds mean probabilities: :func:`calibrate`
- get judgements where there are none: :func:`known_items`; by hand or by a model, and how far to
  believe it: :mod:`cormorant.evaluate.judgements`
- keep questions and judgements in the store: :func:`keep_golden`
- read and write files: ``read_…`` and ``write_…``
"""

from __future__ import annotations

from cormorant.evaluate.answers import Reply
from cormorant.evaluate.beir import read_beir, read_beir_corpus, write_beir
from cormorant.evaluate.calibration import Calibrated, calibrate
from cormorant.evaluate.comparing import Comparison, compare, compare_all
from cormorant.evaluate.diffing import Diff, diff
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
from cormorant.evaluate.groups import Groups, by_field
from cormorant.evaluate.judgements import KnownItems, known_items
from cormorant.evaluate.keeping import forget_golden, keep_golden, kept_golden
from cormorant.evaluate.metrics.ndcg import mean_ndcg, ndcg
from cormorant.evaluate.names import DEFAULT_METRICS, METRICS, parse_metric
from cormorant.evaluate.qrels import Qrels
from cormorant.evaluate.reporting import Report, report
from cormorant.evaluate.run import Cost, Ranking, Run
from cormorant.evaluate.running import run_system
from cormorant.evaluate.scoring import judge
from cormorant.evaluate.spending import Spending, spending
from cormorant.evaluate.tuning import Chunking, Point, Space, Tuned, tune

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Calibrated",
    "Chunking",
    "Comparison",
    "Cost",
    "Diff",
    "Evaluation",
    "Gate",
    "Golden",
    "Groups",
    "KnownItems",
    "Point",
    "Qrels",
    "Ranking",
    "Reply",
    "Report",
    "Run",
    "Space",
    "Spending",
    "Tuned",
    "Verdict",
    "by_field",
    "calibrate",
    "check_gates",
    "compare",
    "compare_all",
    "diff",
    "forget_golden",
    "judge",
    "keep_golden",
    "kept_golden",
    "known_items",
    "mean_ndcg",
    "ndcg",
    "parse_metric",
    "parse_qrels",
    "read_beir",
    "read_beir_corpus",
    "read_groups",
    "read_qrels",
    "read_queries",
    "read_run",
    "report",
    "run_system",
    "spending",
    "tune",
    "write_beir",
    "write_qrels",
    "write_queries",
    "write_run",
]
