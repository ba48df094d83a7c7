"""What do several retrievers agree on? Weighted reciprocal rank fusion."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.asking.chain import check_retrievers
from cormorant.langchain.retrievers.fusing.base import (
    FusingRetriever,
    Fusion,
    check_depth,
)
from cormorant.langchain.retrievers.fusing.by_rank import check_rrf_k, check_weights, fused
from cormorant.langchain.retrievers.fusing.legs import LegCall, named, with_k

__all__ = ["EnsembleRetriever"]


class EnsembleRetriever(FusingRetriever):
    """Retrievers asked at once, their lists fused by weighted reciprocal ranks.

    A document scores Σ weight / (c + rank). It is the same in two lists if ``Document.id`` is,
    or its value under ``id_key``, or, where an id is missing, its text. Within one list a
    duplicate counts once, at its best rank. What only a later view of a document knows, its
    id or further metadata, is kept.

    Where two retrievers over one Cormorant rank by vectors and by text, and ``k`` is not more
    than either brings, the store fuses them in one call, with the same ranking.

    Args:
        retrievers: Any retrievers or Runnables from a question to Documents.
        weights: One per retriever, at least 0; equal by default.
        c: The formula's constant, at least 0.
        id_key: Metadata key that tells documents apart.
        k: Documents wanted; by default all that any retriever returned.
        fetch_k: Documents each retriever is asked for; by default what it was made with. At
            least ``k``.
        on_error: ``degrade`` leaves a failing retriever out, and says so in ``degraded``.

    A call takes ``k``, ``filter`` and ``fetch_k``. ``k`` also asks each retriever for as many,
    unless it was made to bring more. What cannot reach every retriever is refused.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from cormorant.langchain.retrievers import BM25Retriever, EnsembleRetriever
        >>> one = BM25Retriever.from_texts(["a fish", "a boat"])
        >>> two = BM25Retriever.from_texts(["a boat with a fish", "a fish"])
        >>> both = EnsembleRetriever(retrievers=[one, two], weights=[0.5, 0.5])
        >>> [doc.page_content for doc in both.invoke("fish")]
        ['a fish', 'a boat with a fish']
    """

    retrievers: list[RetrieverLike]
    weights: list[float]
    c: float = defaults.RRF_K
    k: int | None = None

    def __init__(self, **values: Any) -> None:
        check_retrievers(values.get("retrievers"))
        values["weights"] = check_weights(values.get("weights"), len(values["retrievers"]))
        check_rrf_k(values.get("c", 0), "c")
        check_depth(values.get("k"), values.get("fetch_k"))
        super().__init__(**values)

    @override
    def _children(self) -> list[RetrieverLike]:
        return self.retrievers

    @override
    def _decide(self, asked: dict[str, Any]) -> Fusion:
        k, fetch_k = asked.get("k", self.k), asked.get("fetch_k", self.fetch_k)
        check_depth(k, fetch_k)
        legs = [
            LegCall(name, child, {"filter": asked.get("filter")})
            for name, child in zip(named(self.retrievers), self.retrievers, strict=True)
        ]
        if fetch_k is not None:
            legs = [LegCall(leg.name, leg.child, {**leg.arguments, "k": fetch_k}) for leg in legs]
        else:
            legs = [with_k(leg, asked.get("k")) for leg in legs]
        return Fusion(legs, self.weights, self.c, k)

    def weighted_reciprocal_rank(self, doc_lists: list[list[Document]]) -> list[Document]:
        """Fuse lists that are already there, one per retriever.

        Raises:
            QueryError: If they are not as many as the weights.
        """
        if len(doc_lists) != len(self.weights):
            raise QueryError(
                f"doc_lists must be as many as weights; got {len(doc_lists)} lists and "
                f"{len(self.weights)} weights."
            )
        answers = [Answer.taken(documents) for documents in doc_lists]
        names = named(self.retrievers)
        return fused(answers, self.weights, names, rrf_k=self.c, id_key=self.id_key)
