"""How are the children of documents searched, in a store of any make?"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from cormorant.errors import QueryError, UsageError
from cormorant.langchain.vectorstore import Cormorant
from cormorant.ranges import check_number

__all__ = ["SearchType", "check_threshold", "child_retriever"]

_UNREAD: Final = (
    "A score_threshold has no effect on {} unless search_type is 'similarity_score_threshold'. "
    "Say so, or leave the threshold out."
)


class SearchType(StrEnum):
    """How children are searched; the last two need a Cormorant."""

    similarity = "similarity"
    similarity_score_threshold = "similarity_score_threshold"
    mmr = "mmr"
    hybrid = "hybrid"
    text = "text"


def child_retriever(
    store: VectorStore, search_type: SearchType, search_kwargs: Mapping[str, Any]
) -> BaseRetriever:
    """The retriever over the children; how many it finds is asked for with each call.

    Args:
        store: Where they are.
        search_type: Of its search.
        search_kwargs: Of its search; ``k`` and ``fetch_k`` are not read.

    Raises:
        QueryError: On a search that the store does not have, or a threshold outside [0, 1].
        UsageError: On a threshold that nobody would read.
    """
    arguments = {
        name: value
        for name, value in search_kwargs.items()
        if name not in {"k", "fetch_k"} and value is not None
    }
    threshold = arguments.get("score_threshold")
    if threshold is None and search_type == SearchType.similarity_score_threshold:
        raise QueryError(
            "search_type='similarity_score_threshold' needs a score_threshold in [0, 1] in "
            "search_kwargs; got none."
        )
    if not isinstance(store, Cormorant):
        if search_type not in VectorStoreRetriever.allowed_search_types:
            raise QueryError(
                f"search_type={str(search_type)!r} needs a Cormorant; {type(store).__name__} takes "
                f"{', '.join(VectorStoreRetriever.allowed_search_types)}."
            )
        if threshold is not None:
            check_threshold(store, search_type, threshold)
            arguments["score_threshold"] = float(threshold)
    return store.as_retriever(search_type=str(search_type), search_kwargs=arguments)


def check_threshold(store: VectorStore, search_type: SearchType, threshold: Any) -> None:
    """Refuse a threshold that is none, or that another store would drop without a word."""
    if isinstance(store, Cormorant):
        return  # its own search checks it
    check_number("score_threshold", threshold, 0, 1)
    if search_type != SearchType.similarity_score_threshold:
        raise UsageError(_UNREAD.format(type(store).__name__))
