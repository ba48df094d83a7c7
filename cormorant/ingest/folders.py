"""What of a folder is to be kept in step, and what of it cannot even be looked at?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from langchain_core.documents import Document

from cormorant.ingest.files import SourceFile, walk
from cormorant.ingest.loaders import format_of, load
from cormorant.ingest.report import Failed
from cormorant.ingest.sources import ReadSource

__all__ = ["Listing", "list_folder"]


@dataclass(slots=True)
class Listing:
    """What is in a folder.

    Attributes:
        sources: Files to read, by name.
        failed: Folders and files that cannot be looked at; what the store holds of them stays.
        links: How many links were passed over, because they lead out of the folder or in circles.
    """

    sources: list[ReadSource] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    links: int = 0


def list_folder(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Listing:
    """The files of a folder, as :func:`cormorant.ingest.files.walk` finds them."""
    found = Listing()

    def passed_over(source: str, why: str) -> None:
        if (root / source).is_symlink():
            found.links += 1
        else:
            found.failed.append(Failed(source, why))

    seen: set[str] = set()
    for file in walk(root, include=include, exclude=exclude, passed_over=passed_over):
        if file.source in seen:  # names that are no UTF-8 are written with escapes
            why = "another file is called the same, once both names are written as text. Rename it."
            found.failed.append(Failed(file.source, why))
            continue
        seen.add(file.source)
        read = partial(_read, file)
        found.sources.append(ReadSource(file.source, file.size_bytes, file.modified, read))
    found.sources.sort(key=lambda source: source.source)
    return found


def _read(file: SourceFile) -> Iterator[Document]:
    """A text that was emptied has nothing to say any more, which is no failure to read it."""
    form = format_of(file.source)
    if file.size_bytes or form is None or form.module != "plain":
        yield from load(file)
