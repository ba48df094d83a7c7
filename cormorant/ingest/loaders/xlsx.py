"""What does a workbook say, sheet by sheet?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from openpyxl import load_workbook

from cormorant.ingest.loaders.table import described

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]

_ROWS: Final = 2**20  # of a sheet, as Excel has them


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of each sheet as lines of ``column: value``; formulas by the value last computed."""
    book = load_workbook(file.path, read_only=True, data_only=True)
    try:
        for sheet in book.worksheets:
            # What a sheet says of its size may be all there can be: each row would be that wide.
            sheet.reset_dimensions()
            rows = (
                ["" if value is None else str(value) for value in row]
                for row in sheet.iter_rows(max_row=_ROWS, values_only=True)
            )
            for text, first in described(rows):
                yield text, {"sheet": sheet.title, "row": first}
    finally:
        book.close()
