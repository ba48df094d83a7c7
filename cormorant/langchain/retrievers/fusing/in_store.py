"""Can the store fuse these legs itself, in one call, and what comes of it?

Two retrievers over one store, one by vectors and one by text, are one hybrid search: one
snapshot, one query embedded, one filter applied once. The ranking is that of asking both and
fusing here; where that cannot be told for sure, nothing is answered.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.documents import Document

from cormorant import defaults
from cormorant.errors import CormorantError, ScopeError, UsageError
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer, attach, of
from cormorant.langchain.request import ACCEPTED
from cormorant.langchain.retriever import CormorantRetriever
from cormorant.langchain.retrievers.bm25 import BM25Retriever
from cormorant.langchain.retrievers.calling import Run, cut
from cormorant.langchain.retrievers.fusing.by_rank import fused_step, ranked_step
from cormorant.langchain.retrievers.fusing.legs import LegCall, OnError, own_k
from cormorant.langchain.vectorstore import Cormorant
from cormorant.model import Leg, Step

__all__ = ["StoreFusion", "plan"]

logger = logging.getLogger(__name__)

_SEARCH_TYPES = {"similarity": "vector", "text": "text"}
_ARGUMENTS = tuple(dict.fromkeys(name for names in ACCEPTED.values() for name in names))
_HARMLESS = {"k", "filter", "with_scores", "fetch_k"}  # fetch_k is read by other search types


@dataclass(frozen=True, slots=True)
class StoreFusion:
    """A hybrid search that does what two legs and a fusion would.

    Attributes:
        retriever: Over the store, asked for ``depth`` hits.
        filter: The call's.
        legs: Engine's leg to the leg's own name, in the order of the legs.
        rrf_k: The formula's constant.
        k: Documents wanted, fewer than the retriever is asked for.
    """

    retriever: CormorantRetriever
    filter: Any
    legs: Mapping[str, str]
    rrf_k: float
    k: int

    def ask(self, run: Run, query: str, on_error: OnError) -> Answer | None:
        """The answer; None if the legs must be asked one by one."""
        try:
            found = run.call(self.retriever, query, tag="fused", filter=self.filter)
        except CormorantError as error:
            self._raise_unless_degrading(error, on_error)
            return None
        return self._told(found)

    async def aask(self, run: Run, query: str, on_error: OnError) -> Answer | None:
        """Like :meth:`ask`, without holding the event loop."""
        try:
            found = await run.acall(self.retriever, query, tag="fused", filter=self.filter)
        except CormorantError as error:
            self._raise_unless_degrading(error, on_error)
            return None
        return self._told(found)

    def _raise_unless_degrading(self, error: CormorantError, on_error: OnError) -> None:
        if on_error == "raise" or isinstance(error, (UsageError, ScopeError)):
            raise error
        # One leg may still work: asked one by one, the other is left out and named.
        logger.info("The store could not fuse the legs: %s", error)

    def _told(self, found: Answer) -> Answer | None:
        documents = sorted(found, key=self._order)
        if len(documents) == self.retriever.k and _score(documents[self.k - 1]) == _score(
            documents[-1]
        ):
            return None  # a document beyond the last may be worth as much as the k-th
        best = cut(found.of(documents), self.k)
        told = best.of(
            self._rewritten(document, place, len(found))
            for place, document in enumerate(best, start=1)
        )
        weights = (self.retriever.vector_weight, self.retriever.keyword_weight)
        told.plan = (f"fuse: rrf inside the store, vector {weights[0]:g}, text {weights[1]:g}",)
        told.mode = "hybrid"
        return told

    def _order(self, document: Any) -> tuple[float, int, int]:
        """By score, ties by the leg that comes first, and its order."""
        seen = of(document).legs
        for number, engine in enumerate(self.legs):
            rank = seen[engine].rank if engine in seen else None
            if rank is not None:
                return -_score(document), number, rank
        return -_score(document), len(self.legs), 0  # pragma: no cover - some leg fetched it

    def _rewritten(self, document: Document, place: int, count: int) -> Document:
        """The document's provenance in the legs' own names, as if they had been asked."""
        known = of(document)
        legs: dict[str, Leg] = {}
        # The store's own step comes after the legs', as the fusion does that asks them.
        steps: list[Step] = []
        for engine, name in self.legs.items():
            leg = known.legs.get(engine)
            if leg is None:
                continue
            standard = 0.0 if leg.rank is None else 1.0 / (self.rrf_k + leg.rank)
            legs[name] = Leg(score=leg.score, rank=leg.rank, standard=standard)
            if leg.rank is not None:
                steps.append(ranked_step(name, leg.rank, leg.score))
        score = _score(document)
        told = replace(
            known,
            journey=(*steps, *known.journey, fused_step(score, place, count, self.rrf_k)),
            legs=legs,
            contributions={self.legs[engine]: part for engine, part in known.contributions.items()},
            fusion_score=score,
        )
        return attach(document, told)


def plan(
    legs: Sequence[LegCall], weights: Sequence[float], *, rrf_k: float, k: int | None
) -> StoreFusion | None:
    """The hybrid search that does what these legs would; None if none does.

    Args:
        legs: What would be asked.
        weights: One per leg.
        rrf_k: The formula's constant.
        k: Documents wanted; None for all.
    """
    if k is None or len(legs) != 2 or not all(weights):
        return None
    seen = [_engine_leg(leg) for leg in legs]
    first, second = seen
    if first is None or second is None or {first.engine, second.engine} != {"vector", "text"}:
        return None
    vector = first if first.engine == "vector" else second
    if (
        first.vectorstore.store is not second.vectorstore.store
        or first.depth != second.depth
        or first.depth <= k
        or not _same(first.passed, second.passed)
        or not _same(first.filter, second.filter)
        or vector.vectorstore.embeddings is None
    ):
        return None
    by_engine = {leg.engine: weight for leg, weight in zip(seen, weights, strict=True) if leg}
    retriever = CormorantRetriever(
        vectorstore=vector.vectorstore,
        search_type="hybrid",
        k=first.depth,
        fetch_k=first.depth,
        filter=first.filter,
        vector_weight=by_engine["vector"],
        keyword_weight=by_engine["text"],
        fusion="rrf",
        rrf_k=rrf_k,
        tags=list(
            dict.fromkeys(tag for leg in legs for tag in getattr(leg.child, "tags", ()) or ())
        ),
    )
    names = {first.engine: legs[0].name, second.engine: legs[1].name}
    return StoreFusion(retriever, legs[0].arguments.get("filter"), names, rrf_k, k)


@dataclass(frozen=True, slots=True)
class _EngineLeg:
    engine: str
    vectorstore: Cormorant
    depth: int
    filter: Any
    passed: Any


def _engine_leg(leg: LegCall) -> _EngineLeg | None:
    """The leg as the engine would run it; None if it is more than a plain leg of a store."""
    child = leg.child
    # Subclasses may do something else.
    if type(child) is BM25Retriever:
        engine, own = "text", {"filter": child.filter, "score_threshold": child.score_threshold}
        vectorstore: object = child.vectorstore
    elif type(child) is CormorantRetriever and child.search_type in _SEARCH_TYPES:
        engine, own = _SEARCH_TYPES[child.search_type], _told_when_made(child)
        vectorstore = child.vectorstore
    else:
        return None
    if not isinstance(vectorstore, Cormorant):
        return None
    own = {name: value for name, value in own.items() if value is not None}
    passed = {name: value for name, value in leg.arguments.items() if value is not None}
    if not _HARMLESS.issuperset(own) or not {"k", "filter"}.issuperset(passed):
        return None
    depth = passed.get("k") or own_k(child) or defaults.LANGCHAIN_K
    return _EngineLeg(engine, vectorstore, depth, own.get("filter"), passed.get("filter"))


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, dict) and isinstance(other, dict) and one == other)


def _score(document: Document) -> float:
    return of(document).score or 0.0


def _told_when_made(child: CormorantRetriever) -> dict[str, Any]:
    """The retriever's own search arguments, from both places they can stand in."""
    fields = {name: getattr(child, name) for name in _ARGUMENTS}
    both_places = {**child.search_kwargs, **{n: v for n, v in fields.items() if v is not None}}
    narrowed = both(child.search_kwargs.get("filter"), child.filter)
    return {**both_places, "filter": narrowed}
