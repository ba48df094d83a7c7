"""Which codes serve these vectors: how many bytes each, turned or not, and how many rescored?

Decided by recall measured on the vectors themselves, never by how well codes rebuild a vector,
which says nothing about ranks (docs/decisions/0015).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.index.vector.codebook import Codebook, train_codebook
from cormorant.index.vector.coded import Coded
from cormorant.index.vector.questions import Questions
from cormorant.model import Metric

__all__ = ["Progress", "grow", "learn"]

logger = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
"""Told what is being done, and what part of the whole is done, from 0 to 1; may raise to stop."""

FEWEST: Final = 1000  # vectors below which nothing is worth learning
_SAMPLE: Final = 16_384
_PER_LIST: Final = 64
_RESCORED: Final = (50, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
_PARTS: Final = (4, 2)  # numbers in each part of a vector: m = d / 4, then d / 2
_BETTER: Final = 0.002  # what rotating must gain to be worth a matrix product at every query
_BLOCK: Final = 16_384
_SEED: Final = 1234


def learn(
    vectors: NDArray[np.float32],
    usable: NDArray[np.int64],
    metric: Metric,
    *,
    target: float,
    part: int | None = None,
    rotate: bool | None = None,
    lists: int = 1,
    progress: Progress = lambda _what, _done: None,
) -> Coded | None:
    """Learn a codebook and encode every vector.

    Args:
        vectors: float32, shape (n, dim); read block by block.
        usable: int64, ascending: the slots whose vectors mean something.
        metric: How vectors are compared.
        target: Recall wanted among the 10 nearest, above 0 and below 1.
        part: Numbers in each part of a vector; None tries 4, then 2.
        rotate: Whether to rotate; None tries both on a sample.
        lists: Into how many lists codes are sorted.
        progress: Told what is done.

    Returns:
        None if no setting reaches the target by comparing at most 5,000 vectors, or there are
        too few vectors to learn from: scanning all of them is the better way then.
    """
    if len(usable) < FEWEST:
        return None
    questions = Questions.draw(vectors, usable, metric, _told(progress, "ask", 0.0, 0.3))
    wanted = max(_SAMPLE, _PER_LIST * lists if lists > 1 else 0)
    rng = np.random.default_rng(_SEED)
    drawn = rng.choice(usable, min(len(usable), wanted), replace=False)
    sample = np.ascontiguousarray(vectors[np.sort(drawn)])
    for at, size in enumerate((part,) if part else _PARTS):
        begun = 0.3 + 0.35 * at
        progress("train", begun)
        book = _book(sample, metric, part=size, rotate=rotate, lists=lists)
        tell = _told(progress, "encode", begun, begun + 0.3)
        codes, numbers = _encoded(book, vectors, metric, tell)
        coded = Coded(book, codes, numbers, metric, 1, 1, 1, 0.0, target, len(codes))
        found = _settled(coded, questions, vectors, usable)
        if found is not None:
            progress("done", 1.0)
            return found
    logger.info("No code reaches a recall of %.3f on these vectors; they are scanned.", target)
    return None


def grow(
    coded: Coded,
    vectors: NDArray[np.float32],
    usable: NDArray[np.int64],
    progress: Progress = lambda _what, _done: None,
) -> Coded | None:
    """Encode the vectors that came since, and settle anew how many to rescore.

    Args:
        coded: Codes of the first vectors.
        vectors: float32, shape (n, dim), n ≥ ``coded.n``.
        usable: int64, ascending: the slots whose vectors mean something.
        progress: Told what is done.

    Returns:
        None if the codebook no longer reaches its target: what was stored since does not look
        like what it was learned from, and it must be learned anew.
    """
    tell = _told(progress, "encode", 0.0, 0.5)
    codes, numbers = _encoded(coded.codebook, vectors[coded.n :], coded.metric, tell)
    questions = Questions.draw(vectors, usable, coded.metric, _told(progress, "ask", 0.5, 0.9))
    lists = None
    if coded.lists is not None and numbers is not None:
        lists = np.concatenate([coded.lists, numbers])
    whole = np.concatenate([coded.codes, codes])
    longer = replace(coded, codes=whole, lists=lists, packed=None)
    return _settled(longer, questions, vectors, usable)


def _book(
    sample: NDArray[np.float32], metric: Metric, *, part: int, rotate: bool | None, lists: int
) -> Codebook:
    """As asked for; where it is not said, rotated if that gains recall on the sample alone."""
    if rotate is not None:
        return train_codebook(sample, metric=metric, part=part, rotate=rotate, lists=lists)
    few = sample[:_SAMPLE]
    questions = Questions.draw(few, np.arange(len(few)), metric)
    plain, turned = (
        train_codebook(few, metric=metric, part=part, rotate=rotate) for rotate in (False, True)
    )
    gain = _recall(turned, few, questions, metric) - _recall(plain, few, questions, metric)
    better = turned if gain > _BETTER else plain
    if lists == 1:
        return better
    return train_codebook(sample, metric=metric, part=part, rotate=better is turned, lists=lists)


def _recall(
    book: Codebook, vectors: NDArray[np.float32], questions: Questions, metric: Metric
) -> float:
    """Among the 10 nearest, if 20 are rescored: few enough to tell codebooks apart."""
    coded = Coded(book, book.encode(vectors), None, metric, 1, 1, 1, 0.0, 0.5, len(vectors))
    return float(questions.curve(coded, vectors, None, (20,), probes=1).ten[0])


def _encoded(
    book: Codebook,
    vectors: NDArray[np.float32],
    metric: Metric,
    progress: Callable[[float], None],
) -> tuple[NDArray[np.uint8], NDArray[np.int32] | None]:
    """Each vector's code, and its list if there are lists; block by block."""
    codes = np.empty((len(vectors), book.m // 2), np.uint8)
    lists = np.empty(len(vectors), np.int32) if book.lists > 1 else None
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        codes[start : start + _BLOCK] = book.encode(block)
        if lists is not None:
            lists[start : start + _BLOCK] = book.assign(block, metric)
        progress(start / len(vectors))
    return codes, lists


def _settled(
    coded: Coded,
    questions: Questions,
    vectors: NDArray[np.float32],
    usable: NDArray[np.int64],
) -> Coded | None:
    """The same codes with the least work that reaches the target; None if none does."""
    mask = None
    if len(usable) < coded.n:
        mask = np.zeros(coded.n, np.bool_)
        mask[usable] = True
    lists = coded.codebook.lists
    for probes in sorted({max(1, lists // part) for part in (16, 8, 4, 2, 1)}):
        curve = questions.curve(coded, vectors, mask, _RESCORED, probes=probes)
        enough = np.flatnonzero(curve.ten >= coded.target)
        if not len(enough):
            continue
        further = np.flatnonzero(curve.hundred >= coded.target)
        return replace(
            coded,
            probes=probes,
            rescore_10=_RESCORED[int(enough[0])],
            rescore_100=_RESCORED[int(further[0]) if len(further) else -1],
            recall=float(curve.ten[enough[0]]),
            measured_n=coded.n,
        )
    return None


def _told(progress: Progress, what: str, low: float, high: float) -> Callable[[float], None]:
    return lambda done: progress(what, low + (high - low) * done)
