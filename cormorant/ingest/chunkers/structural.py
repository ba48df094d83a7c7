"""How is a document cut along its own structure: headings of Markdown, definitions of code?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from cormorant import defaults
from cormorant.ingest.chunkers.base import Chunker, Span, check_sizes
from cormorant.ingest.chunkers.recursive import SEPARATORS, cut

__all__ = ["StructuralChunker"]

_HEADING: Final = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_FENCE: Final = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_LANGUAGES: Final = {
    "py": "python", "pyi": "python", "js": "js", "jsx": "js", "ts": "ts", "tsx": "ts",
    "java": "java", "kt": "kotlin", "c": "c", "h": "cpp", "cc": "cpp", "cpp": "cpp",
    "hpp": "cpp", "cs": "csharp", "go": "go", "rs": "rust", "rb": "ruby", "php": "php",
    "swift": "swift", "scala": "scala", "lua": "lua", "hs": "haskell", "ex": "elixir",
    "exs": "elixir", "ps1": "powershell", "proto": "proto",
}  # fmt: skip


class StructuralChunker(Chunker):
    """Markdown by headings, code by definitions, everything else at the best places there are.

    A chunk of Markdown never spans two headings, and has the headings above it under ``section``,
    joined by " > ". Pages, sheets and sections of other formats are documents of their own already.

    Args:
        size: Of a chunk, at most, in characters.
        overlap: How much of a chunk's end the next one of the same section may begin with.

    Raises:
        ConfigError: On sizes out of their range.
    """

    def __init__(
        self, size: int = defaults.CHUNK_SIZE, overlap: int = defaults.CHUNK_OVERLAP
    ) -> None:
        check_sizes(size, overlap)
        self.size, self.overlap = size, overlap

    def spans(self, text: str, metadata: dict[str, Any]) -> Iterator[tuple[Span, dict[str, Any]]]:
        """Where the chunks lie."""
        if metadata.get("type") == "markdown":
            for start, end, section in _sections(text):
                known = {"section": section} if section else {}
                for span in cut(text, start, end, self.size, self.overlap):
                    yield span, known
            return
        separators = SEPARATORS
        if metadata.get("type") == "code":
            separators = _of_language(str(metadata.get("source", "")))
        for span in cut(text, 0, len(text), self.size, self.overlap, separators):
            yield span, {}

    def settings(self) -> dict[str, Any]:
        """The arguments."""
        return {"size": self.size, "overlap": self.overlap}


def _sections(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and headings of each part of a Markdown text."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    inside = list(zip(fences[::2], fences[1::2] or [len(text)], strict=False))
    path: list[str | None] = [None] * 6
    start = 0
    for match in _HEADING.finditer(text):
        if any(low < match.start() < high for low, high in inside):
            continue  # a comment in code
        yield start, match.start(), " > ".join(each for each in path if each)
        level = len(match[1]) - 1
        path[level:] = [match[2], *[None] * (5 - level)]
        start = match.start()
    yield start, len(text), " > ".join(each for each in path if each)


def _of_language(source: str) -> tuple[str, ...]:
    """Where code of a file is cut: before its definitions, by langchain-text-splitters' lists."""
    name = _LANGUAGES.get(source.rsplit(".", 1)[-1].lower())
    if name is None:
        return SEPARATORS
    try:
        from langchain_text_splitters import Language, RecursiveCharacterTextSplitter
    except ImportError:
        return SEPARATORS
    found = RecursiveCharacterTextSplitter.get_separators_for_language(Language(name))
    # They stand at the beginning of what comes next, and ours at the end of what came before.
    before = tuple(
        rf"\n(?={re.escape(each.lstrip(chr(10)))})"
        for each in found
        if each.strip() and chr(10) in each
    )
    return (*before, r"\n[^\S\n]*\n\s*", r"\n", r"\s+")
