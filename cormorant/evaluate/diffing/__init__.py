"""What did a change do to the answers, and why?"""

from __future__ import annotations

from cormorant.evaluate.diffing.changes import Change, Diff, QueryDiff, diff
from cormorant.evaluate.diffing.reasons import settings_of, with_reasons

__all__ = ["Change", "Diff", "QueryDiff", "diff", "settings_of", "with_reasons"]
