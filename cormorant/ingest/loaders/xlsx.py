"""What does a workbook say, sheet by sheet?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from openpyxl import load_workbook

from cormorant.ingest.loaders.table import described

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of each sheet as lines of ``column: value``; formulas by the value last computed."""
    book = load_workbook(file.path, read_only=True, data_only=True)
    try:
        for sheet in book.worksheets:
            rows = (
                ["" if value is None else str(value) for value in row]
                for row in sheet.iter_rows(values_only=True)
            )
            for text, first in described(rows):
                yield text, {"sheet": sheet.title, "row": first}
    finally:
        book.close()
