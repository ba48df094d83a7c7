"""Which settings can be tuned, and which values does each take?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cormorant import defaults
from cormorant.analysis import analyzer_for
from cormorant.errors import ConfigError

__all__ = ["ABSENT", "KNOBS", "OFF", "Knob"]

OFF: Final = "off"
"""What stands in a space for 'not at all', since TOML has no null."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting of a space.

    Attributes:
        name: In the space and in a :class:`~cormorant.evaluate.tuning.Point`.
        accepts: What it takes, in words.
        read: A written value as a Point's; raises ValueError on any other.
        says: What it decides.
    """

    name: str
    accepts: str
    read: Callable[[Any], Any]
    says: str


def _one_of(accepted: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in accepted:
            raise ValueError
        return value

    return read


def _number(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError
        if not low <= value <= high or not math.isfinite(value):
            raise ValueError
        return float(value)

    return read


def _whole(low: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ValueError
        return value

    return read


def _or(word: str, meaning: Any, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: meaning if value == word else read(value)


def _language(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    try:
        return analyzer_for(value).language
    except ConfigError as error:
        raise ValueError(str(error)) from error


KNOBS: Final[dict[str, Knob]] = {
    knob.name: knob
    for knob in (
        Knob(
            "fusion",
            ", ".join(defaults.FUSIONS),
            _one_of(defaults.FUSIONS),
            "how the legs are added up",
        ),
        Knob(
            "vector_weight",
            "a number from 0 (text leg alone) to 1 (vector leg alone)",
            _number(0.0, 1.0),
            "the vector leg's share of the weights",
        ),
        Knob("rrf_k", "a number of at least 0", _number(0.0, math.inf), "constant of rrf"),
        Knob(
            "fetch_k",
            "a whole number of at least 1, or 'default'",
            _or("default", None, _whole(1)),
            "candidates per leg",
        ),
        Knob(
            "top_k",
            "a whole number of at least 1, or 'default'",
            _or("default", None, _whole(1)),
            "hits returned, at most as many as the metric reads",
        ),
        Knob(
            "mmr_lambda",
            "a number from 0 to 1, or 'off'",
            _or(OFF, None, _number(0.0, 1.0)),
            "diversity among the hits",
        ),
        Knob(
            "rerank_k",
            "a whole number of at least 1, or 'off'",
            _or(OFF, 0, _whole(1)),
            "candidates that the reranker puts in order",
        ),
        Knob(
            "language",
            "a language the analyzer knows, or 'default'",
            _or("default", None, _language),
            "whose stems and stop words the text leg uses",
        ),
        Knob(
            "bm25_k1",
            "a number of at least 0, or 'default'",
            _or("default", None, _number(0.0, math.inf)),
            "weight of repeated terms",
        ),
        Knob(
            "bm25_b",
            "a number from 0 to 1, or 'default'",
            _or("default", None, _number(0.0, 1.0)),
            "weight of length",
        ),
        Knob(
            "chunk_size",
            "a whole number of at least 1, or 'default'",
            _or("default", None, _whole(1)),
            "what the chunker cuts to",
        ),
        Knob(
            "chunk_overlap",
            "a whole number of at least 0, or 'default'",
            _or("default", None, _whole(0)),
            "what neighbouring chunks share",
        ),
    )
}
"""Every setting that can be tuned, by name."""

ABSENT: Final = ("ef_search", "nprobe")
"""Settings of approximate indexes made of graphs or lists, which no store has."""
