"""Which script is a text written in?"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final

__all__ = ["script_of"]

_SEEN: Final = 400  # characters, from the beginning
_EAST: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC"})  # written together


def script_of(text: str) -> str | None:
    """The script most of the first letters belong to, by its Unicode name; None without letters.

    Example:
        >>> script_of("Cormorants 鸬鹚"), script_of("鸬鹚捕鱼, v1"), script_of("42")
        ('LATIN', 'CJK', None)
    """
    return _written_in(text[:_SEEN])


@lru_cache(maxsize=4096)  # records that come up are likely to come up again
def _written_in(text: str) -> str | None:
    counted: Counter[str] = Counter()
    for letter, times in Counter(text).items():  # of each letter once
        script = _script(letter)
        if script is not None:
            counted[script] += times
    return max(counted, key=lambda name: (counted[name], name), default=None)


@lru_cache(maxsize=4096)
def _script(letter: str) -> str | None:
    if not letter.isalpha():
        return None
    name = unicodedata.name(letter, "OTHER").split(" ", 1)[0].split("-", 1)[0]
    return "CJK" if name in _EAST else name
