"""Where does a sentence end, in English, Chinese and what writes like them?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["sentence_spans"]

# A full stop ends a sentence before a space, its Chinese sisters anywhere; closing quotes and
# brackets belong to the sentence before. So does an empty line.
_END: Final = re.compile(
    r"(?:[。！？!?…]+|(?<![.])[.]++(?=[\"'”’）)\]」』]*(?:\s|$)))[\"'”’）)\]」』]*\s*|\n\s*\n\s*"
)
_NO_END: Final = re.compile(
    r"(?:^|[\s(])(?:Dr|Mr|Mrs|Ms|Prof|St|vs|etc|e\.g|i\.e|cf|Fig|No|Eq|Vol|pp?|al|[A-Z])\.\s+$"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text lie: (start, end), in order, without space around them.

    Example:
        >>> text = "Dr. Wu asked: why? 鸬鹚捕鱼。翅膀会湿吗？ Version 1.2 says no."
        >>> [text[start:end] for start, end in sentence_spans(text)]
        ['Dr. Wu asked: why?', '鸬鹚捕鱼。', '翅膀会湿吗？', 'Version 1.2 says no.']
    """
    return list(_spans(text))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if text[match.start()] == "." and _NO_END.search(text, max(start, end - 20), end):
            continue
        yield from _stripped(text, start, end)
        start = end
    yield from _stripped(text, start, len(text))


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    if part.strip():
        left = start + len(part) - len(part.lstrip())
        yield left, left + len(part.strip())
