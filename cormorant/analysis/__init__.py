"""Text → terms: what is a word, in English, Chinese, other languages and identifiers?

The index and the query go through the same :class:`Analyzer`; its ``spec`` is kept in the
store, because postings depend on it. ``docs/text.md`` describes what it does.
"""

from __future__ import annotations

from cormorant.analysis.analyzer import Analyzer, analyzer_for, analyzer_from_spec
from cormorant.analysis.languages import LANGUAGES

__all__ = ["LANGUAGES", "Analyzer", "analyzer_for", "analyzer_from_spec"]
