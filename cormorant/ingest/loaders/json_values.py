"""What does a JSON file say? Its texts, with the keys they stand under."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cormorant.errors import LoadError
from cormorant.ingest.loaders.decoding import decoded, decoded_parts

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]

_DEEPEST: Final = 64
_LONGEST: Final = 16 * 2**20  # characters of a line


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """A document for each line of ``.jsonl``, each element of a list, else one for the whole.

    A document is lines of ``key.key: value``. An object whose texts stand under ``text`` and
    ``title``, as in many corpora, is its text, with its title.

    Raises:
        LoadError: If it is no JSON, saying where.
    """
    if file.source.lower().endswith((".jsonl", ".ndjson")):
        number = 0
        rest = ""
        for part in decoded_parts(file):
            lines = (rest + part).split("\n")
            rest = lines.pop()
            if len(rest) > _LONGEST:
                raise LoadError(
                    f"{file.source}, line {number + len(lines) + 1} has more than {_LONGEST:,} "
                    "characters. Split it.",
                    path=file.path,
                )
            for line in lines:
                number += 1
                if line.strip():
                    yield _document(_parsed(file, line, number), {"row": number})
        if rest.strip():
            yield _document(_parsed(file, rest, number + 1), {"row": number + 1})
        return
    value = _parsed(file, decoded(file), None)
    if isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        for number, each in enumerate(value, start=1):
            yield _document(each, {"row": number})
    else:
        yield _document(value, {})


def _parsed(file: SourceFile, written: str, line: int | None) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        where = "" if line is None else f", line {line}"
        raise LoadError(f"{file.source}{where} is no JSON: {error}.", path=file.path) from error


def _document(value: Any, metadata: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        title = value.get("title")
        return value["text"], {**metadata, "title": title if isinstance(title, str) else None}
    return "\n".join(_lines(value, "", 0)), metadata


def _lines(value: Any, path: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"{path}: …"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _lines(each, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _lines(each, path, depth + 1)
    elif value is not None and value != "":
        yield f"{path}: {value}" if path else str(value)
