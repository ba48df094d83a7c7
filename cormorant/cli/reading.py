"""What is in these files? Text, Markdown and JSON lines as records, and what could not be read."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from cormorant.cli.paragraphs import split
from cormorant.errors import RecordError
from cormorant.model import Record

__all__ = ["SUFFIXES", "Failure", "Skipped", "Source", "expand"]

SUFFIXES = (".txt", ".md", ".jsonl")
_FIELDS = frozenset(("id", "text", "metadata", "vector"))
_ILL_NAMED = re.compile("[\ud800-\udfff]")
_WIDE = ("utf-16", "utf-32", "utf16", "utf32", "u16", "u32")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that could not be stored: a file, or a line of one (from 1; 0 for all of it)."""

    file: str
    line: int
    error: str

    def __str__(self) -> str:
        return f"{self.file}{f', line {self.line}' if self.line else ''}: {self.error}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Files of a folder that were passed over, which is no failure."""

    file: str
    why: str


Item: TypeAlias = "tuple[int, Record] | Failure"


@dataclass(slots=True)
class Source:
    """One file, or standard input, that becomes records.

    Attributes:
        path: The file; None for standard input.
        encoding: Of the text, unless a byte order mark says otherwise.
        prefix: Begins the ids of this source's records and is their ``source``; known once
            the source is read.
        cut: How many records the text was cut into; None for JSON lines, whose ids are
            their own.
        found: Whether a folder led to it, rather than its own name.
        lines: Whether it is JSON lines, whose metadata are its own; known once it is read.
    """

    path: Path | None
    encoding: str = "utf-8"
    prefix: str = ""
    cut: int | None = field(default=None)
    found: bool = False
    lines: bool = False

    @property
    def name(self) -> str:
        """For messages."""
        return "standard input" if self.path is None else str(self.path)

    def items(self) -> Iterator[Item]:
        """The records with their line numbers, and a Failure for each that could not be read."""
        if self.path is not None and _ILL_NAMED.search(str(self.path)):
            # The ids of its records begin with it, and no encoding can store it.
            yield Failure(self.name, 0, "its name is not valid text here; rename the file.")
            return
        try:
            raw = sys.stdin.buffer.read() if self.path is None else self.path.read_bytes()
            text = _decode(raw, self.encoding)
        except OSError as error:
            yield Failure(self.name, 0, f"cannot be read: {error.strerror or error}.")
            return
        except RecordError as error:
            yield Failure(self.name, 0, str(error))
            return
        if self.path is None:
            # Named by content: another text does not replace it, the same one does.
            self.prefix = f"stdin-{hashlib.sha256(raw).hexdigest()[:12]}"
            self.lines = _looks_like_json_lines(text)
        else:
            self.prefix = self.path.as_posix()
            self.lines = self.path.suffix.lower() == ".jsonl"
        yield from self._from_lines(text) if self.lines else self._from_text(text)

    def _from_text(self, text: str) -> Iterator[Item]:
        count = 0
        for piece in split(text):
            metadata = {"source": self.prefix, "chunk": count, "line": piece.line}
            yield piece.line, Record(f"{self.prefix}#{count}", piece.text, metadata=metadata)
            count += 1
        self.cut = count

    def _from_lines(self, text: str) -> Iterator[Item]:
        seen: dict[str, int] = {}
        # Not splitlines: it would also cut at the line separators inside a text.
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                record = _record(line, f"{self.prefix}#{number}")
                if record.id in seen:
                    raise RecordError(
                        f"the id {record.id!r} was already used in line {seen[record.id]}."
                    )
            except RecordError as error:
                yield Failure(self.name, number, str(error))
                continue
            seen[record.id] = number
            yield number, record


def expand(names: Sequence[str], encoding: str) -> Iterator[Source | Failure | Skipped]:
    """The sources that the arguments name: ``-`` is standard input, a folder its text files.

    Hidden files and folders inside a folder are left out; files are taken in sorted order.
    """
    for name in names:
        path = Path(name)
        if name == "-":
            yield Source(None, encoding)
        elif path.is_dir():
            files = sorted(
                p for p in path.rglob("*") if not _hidden(p.relative_to(path)) and p.is_file()
            )
            found = [p for p in files if p.suffix.lower() in SUFFIXES]
            if not found:
                yield Failure(name, 0, f"a folder without {', '.join(SUFFIXES)} files.")
            yield from (
                Skipped(str(p), f"accepted are {', '.join(SUFFIXES)}")
                for p in files
                if p.suffix.lower() not in SUFFIXES
            )
            yield from (Source(p, encoding, found=True) for p in found)
        elif path.exists() and path.suffix.lower() not in SUFFIXES:
            yield Failure(
                name,
                0,
                f"accepted are {', '.join(SUFFIXES)}; got {path.suffix or 'no ending'}. "
                f"To add it as plain text: cormorant add KB - < {name}",
            )
        else:
            yield Source(path, encoding)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _decode(raw: bytes, encoding: str) -> str:
    for mark, marked in _MARKS:
        if raw.startswith(mark):
            encoding = marked
            break
    else:
        if b"\0" in raw[:65536] and not encoding.lower().replace("_", "-").startswith(_WIDE):
            raise RecordError("looks binary: it has NUL bytes. Only text can be added.")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise RecordError(
            f"is not {encoding}: byte 0x{raw[error.start]:02x} at offset {error.start}. "
            "Convert it, or name its encoding, as in --encoding gb18030."
        ) from error
    except UnicodeError as error:
        raise RecordError(f"is not {encoding}: {error}.") from error


def _looks_like_json_lines(text: str) -> bool:
    first = text.lstrip().split("\n", 1)[0]
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool({"text", "vector"} & set(value))


def _record(line: str, default_id: str) -> Record:
    try:
        value: Any = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not valid JSON: {error}.") from error
    accepted = "id, text, metadata and vector"
    if not isinstance(value, dict):
        raise RecordError(f"expected an object with {accepted}; got {type(value).__name__}.")
    unknown = sorted(set(value) - _FIELDS)
    if unknown:
        raise RecordError(
            f"unknown field {unknown[0]!r}; accepted are {accepted}. "
            "Put other values under metadata."
        )
    if "text" not in value and "vector" not in value:
        raise RecordError("has neither text nor vector.")
    text = value.get("text", "")
    if not isinstance(text, str):
        raise RecordError(f"text must be a string; got {type(text).__name__}.")
    identity = value.get("id", default_id)
    if isinstance(identity, int) and not isinstance(identity, bool):
        identity = str(identity)
    if not isinstance(identity, str):
        raise RecordError(f"id must be a string; got {identity!r}.")
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise RecordError(f"metadata must be an object; got {type(metadata).__name__}.")
    return Record(identity, text, value.get("vector"), metadata)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
