"""The one door: open, add, delete, get, search, explain, check, compact."""

from __future__ import annotations

from cormorant.search import Calibration, Candidates, Curve, RankingConfig, Trust
from cormorant.store.checked import RecallCheck
from cormorant.store.door import ScopedStore
from cormorant.store.family import Family
from cormorant.store.fingerprint import Fingerprint
from cormorant.store.maintenance import CheckReport, CompactReport, Stats
from cormorant.store.own import OWN_DOCUMENTS, stamps_of
from cormorant.store.recall import RecallReport
from cormorant.store.store import Store, open  # noqa: A004 - the public name

__all__ = [
    "OWN_DOCUMENTS",
    "Calibration",
    "Candidates",
    "CheckReport",
    "CompactReport",
    "Curve",
    "Family",
    "Fingerprint",
    "RankingConfig",
    "RecallCheck",
    "RecallReport",
    "ScopedStore",
    "Stats",
    "Store",
    "Trust",
    "open",
    "stamps_of",
]
