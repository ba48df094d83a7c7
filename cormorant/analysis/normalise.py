"""Which characters of a text are the same to a reader?"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

__all__ = ["fold_accents", "fold_digits", "fold_han", "normalise"]

# Invisible inside words: soft hyphen, joiners, direction marks, variation selectors, and the
# optional vowel signs of Hebrew and Arabic (with the Arabic tatweel, a mere stretch).
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u180e\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f"
    "\ufeff\U000e0100-\U000e01ef\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640"
    "\u064b-\u065f\u0670"
)
# NFKC would glue these to the number before them: 6½ → 61⁄2, 10⁶ → 106.
_RAISED: Final = "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2150-\u215f\u2189"


@cache
def _unwanted() -> re.Pattern[str]:
    return re.compile(f"[{_INVISIBLE}]+|(?P<raised>[{_RAISED}]+)")


def _replace(match: re.Match[str]) -> str:
    raised = match["raised"]
    return f" {raised}" if raised else ""


def normalise(text: str) -> str:
    """NFKC without what is invisible; case and accents are still there.

    Args:
        text: Any string.

    Returns:
        The text with full-width forms, ligatures and the like in their plain form.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _unwanted().sub(_replace, text))


# Letters that no decomposition takes apart.
_LETTERS: Final = {
    ord(letter): plain
    for letter, plain in zip(
        "ßæœøđðłþħıŋĸſςё",
        ("ss", "ae", "oe", "o", "d", "d", "l", "th", "h", "i", "n", "k", "s", "σ", "е"),
        strict=True,
    )
}


def fold_accents(term: str) -> str:
    """A lower-case term without the accents of Latin and Greek letters.

    Other scripts keep theirs: Cyrillic й is no и, and Indic vowel signs are vowels.
    """
    if term.isascii():
        return term
    kept: list[str] = []
    foldable = False
    for character in unicodedata.normalize("NFD", term.translate(_LETTERS)):
        if "\u0300" <= character <= "\u036f":
            if foldable:
                continue
        else:
            foldable = character < "\u0400" or "\u1e00" <= character <= "\u1fff"
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept))


def fold_digits(token: str) -> str:
    """The same token with every script's decimal digits as 0 to 9."""
    if token.isascii():
        return token
    return "".join(
        str(unicodedata.decimal(character)) if character.isdecimal() else character
        for character in token
    )


@cache
def _simplified() -> dict[int, str]:
    from cormorant.analysis.t2s import SIMPLIFIED, TRADITIONAL

    return dict(zip(map(ord, TRADITIONAL), SIMPLIFIED, strict=True))


def fold_han(run: str) -> str:
    """A run of Han characters with Traditional ones in their Simplified form."""
    return run.translate(_simplified())
