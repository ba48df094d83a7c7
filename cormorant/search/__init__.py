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
from cormorant.search.probes import Embed, questions
from cormorant.search.ranking import RankingConfig
from cormorant.search.run import run
from cormorant.search.snapshot import Snapshot
from cormorant.search.trust import Trust, learn

__all__ = [
    "FUSIONS",
    "Calibration",
    "Candidates",
    "Curve",
    "Embed",
    "Fused",
    "LegScores",
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
    "pick_diverse",
    "questions",
    "run",
]
