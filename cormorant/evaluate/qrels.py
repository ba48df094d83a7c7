"""Which documents were judged relevant to which query?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from cormorant.errors import UsageError

__all__ = ["Qrels", "check_grades"]

Qrels: TypeAlias = dict[str, dict[str, float]]
"""Query id to judged document ids and their grades; above 0 is relevant. Whole grades are ints."""


def check_grades(qrels: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse grades that nothing can be computed from.

    Raises:
        UsageError: Naming query and document, on a grade that is no finite number.
    """
    for query, grades in qrels.items():
        try:
            # One addition in C a grade: a sum is finite if all of its parts are.
            sound = math.isfinite(sum(grades.values()))
        except (TypeError, OverflowError):
            sound = False
        if not sound:
            raise _unsound(query, grades)


def _unsound(query: str, grades: Mapping[str, float]) -> UsageError:
    for doc, grade in grades.items():
        try:
            number = math.isfinite(grade)
        except (TypeError, OverflowError):
            number = False
        if not number:
            return UsageError(
                f"The grade of query {query!r} and document {doc!r} must be a finite number; got "
                f"{grade!r:.80}. Leave out what was not judged."
            )
    return UsageError(f"The grades of query {query!r} are too great to be added up.")
