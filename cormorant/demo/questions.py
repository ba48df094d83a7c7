"""Which questions does the demonstration ask, and which paragraph should answer each?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cormorant import data
from cormorant.demo.corpus import record_id
from cormorant.evaluate import parse_qrels

__all__ = ["QUESTIONS", "Question", "wanted"]


@dataclass(frozen=True, slots=True)
class Question:
    """A judged question, and what it shows.

    Attributes:
        id: In the corpus.
        text: As it is asked here.
        shows: What to look at.
        filter: Which records may answer; empty for both languages.
    """

    id: str
    text: str
    shows: str
    filter: Mapping[str, Any] = field(default_factory=dict)


_ENGLISH: Mapping[str, Any] = {"language": "en"}
_CHINESE: Mapping[str, Any] = {"language": "zh"}

QUESTIONS = (
    Question(
        "56d6f3500d65d21400198294",
        "Which player had the most interceptions for the season?",
        "Words alone put another paragraph first; meaning puts it right.",
        _ENGLISH,
    ),
    Question(
        "5727de862ca10214002d9860",
        "What UN secretary went to Harvard?",
        "Names are for words: the vector leg has the right paragraph further down.",
        _ENGLISH,
    ),
    Question(
        "5726534d708984140094c271",
        "英格兰公共卫生机构挖出了多少具尸体？",
        "Chinese: three paragraphs share its words; meaning chooses.",
        _CHINESE,
    ),
    Question(
        "5725c91e38643c19005acceb",
        "白堊紀—第三紀滅絕事件發生於什麼時候？",
        "Chinese, asked in Traditional characters: found in Simplified text all the same.",
        _CHINESE,
    ),
    Question(
        "5728349dff5b5019007d9f02",
        "在亚马逊雨林中能找到多少种树木？",
        "A Chinese question, English paragraphs: no word in common, meaning alone finds them.",
        _ENGLISH,
    ),
)


def wanted(question: Question) -> frozenset[str]:
    """The records that hold the paragraph the question was written for, in both languages."""
    judged = parse_qrels(data.judgements(), name="qrels.tsv")[question.id]
    return frozenset(
        record_id(language, document) for language in data.LANGUAGES for document in judged
    )
