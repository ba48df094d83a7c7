r"""Does a string match an SQL-style pattern?

``%`` stands for any characters, also none; ``_`` for exactly one; ``\%``, ``\_`` and
``\\`` for the character itself. The whole string must match.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["compile_like", "count_wildcards", "literal_prefix", "pattern_fault"]

_WILD = "%_"
_ESCAPE = "\\"


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with the pattern, if anything is."""
    try:
        _tokens(pattern)
    except ValueError as fault:
        return str(fault)
    return None


@lru_cache(maxsize=256)
def compile_like(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """The pattern as a regular expression, to be used with ``fullmatch``.

    Each piece between two ``%`` is matched where it first occurs and never tried again
    (an atomic group), which is enough for LIKE and bounds the time, for every pattern, by
    the string's length times the longest piece's, hence by ``defaults.MAX_PATTERN_LENGTH``.
    """
    pieces: list[str] = [""]
    for token, wild in _tokens(pattern):
        if wild and token == "%":  # noqa: S105 - a wildcard, not a password
            pieces.append("")
        else:
            pieces[-1] += "." if wild else re.escape(token)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    if len(pieces) == 1:
        return re.compile(pieces[0], flags)
    first, *middle, last = pieces
    inner = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(f"{first}{inner}.*{last}", flags)


def count_wildcards(pattern: str) -> int:
    """How many ``%`` and ``_`` are not escaped."""
    return sum(wild for _, wild in _tokens(pattern))


def literal_prefix(pattern: str) -> str:
    """The characters every match begins with (case-sensitively)."""
    prefix = ""
    for token, wild in _tokens(pattern):
        if wild:
            break
        prefix += token
    return prefix


def _tokens(pattern: str) -> list[tuple[str, bool]]:
    """Characters and whether each is a wildcard."""
    tokens = []
    characters = iter(pattern)
    for character in characters:
        if character == _ESCAPE:
            escaped = next(characters, "")
            if not escaped or escaped not in _WILD + _ESCAPE:
                raise ValueError(
                    f"a backslash escapes %, _ or another backslash; it is followed by {escaped!r}"
                    if escaped
                    else "it ends in a lone backslash"
                )
            tokens.append((escaped, False))
        else:
            tokens.append((character, character in _WILD))
    return tokens
