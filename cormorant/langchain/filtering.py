"""How do the filters LangChain users write become one filter of the engine?

A filter is a promise: two filters for one search are AND-ed, never one for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.structured_query import FilterDirective, StructuredQuery

from cormorant.errors import FilterError
from cormorant.filters import parse
from cormorant.langchain.filters import document_predicate, from_structured_query
from cormorant.model import FilterLike, Record

__all__ = ["LangChainFilter", "both", "engine_filter"]

LangChainFilter: TypeAlias = (
    Mapping[str, Any] | Callable[[Document], bool] | StructuredQuery | FilterDirective
)


def engine_filter(filter: LangChainFilter) -> FilterLike:
    """A LangChain filter as the engine takes it.

    Args:
        filter: A dict in the filter language, a callable on a Document, or a
            StructuredQuery or one of its parts (whose filter alone is used).

    Raises:
        FilterError: If it is none of these, or does not parse.
    """
    if isinstance(filter, (StructuredQuery, FilterDirective)):
        return from_structured_query(filter)
    if isinstance(filter, Mapping):
        parse(filter)
        return filter
    if callable(filter):
        return document_predicate(filter)
    raise FilterError(
        f"filter must be a dict such as {{'tenant': 'acme'}}, a callable on a Document, or a "
        f"StructuredQuery; got {type(filter).__name__}."
    )


def both(first: LangChainFilter | None, second: LangChainFilter | None) -> LangChainFilter | None:
    """The filter that admits what both admit; None if neither is given.

    Raises:
        FilterError: If one does not parse, or one is a callable and the other holds ``$text``.
    """
    given = [engine_filter(each) for each in (first, second) if each is not None]
    given = [each for each in given if each != {}]
    dicts = [each for each in given if isinstance(each, Mapping)]
    if len(dicts) == len(given):
        return ({"$and": dicts} if len(dicts) > 1 else dicts[0]) if dicts else None
    admits = [_predicate(each) for each in given]

    def admit(document: Document) -> bool:
        record = Record(
            id=document.id or "", text=document.page_content, metadata=document.metadata
        )
        return all(test(record) for test in admits)

    return admit


def _predicate(filter: FilterLike) -> Callable[[Record], bool]:
    if not isinstance(filter, Mapping):
        return filter
    parsed = parse(filter)
    if parsed.uses_text:
        raise FilterError(
            "A filter with $text cannot be combined with a callable, which is asked record by "
            "record. Write the callable's condition as a dict."
        )
    return lambda record: parsed.matches(record.metadata)
