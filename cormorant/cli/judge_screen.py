"""What does somebody see who judges passages, and which key was pressed?"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

from cormorant.width import clip, plain, wrap

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.evaluate.judgements import Item

__all__ = ["HELP", "KEYS", "card", "key", "shown"]

KEYS: Final = "0-4 grade, s skip, u undo, q quit, ? help"
HELP: Final = (
    "0  not about the question",
    "1  about its subject, without answering it",
    "2  answers a part of it",
    "3  answers it",
    "4  answers it fully, and is what should come first",
    "s  skip: asked again another time",
    "u  undo the last answer",
    "q  quit; what was judged is kept",
)
_LINES: Final = 40  # of a passage
_ROOM: Final = 100  # columns: longer lines are hard to read
# Joiners and the soft hyphen shape letters; other format characters can reorder what is read.
_SHAPING: Final = frozenset("\u200c\u200d\u00ad")


def shown(text: str) -> str:
    """The text without what would move a cursor, colour it, or turn its reading direction."""
    return "".join(
        char for char in text if unicodedata.category(char) not in {"Cf", "Co"} or char in _SHAPING
    )


def card(
    item: Item, total: int, query: str, passage: str, title: str | None, console: Console
) -> Iterator[str]:
    """One passage and its question, as lines; nothing says which system found it."""
    room = min(console.width, _ROOM)
    yield ""
    yield console.style(f"{item.number} of {total}", "dim")
    for line in wrap(shown(query), room, 6):
        yield console.style(line, "bold")
    yield "─" * min(room, 40)
    if title:
        yield console.style(clip(plain(shown(title)), room), "cyan")
    lines = [
        line for part in shown(passage).split("\n") for line in wrap(part, room, _LINES + 1)
    ] or ["(no text)"]
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield console.style("… (the rest is not shown)", "dim")


def key(stream: TextIO) -> str:
    """The next key: pressed on a terminal, else the next line's; empty at the end."""
    if not stream.isatty():
        line = stream.readline()
        return (line.strip().lower() or "?") if line else ""
    return _pressed(stream)


def _pressed(stream: TextIO) -> str:
    import os
    import termios
    import tty

    sys.stdout.flush()
    sys.stderr.flush()
    file = stream.fileno()
    before = termios.tcgetattr(file)
    try:
        # Ctrl-C stays an interrupt; what was typed ahead is not thrown away.
        tty.setcbreak(file, termios.TCSADRAIN)
        pressed = os.read(file, 1).decode("ascii", "replace")
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
    return "" if pressed in {"", "\x04"} else pressed.lower()
