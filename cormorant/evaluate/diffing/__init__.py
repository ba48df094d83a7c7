"""What did a change do to the answers, and why?"""

from __future__ import annotations

from cormorant.evaluate.diffing.changes import Change, Diff, QueryDiff, diff
from cormorant.evaluate.diffing.reasons import Asked, asked_for, with_reasons

__all__ = ["Asked", "Change", "Diff", "QueryDiff", "asked_for", "diff", "with_reasons"]
