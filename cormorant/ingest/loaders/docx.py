"""What does a Word document say, section by section?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import docx
from docx.table import Table, _Cell, _Row

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]

_LEVELS: Final = 9


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """A document for each heading's text; a table is lines of cells with tabs between them."""
    found = docx.Document(str(file.path))
    title = found.core_properties.title or None
    sections: list[str | None] = [None] * _LEVELS
    lines: list[str] = []
    for block in found.iter_inner_content():
        if isinstance(block, Table):
            lines.extend(_row(row, block) for row in block.rows)
            continue
        style = block.style.name if block.style is not None else ""
        level = _level(style or "")
        if level is None:
            lines.append(block.text)
            continue
        yield "\n".join(lines).strip(), _told(title, sections)
        lines = [block.text, ""]
        sections[level:] = [block.text.strip(), *[None] * (_LEVELS - level - 1)]
    yield "\n".join(lines).strip(), _told(title, sections)


def _row(row: _Row, table: Table) -> str:
    """Each cell once: ``row.cells`` repeats one for each column it spans, however many it says."""
    return "\t".join(_Cell(cell, table).text for cell in row._tr.tc_lst)  # noqa: SLF001 - no other


def _level(style: str) -> int | None:
    """From 0, of a heading; None of another style."""
    name, _, number = style.rpartition(" ")
    if style == "Title":
        return 0
    if name == "Heading" and number.isdecimal() and 1 <= int(number) <= _LEVELS:
        return int(number) - 1
    return None


def _told(title: str | None, sections: list[str | None]) -> dict[str, Any]:
    return {"title": title, "section": " > ".join(each for each in sections if each)}
