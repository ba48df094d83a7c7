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


QUESTIONS = (
    Question(
        "56e16182e3433e1400422e28",
        "What branch of theoretical computer science deals with broadly classifying "
        "computational problems by difficulty and class of relationship?",
        "English",
        {"language": "en"},
    ),
)


def wanted(question: Question) -> frozenset[str]:
    """The records that hold the paragraph the question was written for, in both languages."""
    judged = parse_qrels(data.judgements(), name="qrels.tsv")[question.id]
    return frozenset(
        record_id(language, document) for language in data.LANGUAGES for document in judged
    )
