"""How does a report look in Markdown?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cormorant.width import plain

__all__ = ["markdown_escape", "markdown_table"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown_table(rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Rows as a pipe table, the first being the heads, figures aligned to the right.

    Args:
        rows: Cells; the first column is a name, the others are figures.
        notes: Paragraphs below it.
    """
    head, *body = [[markdown_escape(cell) for cell in row] for row in rows]
    rule = ["---", *("---:" for _ in head[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    for note in notes:
        lines.extend(["", markdown_escape(note)])
    return "\n".join(lines) + "\n"


def markdown_escape(text: str) -> str:
    """The text on one line, with what Markdown would read as markup escaped."""
    return _SPECIAL.sub(r"\\\1", plain(text))
