"""What could this record be asked for by, so that it must be found?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cormorant import defaults
from cormorant.analysis.sentences import sentence_spans
from cormorant.analysis.stopwords import STOP_WORDS
from cormorant.evaluate.judgements.words import folded, number_of, pieces, words
from cormorant.model import Record

__all__ = [
    "KINDS",
    "Candidate",
    "candidates",
    "chosen_words",
    "headings",
    "title",
    "with_words_out",
]

KINDS: Final = ("title", "heading", "sentence", "rare", "common")

_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S[^\n]*?)[ \t]*#*[ \t]*$", re.MULTILINE)
_LONELY: Final = re.compile(r" ([,.;:!?])")  # a mark whose word was left out
_LONGEST: Final = 200  # characters of a title or heading: a longer one is none
_FEWEST: Final = 5  # words of a sentence: shorter ones are said everywhere
_MOST: Final = 60
_SENTENCES_SEEN: Final = 200  # of one record, from its beginning


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that could be asked.

    Attributes:
        kind: One of :data:`KINDS`.
        key: Questions with the same one are the same.
        text: What it is made from; empty where that needs to know how often words occur.
    """

    kind: str
    key: str
    text: str


def candidates(
    record: Record, kinds: Sequence[str], title_fields: Sequence[str], seed: int
) -> Iterator[Candidate]:
    """What a record could be asked for by: its title, headings, one of its sentences, words."""
    named = title(record.metadata, title_fields)
    if "title" in kinds and named is not None:
        yield Candidate("title", folded(named), named)
    if "heading" in kinds:
        for heading in headings(record.text):
            yield Candidate("heading", folded(heading), heading)
    if "sentence" in kinds:
        said = _sentence(record.text, seed)
        if said is not None:
            yield Candidate("sentence", folded(said), said)
    if record.text.strip():
        for kind in ("rare", "common"):
            if kind in kinds:
                yield Candidate(kind, record.id, "")


def title(metadata: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """The first of the fields that holds a title; None if none does."""
    for field in fields:
        value = metadata.get(field)
        if isinstance(value, str) and _asks(value):
            return value.strip()
    return None


def headings(text: str) -> list[str]:
    """The Markdown headings in a text that could be asked for."""
    return [found[1] for found in _HEADING.finditer(text) if _asks(found[1])]


def _asks(text: str) -> bool:
    return len(text) <= _LONGEST and any(letter.isalpha() for letter in folded(text))


def _sentence(text: str, seed: int) -> str | None:
    """One sentence of the text, neither too short nor too long; drawn by the seed."""
    fit = []
    for start, end in sentence_spans(text)[:_SENTENCES_SEEN]:
        said = text[start:end].lstrip("#>-* \t")
        # Two lines are a list or a table as likely as a sentence.
        if "\n" not in said and _FEWEST <= len(words(said)) <= _MOST:
            fit.append(said)
    return min(fit, key=lambda said: (number_of(seed, folded(said)), said), default=None)


def with_words_out(sentence: str, share: float, seed: int) -> str:
    """The sentence without some of its words, the same ones for the same seed.

    Args:
        sentence: At least one word of it stays.
        share: Of its words that are left out, from 0 to below 1; rounded to whole words.
        seed: Of the choice.

    Example:
        >>> with_words_out("The tide turns at noon every day.", 0.3, 3)
        'The tide turns at every.'
    """
    parts = pieces(sentence)
    order = sorted(range(len(parts)), key=lambda at: number_of(seed, sentence, at))
    gone = sorted(order[: min(round(share * len(parts)), len(parts) - 1)])
    out, last = [], 0
    for at in gone:
        start, end = parts[at]
        out.append(sentence[last:start])
        last = end
    return _LONELY.sub(r"\1", " ".join("".join([*out, sentence[last:]]).split()))


def chosen_words(
    text: str, kind: str, frequency: Mapping[str, int], records: int, count: int
) -> list[str]:
    """Words to ask for a text by: its rarest, or its commonest that say something at all.

    Args:
        text: The record's.
        kind: ``rare`` or ``common``. Common are words of at most half of all records, which
            are no stop words.
        frequency: In how many records each word occurs.
        records: How many there are.
        count: Words wanted.

    Returns:
        At most ``count``, in the text's order; fewer if the text has fewer.
    """
    told = [
        word
        for word in dict.fromkeys(words(text))
        if word not in _STOP and len(word) > 1 and any(letter.isalpha() for letter in word)
    ]
    if kind == "rare":
        ranked = sorted(told, key=lambda word: (frequency[word], word))
    else:
        told = [word for word in told if 1 < frequency[word] <= records / 2]
        ranked = sorted(told, key=lambda word: (-frequency[word], word))
    kept = set(ranked[:count])
    out = [word for word in told if word in kept]
    return out if len(" ".join(out)) <= defaults.MAX_QUERY_BYTES // 4 else []


_STOP: Final = frozenset().union(*STOP_WORDS.values())
