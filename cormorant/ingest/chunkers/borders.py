"""Where may a text be cut without tearing what a reader takes for one character?"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["is_border", "safe_cut"]

_JOINERS: Final = frozenset({"\u200d", "\ufe0e", "\ufe0f", "\u20e3"})
_MARKS: Final = frozenset({"Mn", "Me", "Mc"})
_VIRAMA: Final = 9  # joins two consonants in Indic scripts
_MODIFIERS: Final = ((0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F))  # skin tones, tags
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_FLAGS: Final = range(0x1F1E6, 0x1F200)
_LEADS, _VOWELS, _TAILS = range(0x1100, 0x1160), range(0x1160, 0x11A8), range(0x11A8, 0x1200)
_FLAGS_IN_LINE: Final = 256
_FURTHEST: Final = 64  # characters looked back; a longer cluster is torn


def safe_cut(text: str, at: int, least: int) -> int:
    r"""The last place up to ``at`` that lies between two characters as readers see them.

    Args:
        text: To be cut.
        at: Where it would be cut by number.
        least: The cut lies behind it, whatever it tears.

    Example:
        >>> text = "e\u0301a"  # an e with an accent, in two code points
        >>> safe_cut(text, 1, 0), safe_cut(text, 2, 0)
        (1, 2)
        >>> family = "a\U0001f468\u200d\U0001f469"
        >>> safe_cut(family, 3, 0)
        1
    """
    place = at
    while place > least + 1 and at - place < _FURTHEST and _joined(text, place):
        place -= 1
    return at if _joined(text, place) else place


def is_border(text: str, at: int) -> bool:
    """Whether a place lies between two characters as readers see them."""
    return not _joined(text, at)


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of a place belong together (near UAX 29)."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    ahead, code = ord(before), ord(after)
    return (
        after in _JOINERS
        or before == "\u200d"
        or unicodedata.category(after) in _MARKS
        or (unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo")
        or (before, after) == ("\r", "\n")
        or any(low <= code <= high for low, high in _MODIFIERS)
        or (ahead in _HIGH and code in _LOW)
        or (ahead in _FLAGS and code in _FLAGS and _flags_before(text, at) % 2 == 1)
        or (ahead in _LEADS and (code in _LEADS or code in _VOWELS))
        or (ahead in _VOWELS and (code in _VOWELS or code in _TAILS))
        or (ahead in _TAILS and code in _TAILS)
    )


def _flags_before(text: str, at: int) -> int:
    """How many letters of flags, which are pairs of them; no more than a line is counted."""
    run = 0
    while run < _FLAGS_IN_LINE and at - run > 0 and ord(text[at - run - 1]) in _FLAGS:
        run += 1
    return run
