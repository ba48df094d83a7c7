"""What does the package ship to show itself with? The judged bilingual corpus."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

__all__ = ["LANGUAGES", "attribution", "documents", "judgements", "questions"]

LANGUAGES = ("en", "zh")


def documents(language: str) -> dict[str, str]:
    """The paragraphs of XQuAD in one language, by id; ids are the same in both."""
    return {row["id"]: row["text"] for row in _rows(f"docs-{language}.jsonl.gz")}


def questions(language: str) -> dict[str, str]:
    """The questions of XQuAD in one language, by id; ids are the same in both."""
    return {row["id"]: row["text"] for row in _rows(f"queries-{language}.jsonl.gz")}


def judgements() -> Iterator[str]:
    """The judgement lines: question id, paragraph id, grade."""
    yield from _text("qrels.tsv.gz").splitlines()


def attribution() -> str:
    """Whose work the corpus is, in one line."""
    return "XQuAD (Artetxe, Ruder and Yogatama, ACL 2020), CC BY-SA 4.0"


def _rows(name: str) -> Iterator[dict[str, Any]]:
    # Not splitlines: it would also cut at the line separators inside a text.
    for line in _text(name).split("\n"):
        if line:
            yield json.loads(line)


def _text(name: str) -> str:
    packed = files("cormorant.data").joinpath("xquad", name).read_bytes()
    return gzip.decompress(packed).decode("utf-8")
