"""Does this metadata match? The filter language: one operator table, parse, match, explain.

``parse`` turns a dict into a :class:`Filter`; ``Filter.matches`` decides for one record
and is the oracle the column masks of ``index.metadata`` are tested against.
The language is described in ``docs/filters.md``.
"""

from __future__ import annotations

from cormorant.filters.explain import Clause, explain
from cormorant.filters.operators import (
    FIELD_OPERATORS,
    FILTER_OPERATORS,
    OPERATORS,
    Operator,
    table,
)
from cormorant.filters.parse import MAX_CLAUSES, parse
from cormorant.filters.tree import (
    EVERYTHING,
    And,
    Compare,
    Filter,
    Not,
    Or,
    Text,
    TextMatch,
    conjoin,
    describe,
    escape_field,
)

__all__ = [
    "EVERYTHING",
    "FIELD_OPERATORS",
    "FILTER_OPERATORS",
    "MAX_CLAUSES",
    "OPERATORS",
    "And",
    "Clause",
    "Compare",
    "Filter",
    "Not",
    "Operator",
    "Or",
    "Text",
    "TextMatch",
    "conjoin",
    "describe",
    "escape_field",
    "explain",
    "parse",
    "table",
]
