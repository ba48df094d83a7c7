"""Where does a token begin and end?"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

__all__ = ["UNSPACED", "is_unspaced", "token_pattern"]

UNSPACED: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # 々, 〇 and kin
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3100-\u312f\u31a0-\u31bf"  # bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Character class of scripts that put no space between words (or, in Korean, too few)."""

_EMOJI: Final = "\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf"

# Vowel signs and accents that ``\w`` leaves out, by block: Indic blocks in whole but for the danda.
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0610-\u061a\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b\u0898-\u08ff"
    "\u0900-\u0963\u0966-\u0dff\u0f18\u0f19\u0f35-\u0f39\u0f71-\u0f84\u0f86-\u0fbc\u1712-\u1714"
    "\u1920-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1b00-\u1b04\u1b34-\u1b44\u1b80-\u1b82\u1ba1-\u1bad"
    "\u1be6-\u1bf3\u1c24-\u1c37\u1dc0-\u1dff\u20d0-\u20ff\ua67c\ua67d\ua802-\ua82c\ua880-\ua8f1"
    "\ua926-\ua953\ua980-\ua9c0"
)


@cache
def token_pattern() -> re.Pattern[str]:
    r"""The one regular expression every text goes through, by ``findall``.

    A token is a run of an unspaced script, an emoji, or words joined as in ``snake_case``,
    ``v0.3.7``, ``o'neil``, ``a.b@c.org``, ``AT&T``, ``12:30``, ``1,000``, with what belongs to
    a name before or after: ``#4421``, ``.NET``, ``C++``, ``C#``. Quantifiers are possessive,
    so the time is linear whatever the text.
    """
    letter = rf"[^\W{UNSPACED}]"
    # Atomic groups, since CPython before 3.11.5 matches a possessive group, (?:…)*+, wrongly.
    word = f"{letter}++(?>(?:[{_MARKS}]++{letter}*+)*)"
    joined = rf"{word}(?>(?:[.\-'’@&]{word}|(?<=[0-9])[:,](?=[0-9]){word})*)"
    before = r"(?:[#.](?<![\w#.].)(?=[^\W_]))?"
    after = r"(?:\+\+|\#(?!\w))?"
    return re.compile(rf"{before}{joined}{after}|[{UNSPACED}]++|[{_EMOJI}]")


def is_unspaced(token: str) -> bool:
    """Whether a token of :func:`token_pattern` is a run of an unspaced script."""
    first = token[0]
    return first >= "\u0e00" and _unspaced().match(first) is not None


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")
