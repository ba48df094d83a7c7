"""How does a report look on a terminal?"""

from __future__ import annotations

from collections.abc import Sequence

from cormorant.evaluate.comparing.comparison import Comparison
from cormorant.width import clip, columns, plain, table, wrap

__all__ = ["comparison_lines", "terminal_table"]

_NAME_LEAST = 12
"""Columns a system's name keeps, however narrow the terminal."""
_LINES = 50
"""More than any note has: nothing of it is cut off."""


def terminal_table(rows: Sequence[Sequence[str]], notes: Sequence[str], width: int) -> str:
    """Rows as aligned text, the first being the heads; names are clipped, figures never.

    Args:
        rows: Cells; the first column is a name, the others are figures.
        notes: Paragraphs below it.
        width: Columns to fit into. A table that is wider goes on below with its other columns.

    Returns:
        Lines, each ending in a newline.
    """
    cells = [[plain(row[0]), *(_aligned(plain(cell)) for cell in row[1:])] for row in rows]
    wide = [max(columns(row[i]) for row in cells) for i in range(len(cells[0]))]
    name = min(wide[0], max(_NAME_LEAST, width - 2 - max(wide[1:], default=0)))
    blocks: list[list[int]] = [[]]
    taken = name
    for i, needed in enumerate(wide[1:], start=1):
        if blocks[-1] and taken + 2 + needed > width:
            blocks.append([])
            taken = name
        blocks[-1].append(i)
        taken += 2 + needed
    lines: list[str] = []
    for block in blocks:
        shown = [[clip(row[0], name), *(row[i] for i in block)] for row in cells]
        lines.extend([*table(shown, right=range(1, len(block) + 1)), ""])
    for note in notes:
        lines.extend(wrap(note, width, _LINES))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _aligned(cell: str) -> str:
    """Figures stand below each other whether or not a mark follows."""
    return cell if cell[-1:] in {"+", "-"} else f"{cell} "


def comparison_lines(comparison: Comparison, width: int = 100, *, most: int = 10) -> list[str]:
    """A comparison in words: the verdict, what to know, and the queries that moved most.

    Args:
        comparison: What to show.
        width: Columns to fit into.
        most: Queries to list.
    """
    lines = wrap(comparison.says, width, _LINES)
    for warning in comparison.warnings:
        lines.extend(wrap(f"Note: {warning}", width, _LINES))
    moved = comparison.moved(most)
    if moved:
        lines.extend(["", f"Moved most of {comparison.wins + comparison.losses}:"])
        room = max(_NAME_LEAST, width - 30)
        shown = [
            (
                clip(plain(each.query), room),
                f"{each.baseline:.4f}",
                "→",
                f"{each.system:.4f}",
                f"{each.difference:+.4f}",
            )
            for each in moved
        ]
        lines.extend(f"  {line}" for line in table(shown, right=(1, 3, 4)))
    return lines
