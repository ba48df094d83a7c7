"""Which documents were judged relevant to which query?"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Qrels"]

Qrels: TypeAlias = dict[str, dict[str, float]]
"""Query id to judged document ids and their grades; above 0 is relevant. Whole grades are ints."""
