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


# Sorting a run of combining marks takes the square of its length. 30 is the Stream-Safe Text
# Format's limit (Unicode Standard Annex #15, section 13): no language comes near it.
_MARKS_IN_A_ROW: Final = 30
# Combining once they are in their plain form: two Tibetan vowels, and the half-width voicing marks.
_COMBINING_LATER: Final = "\u0f73\u0f75\u0f81\uff9e\uff9f"


@cache
def _marks() -> re.Pattern[str]:
    """Runs that may hold too many marks: no mark is a letter or digit but the half-width ones."""
    return re.compile(rf"[\W\uff9e\uff9f]{{{_MARKS_IN_A_ROW + 1},}}")


def _cap(match: re.Match[str]) -> str:
    run = match[0]
    if run.isascii():
        return run
    kept: list[str] = []
    row = 0
    for character in run:
        mark = unicodedata.combining(character) or character in _COMBINING_LATER
        row = row + 1 if mark else 0
        if row <= _MARKS_IN_A_ROW:
            kept.append(character)
    return "".join(kept)


def _replace(match: re.Match[str]) -> str:
    raised = match["raised"]
    return f" {raised}" if raised else ""


def normalise(text: str) -> str:
    """NFKC without what is invisible; case and accents are still there.

    Args:
        text: Any string. Of more than 30 combining marks in a row the first 30 count, so the
            time is linear whatever the text.

    Returns:
        The text with full-width forms, ligatures and the like in their plain form.
    """
    if text.isascii():
        return text
    visible = _unwanted().sub(_replace, text)
    return unicodedata.normalize("NFKC", _marks().sub(_cap, visible))


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
