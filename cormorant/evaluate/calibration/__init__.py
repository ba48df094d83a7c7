"""What does a score mean? Relevances made probabilities, by judged questions."""

from __future__ import annotations

from cormorant.evaluate.calibration.calibrate import Calibrated, calibrate
from cormorant.evaluate.calibration.isotonic import Steps, isotonic
from cormorant.evaluate.calibration.quality import Bin, Quality, Threshold, quality

__all__ = ["Bin", "Calibrated", "Quality", "Steps", "Threshold", "calibrate", "isotonic", "quality"]
