"""Do the published scores still come out? Expected scores in YAML drive run, check and page."""

from __future__ import annotations

from cormorant.evaluate.reproduce.checking import Outcome, page_with, reproduce, table
from cormorant.evaluate.reproduce.expected import Expectation, Expected, read_expected
from cormorant.evaluate.reproduce.measuring import measured, runs
from cormorant.evaluate.reproduce.sets import JudgedSet, judged_set, shipped_set

__all__ = [
    "Expectation",
    "Expected",
    "JudgedSet",
    "Outcome",
    "judged_set",
    "measured",
    "page_with",
    "read_expected",
    "reproduce",
    "runs",
    "shipped_set",
    "table",
]
