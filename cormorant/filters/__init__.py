"""Does this metadata match? The filter language: one operator table, parse, match, explain.

``parse`` turns a dict into a :class:`Filter`; ``Filter.matches`` decides for one record
and is the oracle the column masks of ``index.metadata`` are tested against.
The language is described in ``docs/filters.md``.
"""

from __future__ import annotations

from cormorant.filters.explain import Clause, crossed, explain
from cormorant.filters.like import compile_like, literal_prefix
from cormorant.filters.operands import Choices, Interval, Operand
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
from cormorant.filters.values import Kind, Value, kind_and_key, reach

__all__ = [
    "EVERYTHING",
    "FIELD_OPERATORS",
    "FILTER_OPERATORS",
    "MAX_CLAUSES",
    "OPERATORS",
    "And",
    "Choices",
    "Clause",
    "Compare",
    "Filter",
    "Interval",
    "Kind",
    "Not",
    "Operand",
    "Operator",
    "Or",
    "Text",
    "TextMatch",
    "Value",
    "compile_like",
    "conjoin",
    "crossed",
    "describe",
    "escape_field",
    "explain",
    "kind_and_key",
    "literal_prefix",
    "parse",
    "reach",
    "table",
]
