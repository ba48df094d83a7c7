"""What did one system answer to each query, in which order, and at what cost?"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cormorant.errors import UsageError

__all__ = ["Cost", "Ranking", "Run"]

Ranking: TypeAlias = tuple[tuple[str, float], ...]
"""Document ids and scores, best first, each id once. The order says the rank; scores may tie."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one query cost.

    Attributes:
        seconds: Wall time from the question to the answer.
        tokens: Tokens that models read and wrote for it.
        usd: Their price; 0 where no price is known.
    """

    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One system's answers to a set of queries.

    Attributes:
        name: Shown in tables and written as TREC's tag.
        rankings: Query id to ranking.
        config: All that changes a ranking, JSON values; empty if it is not known.
        costs: Query id to what it cost, for the queries that were measured.
        degraded: Query id to what was answered in a lesser way; empty is good.
        failed: Query id to the error that the system raised instead of an answer; none of
            them is in ``rankings``, where an empty ranking is an answer.

    Raises:
        UsageError: On an id that is ranked twice for one query, a score that is not a number,
            a score that is higher than the one ranked above it, or a query that both failed
            and has a ranking.
    """

    name: str
    rankings: Mapping[str, Ranking]
    config: Mapping[str, Any] = field(default_factory=dict)
    costs: Mapping[str, Cost] = field(default_factory=dict)
    degraded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        both = next((query for query in self.failed if query in self.rankings), None)
        if both is not None:
            raise UsageError(f"Query {both!r} both failed and has a ranking; it is one or other.")
        for query, ranking in self.rankings.items():
            _check(query, ranking)

    @property
    def config_hash(self) -> str:
        """The first 12 hex digits of the configuration's SHA-256; equal configs, equal hash."""
        written = json.dumps(self.config, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(written.encode()).hexdigest()[:12]

    def ids(self, query: str) -> tuple[str, ...]:
        """The ids that answered a query, best first; none if it was not asked."""
        return tuple(doc for doc, _ in self.rankings.get(query, ()))


def _check(query: str, ranking: Ranking) -> None:
    if len({doc for doc, _ in ranking}) != len(ranking):
        raise UsageError(f"Query {query!r}: a ranking must name each document once.")
    above = math.inf
    for doc, score in ranking:
        if math.isnan(score) or score > above:
            raise UsageError(
                f"Query {query!r}, document {doc!r}: scores must be numbers that fall or stay "
                f"from rank to rank; got {score!r} below {above!r}."
            )
        above = score
