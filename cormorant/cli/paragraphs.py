"""Where is a text cut into records? At paragraphs, up to about 500 characters each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ROOM", "Paragraph", "split"]

ROOM = 500
"""Characters a record holds, unless one word alone is longer."""

_BLANK = re.compile(r"\n[ \t]*\n")
_HEADING = re.compile(r"#{1,6} \S[^\n]*\Z")
# A sentence may end here: after Chinese stops at once, after Latin ones before a blank.
_STOP = re.compile(r"(?<=[。！？；])|(?<=[.!?;])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A piece of a text: ``line`` is where it begins, from 1."""

    text: str
    line: int


def split(text: str) -> Iterator[Paragraph]:
    """Cut at blank lines; join short neighbours, cut long ones at sentence ends.

    A Markdown heading is never left alone at the end of a piece: it goes with what follows.
    """
    held: list[Paragraph] = []
    size = 0
    for piece in _pieces(text):
        if held and size + len(piece.text) > ROOM:
            carried = [held.pop()] if len(held) > 1 and _HEADING.match(held[-1].text) else []
            yield _joined(held)
            held = carried
            size = sum(len(kept.text) + 2 for kept in held)
        held.append(piece)
        size += len(piece.text) + 2
    if held:
        yield _joined(held)


def _joined(held: list[Paragraph]) -> Paragraph:
    return Paragraph("\n\n".join(piece.text for piece in held), held[0].line)


def _pieces(text: str) -> Iterator[Paragraph]:
    """Paragraphs, none longer than the room if it can be helped."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    line = 1
    start = 0
    for blank in [*_BLANK.finditer(text), None]:
        end = blank.start() if blank else len(text)
        block = text[start:end]
        before = len(block) - len(block.lstrip())
        first = line + block.count("\n", 0, before)
        if block.strip():
            yield from _cut(block.strip(), first)
        if blank:
            line += text.count("\n", start, blank.end())
            start = blank.end()


def _cut(block: str, line: int) -> Iterator[Paragraph]:
    start = 0
    while len(block) - start > ROOM:
        window = block[start : start + ROOM + 1]
        stops = [stop.end() for stop in _STOP.finditer(window) if stop.end() > ROOM // 4]
        cut = stops[-1] if stops else window.rfind(" ") + 1
        # No sentence end and no blank: Chinese without stops, or one endless token.
        cut = min(cut, ROOM) if cut > 0 else ROOM
        piece = block[start : start + cut]
        yield Paragraph(piece.strip(), line + block.count("\n", 0, start))
        start += cut
    rest = block[start:].strip()
    if rest:
        yield Paragraph(rest, line + block.count("\n", 0, start))
