"""How relevant is what a vector store finds, on a scale from 0 to 1?

Stores give distances, negative similarities, or nothing. What is no relevance is never used as
one: then the places stand for it, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from pydantic import Field
from typing_extensions import override

from cormorant.errors import UsageError
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer, Provenance, attach, of
from cormorant.langchain.retrievers.base import Retriever
from cormorant.langchain.retrievers.calling import Run
from cormorant.model import Step

__all__ = ["StoreRelevance", "afound", "by_place", "found", "relevances"]

Scored = list[tuple[Document, float]]

_PLACES = "its places stand for relevance"


def by_place(count: int) -> list[float]:
    """Relevance where only the order is known: evenly from 1 down, none of them 0."""
    return [1 - place / count for place in range(count)]


def relevances(answer: Answer) -> tuple[list[float], str | None]:
    """Each document's relevance in [0, 1], and what must be said of them.

    A retriever that does not tell one for each has its places stand for it.
    """
    known = [of(document).relevance for document in answer]
    told = [each for each in known if each is not None and 0 <= each <= 1]
    if len(told) == len(answer):
        return told, None
    return by_place(len(answer)), f"The retriever tells no relevance in [0, 1]; {_PLACES}."


def found(store: VectorStore, query: str, arguments: dict[str, Any]) -> tuple[Scored, str | None]:
    """What a vector store finds, with relevance in [0, 1], and what must be said of that.

    Args:
        store: Any.
        query: The question.
        arguments: Of the store's search; ``score_threshold`` is a relevance.
    """
    arguments, threshold = _without_threshold(arguments)
    try:
        scored = store._similarity_search_with_relevance_scores(query, **arguments)  # noqa: SLF001 - the public one warns of what is mended here
    except NotImplementedError:
        if not isinstance(store, InMemoryVectorStore):
            documents = store.similarity_search(query, **arguments)
            return _checked([(d, None) for d in documents], store, threshold)
        scored = _cosines(store.similarity_search_with_score(query, **arguments))
    return _checked(scored, store, threshold)


async def afound(
    store: VectorStore, query: str, arguments: dict[str, Any]
) -> tuple[Scored, str | None]:
    """Like :func:`found`, awaiting the store's own async methods."""
    kind = type(store)
    if (
        kind._asimilarity_search_with_relevance_scores  # noqa: SLF001 - which of the two it has
        is VectorStore._asimilarity_search_with_relevance_scores  # noqa: SLF001
        and kind._similarity_search_with_relevance_scores  # noqa: SLF001
        is not VectorStore._similarity_search_with_relevance_scores  # noqa: SLF001
    ):
        return await to_thread(store, found, store, query, arguments)
    arguments, threshold = _without_threshold(arguments)
    try:
        scored = await store._asimilarity_search_with_relevance_scores(query, **arguments)  # noqa: SLF001 - likewise
    except NotImplementedError:
        if not isinstance(store, InMemoryVectorStore):
            documents = await store.asimilarity_search(query, **arguments)
            return _checked([(d, None) for d in documents], store, threshold)
        scored = _cosines(await store.asimilarity_search_with_score(query, **arguments))
    return _checked(scored, store, threshold)


def _without_threshold(arguments: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
    rest = {name: value for name, value in arguments.items() if name != "score_threshold"}
    return rest, arguments.get("score_threshold")


def _cosines(scored: Sequence[tuple[Document, float]]) -> list[tuple[Document, float]]:
    return [(document, min(1.0, max(0.0, float(score)))) for document, score in scored]


def _checked(
    scored: Sequence[tuple[Document, float | None]], store: VectorStore, threshold: float | None
) -> tuple[Scored, str | None]:
    documents = [document for document, _ in scored]
    known = [None if score is None else float(score) for _, score in scored]
    if all(score is not None and -1e-6 <= score <= 1 + 1e-6 for score in known):
        told = [min(1.0, max(0.0, score)) for score in known if score is not None]
        kept = zip(documents, told, strict=True)
        return [(d, r) for d, r in kept if threshold is None or r >= threshold], None
    who = type(store).__name__
    if threshold is not None:
        raise UsageError(
            f"score_threshold={threshold!r} needs relevance in [0, 1], and {who} gives "
            f"{known[:3]}. Leave it out, or use a Cormorant."
        )
    says = f"{who} gives no relevance in [0, 1]; {_PLACES}."
    return list(zip(documents, by_place(len(documents)), strict=True)), says


class StoreRelevance(Retriever):
    """A retriever over any vector store that tells each document's relevance.

    Args:
        vectorstore: Any.
        search_kwargs: Of its search.
    """

    vectorstore: VectorStore
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        return _answer(*found(self.vectorstore, query, self._arguments(asked)))

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        return _answer(*await afound(self.vectorstore, query, self._arguments(asked)))

    def _arguments(self, asked: dict[str, Any]) -> dict[str, Any]:
        fixed = self.search_kwargs.get("filter")
        arguments = {**self.search_kwargs, **asked}
        if fixed is not None and "filter" in asked:
            arguments["filter"] = both(fixed, asked["filter"])
        return arguments


def _answer(scored: Scored, says: str | None) -> Answer:
    documents = []
    for rank, (document, relevance) in enumerate(scored, start=1):
        step = Step(
            "vector", kept=True, says=f"Rank {rank}, relevance {relevance:.4f}.", value=relevance
        )
        known = Provenance(score=relevance, relevance=relevance, method="vector", journey=(step,))
        documents.append(attach(document, known))
    return Answer(documents, mode="vector", degraded=[] if says is None else [says])
