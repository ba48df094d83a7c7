"""Does the embedder understand questions put to this store?

Vectors of the records say nothing of that: a question may be embedded by another model, or be too
short for this one. Where the embedder is at hand, questions are made from the records' own words
and embedded. An alarm, and no more: see docs/decisions/0014-trust.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.analysis.pieces import pieces
from cormorant.analysis.sentences import sentence_spans
from cormorant.index.vector import check_vector, scores
from cormorant.model import VectorLike

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["FEWEST", "Embed", "heard", "questions"]

Floats: TypeAlias = NDArray[np.float64]

Embed: TypeAlias = Callable[[str], VectorLike]
"""A question's text to its vector."""

FEWEST: Final = 24
"""Questions of a kind, below which it says nothing."""

_RECORDS: Final = 48  # asked about, at most, by each kind of question
_DEPTH: Final = 10
_SEEN: Final = 4_000  # characters of a text
_WORDS: Final = (2, 6)  # of a short question
_CONSIDERED: Final = 24  # words of a record that a short question is drawn from
_SENTENCE: Final = (5, 60)  # words
_KEPT: Final = 0.6  # of a sentence's words
_SURE: Final = 1.64  # standard errors: one-sided 95 %
_DEAF: Final = 0.2  # what noise finds, its error added
_HEARS: Final = 0.4
_MISLED: Final = 0.3  # below chance (0) by this much, nothing is left of the vector leg


def heard(snapshot: Snapshot, slots: NDArray[np.int64], embed: Embed) -> tuple[float | None, int]:
    """What the vectors find of what a question is about, over what its words find.

    A question is made of some of a record's words: two to six that say something, or three
    fifths of a sentence. What else the record says, by BM25, is what the question is about. How
    high do the ten records stand in that which the question's vector likes best, and how high
    the ten which its words find? The record itself is left out of both.

    Args:
        snapshot: Of a store, unscoped.
        slots: Live records with a vector.
        embed: As questions are embedded.

    Returns:
        1 where that is well enough by all kinds of questions, 0 where records drawn at random
        would do as well by all, or better by one, as certain as 95 %; between them in between.
        None if too few could be asked. And how many were asked.

    Raises:
        DimensionError: If what ``embed`` returns does not fit the store.
    """
    told: dict[str, list[tuple[float, float]]] = {}
    for asked in _made(snapshot, slots):
        told.setdefault(asked.kind, []).extend(_found(snapshot, slots, asked, embed))
    known = [_at_most(np.array(pairs)) for pairs in told.values() if len(pairs) >= FEWEST]
    return _verdict([each for each in known if each is not None]), sum(map(len, told.values()))


def _verdict(ratios: Sequence[float]) -> float | None:
    """Nothing, if even the best kind finds next to nothing, or one finds less than chance would."""
    if not ratios:
        return None
    best = (max(ratios) - _DEAF) / (_HEARS - _DEAF)
    worst = 1.0 + min(ratios) / _MISLED
    return float(min(max(min(best, worst), 0.0), 1.0))


def questions(snapshot: Snapshot) -> list[str]:
    """What :func:`heard` would ask: so that embedding them need not hold the snapshot."""
    slots = np.flatnonzero(snapshot.alive & snapshot.has_vector)
    return [asked.text for asked in _made(snapshot, slots)] if len(slots) >= FEWEST else []


@dataclass(frozen=True, slots=True)
class _Question:
    kind: str
    text: str
    at: int  # the record's place among the slots
    terms: list[str]
    rest: list[str]  # the record's other terms


def _made(snapshot: Snapshot, slots: NDArray[np.int64]) -> Iterator[_Question]:
    """The same questions for the same snapshot."""
    order = np.random.default_rng(1).permutation(len(slots))[:_RECORDS]
    for at, record in zip(order.tolist(), snapshot.fetch(slots[order]), strict=True):
        rng = np.random.default_rng(at)
        text = record.text[:_SEEN]
        terms = set(snapshot.analyzer.terms(record.text))
        for kind, said in (("short", _short(snapshot, text, rng)), ("sentence", _some(text, rng))):
            asked = snapshot.analyzer.query_terms(said)
            rest = sorted(terms.difference(asked))
            if asked and rest:
                yield _Question(kind, said, at, asked, rest)


