"""Plan → legs → fuse → diversify → explain: the one way a query is answered.

Everything reads a :class:`Snapshot`; nothing here knows where bytes are kept.
"""

from __future__ import annotations

from cormorant.search.admit import matching
from cormorant.search.calibration import Calibration, Curve
from cormorant.search.candidates import Candidates, gather
from cormorant.search.diversify import Picks, pick_diverse
from cormorant.search.explain import explain
from cormorant.search.fuse import FUSIONS, Fused, LegScores, fuse
from cormorant.search.legs import Statistics
from cormorant.search.lookalike import Likeness, most_like
from cormorant.search.probes import Embed, questions
from cormorant.search.ranking import RankingConfig
from cormorant.search.run import run
from cormorant.search.snapshot import Snapshot
from cormorant.search.trust import Trust, learn
from cormorant.search.why_not import why_not

__all__ = [
    "FUSIONS",
    "Calibration",
    "Candidates",
    "Curve",
    "Embed",
    "Fused",
    "LegScores",
    "Likeness",
    "Picks",
    "RankingConfig",
    "Snapshot",
    "Statistics",
    "Trust",
    "explain",
    "fuse",
    "gather",
    "learn",
    "matching",
    "most_like",
    "pick_diverse",
    "questions",
    "run",
    "why_not",
]
