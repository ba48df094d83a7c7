"""Is it better, by how much, and how sure is that?"""

from __future__ import annotations

from cormorant.evaluate.comparing.comparison import Comparison, Moved, compare, compare_all
from cormorant.evaluate.comparing.holes import Holes, holes
from cormorant.evaluate.comparing.holm import holm
from cormorant.evaluate.comparing.interval import Interval, bootstrap_interval
from cormorant.evaluate.comparing.randomisation import randomisation_p

__all__ = [
    "Comparison",
    "Holes",
    "Interval",
    "Moved",
    "bootstrap_interval",
    "compare",
    "compare_all",
    "holes",
    "holm",
    "randomisation_p",
]
