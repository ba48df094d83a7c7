"""Which settings are best for this store's questions? Chosen by some, judged by others."""

from __future__ import annotations

from cormorant.evaluate.tuning.choosing import Fold
from cormorant.evaluate.tuning.point import Point
from cormorant.evaluate.tuning.space import DEFAULT_SPACE, Space
from cormorant.evaluate.tuning.tune import tune
from cormorant.evaluate.tuning.tuned import AS_SET, Training, Tuned
from cormorant.evaluate.tuning.variants import Chunker, Chunking

__all__ = [
    "AS_SET",
    "DEFAULT_SPACE",
    "Chunker",
    "Chunking",
    "Fold",
    "Point",
    "Space",
    "Training",
    "Tuned",
    "tune",
]
