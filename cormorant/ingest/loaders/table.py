"""What does a table say, row by row?"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from cormorant.ingest.loaders.decoding import decoded_parts

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["described", "read"]

_ROWS: Final = 200  # of one document
_CELL: Final = 2**20  # characters
_SNIFFED: Final = 4_000  # characters: the time this takes grows with their square


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows as lines of ``column: value``, the first row being the columns' names."""
    csv.field_size_limit(_CELL)
    # Only a line feed ends a row: splitlines() would cut cells at form feeds and U+2028, too.
    lines = chain.from_iterable(io.StringIO(part, newline="\n") for part in decoded_parts(file))
    head = list(islice(lines, 50))
    dialect: Any = "excel-tab" if file.source.lower().endswith(".tsv") else _dialect("".join(head))
    for text, first in described(csv.reader(chain(head, lines), dialect)):
        yield text, {"row": first}


def described(rows: Iterable[list[str]]) -> Iterator[tuple[str, int]]:
    """Documents of some rows each, and the number of their first row, counted from 1."""
    ahead = iter(rows)
    names = next(ahead, [])
    first, lines = 2, list[str]()
    for number, row in enumerate(ahead, start=2):
        cells = [cell.strip() for cell in row]
        told = [
            f"{names[i].strip()}: {cell}" if i < len(names) and names[i].strip() else cell
            for i, cell in enumerate(cells)
            if cell
        ]
        if told:
            lines.append("; ".join(told))
        if len(lines) >= _ROWS:
            yield "\n".join(lines), first
            first, lines = number + 1, []
    if lines:
        yield "\n".join(lines), first
    elif first == 2 and any(name.strip() for name in names):
        yield "; ".join(names), 1


def _dialect(sample: str) -> Any:
    try:
        return csv.Sniffer().sniff(sample[:_SNIFFED], delimiters=",;\t|")
    except csv.Error:
        return "excel"
