"""Is this store, and the pipeline around it, ready for production?"""

from __future__ import annotations

from cormorant.ingest.doctor.diagnosis import Diagnosis, Finding
from cormorant.ingest.doctor.examining import examine
from cormorant.ingest.doctor.pipeline import Pipeline
from cormorant.ingest.doctor.table import CHECKS, Check

__all__ = ["CHECKS", "Check", "Diagnosis", "Finding", "Pipeline", "examine"]
