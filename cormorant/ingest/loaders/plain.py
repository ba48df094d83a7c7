"""Text, Markdown and source code: what does the file say, as it is?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cormorant.ingest.loaders.decoding import decoded_parts
from cormorant.ingest.loaders.formats import format_of

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]

_HEADING: Final = re.compile(r"^#\s+(.+?)\s*#*\s*$", re.MULTILINE)


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """The text; a large one in parts. Markdown's title is its first heading of the first level."""
    title = None
    parts = decoded_parts(file)
    first = next(parts, "")
    found = format_of(file.source)
    if found is not None and found.name == "markdown" and (match := _HEADING.search(first)):
        title = match[1]
    second = next(parts, None)
    yield first, {"title": title} | ({} if second is None else {"part": 1})
    if second is not None:
        yield second, {"title": title, "part": 2}
    for number, part in enumerate(parts, start=3):
        yield part, {"title": title, "part": number}
