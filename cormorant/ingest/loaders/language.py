"""Which language is a text written in, as far as its script and small words tell?"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Final

from cormorant.analysis.languages import resolve
from cormorant.analysis.scripts import script_of
from cormorant.analysis.stopwords import STOP_WORDS

__all__ = ["language_of"]

_LOOKED_AT: Final = 4_000
_FEWEST: Final = 4  # small words; fewer tell nothing
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_CODES: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "ru")


def language_of(text: str) -> str | None:
    """An ISO 639-1 code; None where it cannot be told.

    Example:
        >>> language_of("Where does the cormorant dive, and what is it that it finds there?")
        'en'
        >>> language_of("鸬鹚在哪里潜水？"), language_of("うみう"), language_of("x = 3")
        ('zh', 'ja', None)
    """
    looked = text[:_LOOKED_AT]
    script = script_of(looked)
    if script == "CJK":
        return "ja" if _KANA.search(looked) else "zh"
    if script == "HANGUL":
        return "ko"
    counted: Counter[str] = Counter()
    for word in _WORD.findall(looked.lower()):
        counted.update(_languages().get(word, ()))
    best = counted.most_common(2)
    if not best or best[0][1] < _FEWEST:
        return None
    clear = len(best) == 1 or best[0][1] > 1.3 * best[1][1]
    return best[0][0] if clear else None


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """By small word, the languages that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for code in _CODES:
        for word in STOP_WORDS.get(resolve(code), ()):
            found[word] = (*found.get(word, ()), code)
    return found
