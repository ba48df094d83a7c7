"""How many columns does a text take on a terminal, and how is it cut and padded to fit?"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["clip", "columns", "pad", "plain", "table", "wrap"]

_WIDE = frozenset("WF")
_NO_WIDTH = frozenset(("Mn", "Me", "Cf"))


def columns(text: str) -> int:
    """Columns on a terminal: Chinese characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def plain(text: str) -> str:
    """The text on one line, without what would move a terminal's cursor or colour it.

    Stored text comes from anywhere; an escape sequence in it must not reach the terminal.
    """
    return " ".join("".join(c if unicodedata.category(c) != "Cc" else " " for c in text).split())


def clip(text: str, room: int) -> str:
    """The text cut to ``room`` columns, ending in an ellipsis if it was longer."""
    if columns(text) <= room:
        return text
    taken = 0
    for place, char in enumerate(text):
        taken += _width(char)
        if taken > room - 1:
            return text[:place].rstrip() + "…"
    return text


def pad(text: str, room: int, *, right: bool = False) -> str:
    """The text filled with blanks to ``room`` columns; ``right`` aligns it to the right."""
    blanks = " " * max(0, room - columns(text))
    return blanks + text if right else text + blanks


def wrap(text: str, room: int, lines: int) -> list[str]:
    """The text in at most ``lines`` lines of ``room`` columns; the last one may be clipped."""
    out: list[str] = []
    rest = plain(text)
    while rest and len(out) < lines - 1 and columns(rest) > room:
        cut = _break(rest, room)
        out.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    if rest:
        out.append(clip(rest, room))
    return out


def _break(text: str, room: int) -> int:
    """Where to cut so that what comes before fits: after a blank or a wide character."""
    taken = 0
    best = 0
    for place, char in enumerate(text):
        taken += _width(char)
        if taken > room:
            return best or max(place, 1)
        if char == " " or _width(char) == 2:
            best = place + 1
    return len(text)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows as aligned lines, two blanks between columns; ``right`` lists right-aligned ones."""
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        "  ".join(
            pad(cell, width, right=i in right)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
