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
    counted = Counter(map(_script, filter(str.isalpha, text[:_SEEN])))
    return max(counted, key=lambda name: (counted[name], name), default=None)


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "OTHER").split(" ", 1)[0].split("-", 1)[0]
    return "CJK" if name in _EAST else name
