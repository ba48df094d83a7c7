"""Which settings does one configuration have, and how simple is it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from cormorant import defaults
from cormorant.model import Fusion
from cormorant.store import RankingConfig

__all__ = ["INDEXED", "Point", "simplicity"]

INDEXED: Final = ("language", "bm25_k1", "bm25_b", "chunk_size", "chunk_overlap")
"""Settings that need another index: one has to be built before they can be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One configuration. As it stands without arguments, it is the engine's defaults.

    Attributes:
        fusion, rrf_k, mmr_lambda: As in :class:`~cormorant.model.Query`.
        vector_weight: The vector leg's share of the weights; the text leg has the rest.
        fetch_k: Candidates per leg; None for the engine's own choice.
        top_k: Hits returned; None for as many as the metric reads.
        rerank_k: Candidates that the reranker puts in order; 0 for none.
        language, bm25_k1, bm25_b: As in :func:`cormorant.open`; None for the store's own.
        chunk_size, chunk_overlap: What the chunker is told; None for the records as they are.
    """

    fusion: Fusion = defaults.FUSION
    vector_weight: float = defaults.WEIGHT
    rrf_k: float = defaults.RRF_K
    fetch_k: int | None = None
    top_k: int | None = None
    mmr_lambda: float | None = None
    rerank_k: int = 0
    language: str | None = None
    bm25_k1: float | None = None
    bm25_b: float | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None

    @property
    def weights(self) -> dict[str, float]:
        """By leg; they add up to 1."""
        # Rounded, so that a share of .9 leaves .1 and not .09999999999999998.
        return {"vector": self.vector_weight, "text": round(1.0 - self.vector_weight, 12)}

    @property
    def index(self) -> tuple[Any, ...]:
        """The settings of :data:`INDEXED`; all None for the store as it is."""
        return tuple(getattr(self, name) for name in INDEXED)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that are not the default."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }

    @property
    def ranking(self) -> RankingConfig:
        """The part of it that a store can be set to."""
        return RankingConfig(
            fusion=self.fusion,
            weights=self.weights,
            rrf_k=self.rrf_k if self.fusion == "rrf" else None,
            fetch_k=self.fetch_k,
            mmr_lambda=self.mmr_lambda,
        )

    @property
    def says(self) -> str:
        """The configuration in a few words: ``z, vector .7``."""
        share = self.vector_weight
        if share in (0.0, 1.0):
            head = "vector leg alone" if share else "text leg alone"
        else:
            head = f"{self.fusion}, vector {share:g} : text {self.weights['text']:g}"
        shown = ("fusion", "vector_weight", "rrf_k")
        rest = [f"{name} {value}" for name, value in self.changed.items() if name not in shown]
        if self.fusion == "rrf" and 0.0 < share < 1.0:
            rest.insert(0, f"rrf_k {self.rrf_k:g}")
        return ", ".join([head, *rest])

    def to_json(self) -> Mapping[str, Any]:
        """All settings, JSON values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def simplicity(point: Point | None) -> tuple[float | bool, ...]:
    """A key that sorts simple configurations first.

    Leaving the store as it is (None) comes first, then the defaults; then what needs no other
    index, fewer settings that differ from the default, what costs less (no reranker, no MMR,
    fewer candidates), and weights nearer to equal.
    """
    if point is None:
        return (False,)
    return (
        True,
        any(each is not None for each in point.index),
        len(point.changed),
        point.rerank_k,
        point.mmr_lambda is not None,
        point.fetch_k or 0,
        round(abs(point.vector_weight - defaults.WEIGHT), 9),
    )
