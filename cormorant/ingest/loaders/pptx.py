"""What does a presentation say, slide by slide?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pptx import Presentation

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """A document a slide: its shapes' and tables' texts in their order, then its notes."""
    found = Presentation(str(file.path))
    title = found.core_properties.title or None
    for number, slide in enumerate(found.slides, start=1):
        lines = [text for shape in slide.shapes for text in _texts(shape)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines.append(slide.notes_slide.notes_text_frame.text)
        head = slide.shapes.title.text_frame.text if slide.shapes.title is not None else None
        yield "\n".join(filter(None, lines)), {"title": title, "page": number, "section": head}


def _texts(shape: Any) -> Iterator[str]:
    if shape.has_text_frame:
        yield shape.text_frame.text
    if getattr(shape, "has_table", False) and shape.has_table:
        for row in shape.table.rows:
            yield "\t".join(cell.text for cell in row.cells)
    for inner in getattr(shape, "shapes", ()):
        yield from _texts(inner)
