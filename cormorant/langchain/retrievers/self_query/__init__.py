"""Which part of a question is a filter? Path as in langchain-classic."""

from __future__ import annotations

from cormorant.langchain.retrievers.self_query.base import SelfQueryRetriever
from cormorant.langchain.retrievers.self_query.constructor import (
    AttributeInfo,
    StructuredQueryOutputParser,
    query_constructor,
)

__all__ = [
    "AttributeInfo",
    "SelfQueryRetriever",
    "StructuredQueryOutputParser",
    "query_constructor",
]