def _at_most(pairs: Floats) -> float | None:
    """The ratio of the means, with the first one's error added; None if words find nothing."""
    vector, text = pairs.mean(axis=0).tolist()
    error = float(pairs[:, 0].std()) / math.sqrt(len(pairs))
    return None if text <= 0.0 else (vector + _SURE * error) / text


def _found(
    snapshot: Snapshot, slots: NDArray[np.int64], asked: _Question, embed: Embed
) -> Iterator[tuple[float, float]]:
    """How high the ten best of either leg stand in what the question is about."""
    about = _by_text(snapshot, slots, asked.rest)
    about[asked.at] = 0.0  # itself left out: neither leg is to find it
    spread = float(about.std())
    if not spread:
        return
    about = (about - about.mean()) / spread
    by_text = _by_text(snapshot, slots, asked.terms)
    vector = check_vector(embed(asked.text), dim=snapshot.dim, metric=snapshot.metric)
    vectors: Any = snapshot.vectors()
    by_vector = scores(vector, vectors, snapshot.metric)[slots].astype(np.float64)
    depth = min(_DEPTH, len(slots) - 1)
    means = []
    for worth in (by_vector, by_text):
        worth[asked.at] = -math.inf
        best = np.argpartition(-worth, depth - 1)[:depth]
        means.append(float(about[best].mean()))
    yield means[0], means[1]


def _by_text(snapshot: Snapshot, slots: NDArray[np.int64], terms: Sequence[str]) -> Floats:
    k1, b = snapshot.bm25
    alive = snapshot.alive if snapshot.dead else None
    asked = snapshot.text.ask(list(terms), alive=alive, k1=k1, b=b)
    return asked.score(slots).astype(np.float64)


def _short(snapshot: Snapshot, text: str, rng: np.random.Generator) -> str:
    """A few of the words that other records have too, rare ones rather than common ones."""
    spans: dict[str, tuple[int, int]] = {}
    for start, end in pieces(text):
        for term in snapshot.analyzer.query_terms(text[start:end])[:1]:
            spans.setdefault(term, (start, end))
    terms = list(spans)
    some = [terms[i] for i in sorted(rng.permutation(len(terms))[:_CONSIDERED])]
    k1, b = snapshot.bm25
    alive = snapshot.alive if snapshot.dead else None
    live = snapshot.n - snapshot.dead
    lone = math.log(1.0 + (live - 0.5) / 1.5)  # what a term of one record alone weighs
    worth = {term: snapshot.text.ask([term], alive=alive, k1=k1, b=b).bound for term in some}
    worth = {term: weight for term, weight in worth.items() if weight < lone - 1e-6}
    count = min(int(rng.integers(_WORDS[0], _WORDS[1] + 1)), len(worth))
    if count < _WORDS[0]:
        return ""
    odds = np.array(list(worth.values()))
    picked = rng.choice(len(worth), count, replace=False, p=odds / odds.sum())
    chosen = sorted(spans[list(worth)[i]] for i in picked)
    return " ".join(text[start:end] for start, end in chosen)


def _some(text: str, rng: np.random.Generator) -> str:
    """One sentence with words left out."""
    fit = [
        found
        for start, end in sentence_spans(text)
        if _SENTENCE[0] <= len(found := _within(text, start, end)) <= _SENTENCE[1]
    ]
    if not fit:
        return ""
    words = fit[int(rng.integers(len(fit)))]
    kept = sorted(rng.permutation(len(words))[: math.ceil(_KEPT * len(words))].tolist())
    return " ".join(words[i] for i in kept)


def _within(text: str, start: int, end: int) -> list[str]:
    said = text[start:end]
    return [said[a:b] for a, b in pieces(said)]
