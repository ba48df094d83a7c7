"""How is a Cormorant vector store asked? Every search method of LangChain's base class.

All of them, sync and async, are one path: a checked Request, the embedding, the store's
search, and the shape the answer is wanted in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from langchain_core.documents import Document
from typing_extensions import override

from cormorant import defaults, trace
from cormorant.errors import UsageError
from cormorant.index.vector import relevance
from cormorant.langchain.calls.time_limit import time_left
from cormorant.langchain.over_store import OverStore
from cormorant.langchain.provenance import Answer, from_result, with_scores
from cormorant.langchain.request import Request, check_text
from cormorant.model import Explanation, Query, Result, VectorLike, WhyNot

__all__ = ["Searching"]

T = TypeVar("T")
Scored: TypeAlias = list[tuple[Document, float]]
Shape: TypeAlias = Callable[[Result, Request], T]
"""Turns a Result into what the method returns."""


class Searching(OverStore):
    """The read side of :class:`~cormorant.langchain.Cormorant`.

    Arguments every search takes: ``k`` (4), ``filter``, ``score_threshold`` (lowest
    relevance kept, in [0, 1]), ``with_scores`` and ``fetch_k``. Any other is refused
    unless its search type takes it; see ``docs/langchain.md``.
    """

    # The one path

    def _answer(self, request: Request, text: str, shape: Shape[T]) -> T:
        with trace.span("retrieve", search_type=request.search_type):
            return shape(self._door.search(self._query(request, text)), request)

    async def _aanswer(self, request: Request, text: str, shape: Shape[T]) -> T:
        embedder = self._embedder
        at_once = embedder is None or (not embedder.awaits_query and time_left() is None)
        if not request.needs_vector or embedder is None or at_once:
            return await self._in_pool(self._answer, request, text, shape)
        check_text(text)
        await self._guard.averify()

        def finish() -> T:
            query = request.query(text, embedder.vector(returned))
            return shape(self._door.search(query), request)

        with trace.span("retrieve", search_type=request.search_type):
            returned = await embedder.aembed_query(text)
            return await self._in_pool(finish)

    def _query(self, request: Request, text: str) -> Query:
        check_text(text)
        if not request.needs_vector:
            return request.query(text, None)
        embedder = self._embedder
        if embedder is None:
            raise UsageError(
                f"search_type={request.search_type!r} needs an embedder, and this Cormorant was "
                "made with embedding=None. Give it one, or use search_type='text'."
            )
        self._guard.verify()
        return request.query(text, embedder.vector(embedder.embed_query(text)))

    def _answer_vector(self, request: Request, vector: VectorLike, shape: Shape[T]) -> T:
        return shape(self._door.search(request.query(None, vector)), request)

    def verify_embedder(self) -> None:
        """Refuse another embedder than the store's vectors were made with.

        Searches and additions ask this by themselves; who embeds the question elsewhere, and
        searches by vector, asks it here.

        Raises:
            EmbeddingMismatch: Saying what was stored, what came, and what to do.
            EmbeddingError: If the embedder fails on the probes.
        """
        self._guard.verify()

    async def averify_embedder(self) -> None:
        """Like :meth:`verify_embedder`, awaiting the embedder."""
        await self._guard.averify()

    # Any search type

    @override
    def search(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """Find documents by any search type.

        Args:
            query: The question.
            search_type: ``similarity``, ``similarity_score_threshold``, ``mmr``,
                ``hybrid`` (vectors and BM25 fused) or ``text`` (BM25 alone).
            **kwargs: What the search type takes.

        Returns:
            Documents, best first.
        """
        return self._answer(Request.build(search_type, kwargs), query, _documents)

    @override
    async def asearch(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """Like :meth:`search`, without holding the event loop."""
        return await self._aanswer(Request.build(search_type, kwargs), query, _documents)

    def search_result(self, query: str, search_type: str = "hybrid", **kwargs: Any) -> Result:
        """Find as :meth:`search` does, and return the engine's Result: legs, stages, plan."""
        return self._answer(Request.build(search_type, kwargs), query, _result)

    async def asearch_result(
        self, query: str, search_type: str = "hybrid", **kwargs: Any
    ) -> Result:
        """Like :meth:`search_result`, without holding the event loop."""
        return await self._aanswer(Request.build(search_type, kwargs), query, _result)

    def explain(
        self, query: str, id: str, search_type: str = "hybrid", **kwargs: Any
    ) -> Explanation:
        """Why is, or isn't, the document with this id among the results?

        Raises:
            NotFound: If there is no such document.
        """
        return self._door.explain(self._query(Request.build(search_type, kwargs), query), id)

    def why_not(
        self,
        query: str,
        id: str | None = None,
        *,
        text: str | None = None,
        search_type: str = "hybrid",
        **kwargs: Any,
    ) -> WhyNot:
        """Which stage lost the document with this id or text, and what would have kept it?

        Raises:
            QueryError: If neither or both of ``id`` and ``text`` are given.
        """
        asked = self._query(Request.build(search_type, kwargs), query)
        return self._door.why_not(asked, id, text=text)

    # By similarity

    @override
    def similarity_search(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> list[Document]:
        """The ``k`` documents nearest to the query, best first."""
        return self._answer(_similarity(k, kwargs), query, _documents)

    @override
    async def asimilarity_search(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> list[Document]:
        """Like :meth:`similarity_search`, without holding the event loop."""
        return await self._aanswer(_similarity(k, kwargs), query, _documents)

    @override
    def similarity_search_with_score(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        """The nearest documents and their scores.

        Returns:
            (document, score), best first. The score is the metric's own, higher is
            better: the cosine, the inner product, or minus the Euclidean distance.
        """
        return self._answer(_similarity(k, kwargs), query, _scored)

    @override
    async def asimilarity_search_with_score(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        """Like :meth:`similarity_search_with_score`, without holding the event loop."""
        return await self._aanswer(_similarity(k, kwargs), query, _scored)

    @override
    def similarity_search_with_relevance_scores(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        """The nearest documents and their relevance.

        Returns:
            (document, relevance), best first. Relevance is in [0, 1] for every metric;
            ``score_threshold`` compares with it.
        """
        return self._answer(_similarity(k, kwargs), query, _relevances)

    @override
    async def asimilarity_search_with_relevance_scores(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        """Like :meth:`similarity_search_with_relevance_scores`, without holding the event loop."""
        return await self._aanswer(_similarity(k, kwargs), query, _relevances)

    @override
    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        return self.similarity_search_with_relevance_scores(query, k, **kwargs)

    @override
    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        return await self.asimilarity_search_with_relevance_scores(query, k, **kwargs)

    @override
    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        metric = self._door.metric
        return lambda score: float(relevance(np.array([score]), metric)[0])

    # By vector

    @override
    def similarity_search_by_vector(
        self, embedding: VectorLike, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> list[Document]:
        """The ``k`` documents nearest to a vector, best first."""
        return self._answer_vector(_similarity(k, kwargs), embedding, _documents)

    @override
    async def asimilarity_search_by_vector(
        self, embedding: VectorLike, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> list[Document]:
        """Like :meth:`similarity_search_by_vector`, without holding the event loop."""
        request = _similarity(k, kwargs)
        return await self._in_pool(self._answer_vector, request, embedding, _documents)

    def similarity_search_with_score_by_vector(
        self, embedding: VectorLike, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        """The documents nearest to a vector, and their scores as the metric gives them."""
        return self._answer_vector(_similarity(k, kwargs), embedding, _scored)

    async def asimilarity_search_with_score_by_vector(
        self, embedding: VectorLike, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> Scored:
        """Like :meth:`similarity_search_with_score_by_vector`, without holding the event loop."""
        request = _similarity(k, kwargs)
        return await self._in_pool(self._answer_vector, request, embedding, _scored)

    # Diversified

    @override
    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = defaults.LANGCHAIN_K,
        fetch_k: int | None = None,
        lambda_mult: float = defaults.MMR_LAMBDA,
        **kwargs: Any,
    ) -> list[Document]:
        """Near the query, and unlike each other.

        Args:
            query: The question.
            k: Documents wanted.
            fetch_k: Candidates to choose from; at least ``k``. None takes 20, or ``k`` if
                that is more.
            lambda_mult: 1 is relevance alone, 0 diversity alone.
            **kwargs: ``filter``, ``score_threshold``, ``with_scores``.

        Returns:
            Documents in the order they were chosen.
        """
        return self._answer(_mmr(k, fetch_k, lambda_mult, kwargs), query, _documents)

    @override
    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = defaults.LANGCHAIN_K,
        fetch_k: int | None = None,
        lambda_mult: float = defaults.MMR_LAMBDA,
        **kwargs: Any,
    ) -> list[Document]:
        """Like :meth:`max_marginal_relevance_search`, without holding the event loop."""
        return await self._aanswer(_mmr(k, fetch_k, lambda_mult, kwargs), query, _documents)

    @override
    def max_marginal_relevance_search_by_vector(
        self,
        embedding: VectorLike,
        k: int = defaults.LANGCHAIN_K,
        fetch_k: int | None = None,
        lambda_mult: float = defaults.MMR_LAMBDA,
        **kwargs: Any,
    ) -> list[Document]:
        """Near a vector, and unlike each other; see :meth:`max_marginal_relevance_search`."""
        request = _mmr(k, fetch_k, lambda_mult, kwargs)
        return self._answer_vector(request, embedding, _documents)

    @override
    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: VectorLike,
        k: int = defaults.LANGCHAIN_K,
        fetch_k: int | None = None,
        lambda_mult: float = defaults.MMR_LAMBDA,
        **kwargs: Any,
    ) -> list[Document]:
        """Like :meth:`max_marginal_relevance_search_by_vector`, without holding the event loop."""
        request = _mmr(k, fetch_k, lambda_mult, kwargs)
        return await self._in_pool(self._answer_vector, request, embedding, _documents)


def _similarity(k: int, kwargs: dict[str, Any]) -> Request:
    return Request.build("similarity", {"k": k, **kwargs})


def _mmr(k: int, fetch_k: int | None, lambda_mult: float, kwargs: dict[str, Any]) -> Request:
    return Request.build("mmr", {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs})


def _result(result: Result, request: Request) -> Result:  # noqa: ARG001 - a Shape
    return result


def _documents(result: Result, request: Request) -> Answer:
    answer = from_result(result)
    return with_scores(answer) if request.with_scores else answer


def _scored(result: Result, request: Request) -> Scored:
    documents = _documents(result, request)
    return [(doc, float(hit.score)) for doc, hit in zip(documents, result, strict=True)]


def _relevances(result: Result, request: Request) -> Scored:
    documents = _documents(result, request)
    return [(doc, float(hit.relevance)) for doc, hit in zip(documents, result, strict=True)]
