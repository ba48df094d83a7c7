"""What are the terms of a script that puts no space between words?

Characters and pairs of characters: no dictionary to age, and a question of one character
finds what contains it.
"""

from __future__ import annotations

from operator import add
from typing import Final

__all__ = ["grams", "query_grams"]

# Characters that say how a sentence is built, not what it is about; Simplified, as folded.
_STOP_CHARACTERS: Final = frozenset(
    "的了和是在有与为以于之也就都而及着或被把对等这那其他她它我你您们吗呢吧啊哪谁什么几个中上下到从由向因"
    "并但所自该此"
)
_STOP_PAIRS: Final = frozenset(
    {
        *("什么", "哪些", "哪个", "哪里", "哪种", "哪一", "多少", "是什", "为什", "怎么", "怎样"),
        *("如何", "是谁", "的是", "是多", "了什", "么是", "几个", "何时", "何种", "哪年", "是哪"),
        *("在哪", "有哪", "有什", "的什", "请问", "谁是"),
    }
)


def grams(run: str) -> list[str]:
    """Index side: every character and every pair of neighbours."""
    return [*run, *map(add, run, run[1:])]


def query_grams(run: str) -> list[str]:
    """Query side: without what only asks; single characters only of Han, or if there is but one.

    Kana, Hangul and Thai letters stand for sounds: alone they say nothing, and match everywhere.
    """
    if len(run) == 1:
        return [] if run in _STOP_CHARACTERS else [run]
    pairs = [pair for pair in map(add, run, run[1:]) if pair not in _STOP_PAIRS]
    return [*(one for one in run if _is_han(one) and one not in _STOP_CHARACTERS), *pairs]


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or character >= "\U00020000" or character == "\u3007"
