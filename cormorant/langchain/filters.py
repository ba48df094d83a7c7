"""How do LangChain's filters become Cormorant's?

Two forms come in: the expressions a self-query makes (``StructuredQuery``), and the
callables on a Document that ``InMemoryVectorStore`` takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from langchain_core.documents import Document
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)

from cormorant.errors import FilterError
from cormorant.filters import escape_field, parse
from cormorant.model import Record

__all__ = ["CormorantTranslator", "document_predicate", "from_structured_query"]

_COMPARATORS = {
    Comparator.EQ: "$eq",
    Comparator.NE: "$ne",
    Comparator.GT: "$gt",
    Comparator.GTE: "$gte",
    Comparator.LT: "$lt",
    Comparator.LTE: "$lte",
    Comparator.CONTAIN: "$contains",
    Comparator.LIKE: "$like",
    Comparator.IN: "$in",
    Comparator.NIN: "$nin",
}
_OPERATORS = {Operator.AND: "$and", Operator.OR: "$or", Operator.NOT: "$not"}


class CormorantTranslator(Visitor):
    """Translates a structured query: ``SelfQueryRetriever``'s ``structured_query_translator``.

    Every comparator and operator of langchain-core is allowed. Dates come as LangChain's
    query parser writes them, ``{"date": "2024-01-05", "type": "date"}``.
    """

    allowed_comparators = tuple(Comparator)
    allowed_operators = tuple(Operator)

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """``{field: {operator: value}}``."""
        self._validate_func(comparison.comparator)
        operator = _COMPARATORS[comparison.comparator]
        return {escape_field(comparison.attribute): {operator: _value(comparison.value)}}

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """``{"$and": [...]}``, ``{"$or": [...]}`` or ``{"$not": {...}}``.

        Raises:
            FilterError: ``not`` of anything but one argument.
        """
        self._validate_func(operation.operator)
        operator = _OPERATORS[operation.operator]
        parts = [argument.accept(self) for argument in operation.arguments]
        if operation.operator is Operator.NOT:
            if len(parts) != 1:
                raise FilterError(
                    f"not takes one argument; got {len(parts)}. "
                    "Write not(or(…)) for none of them, not(and(…)) for not all."
                )
            return {operator: parts[0]}
        return {operator: parts}

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """The query's text, and search arguments: a ``filter`` and ``k`` where it has them."""
        arguments: dict[str, Any] = {}
        if structured_query.filter is not None:
            arguments["filter"] = structured_query.filter.accept(self)
        if structured_query.limit is not None:
            arguments["k"] = structured_query.limit
        return structured_query.query, arguments


def from_structured_query(query: StructuredQuery | FilterDirective) -> dict[str, Any]:
    """The filter dict for a structured query, or for the filter in one.

    Args:
        query: A whole query, of which only the filter is read, or a comparison or
            operation.

    Returns:
        A filter for ``Query.filter`` or ``filter=``; ``{}`` if the query has none.

    Raises:
        FilterError: The expression does not make a valid filter.

    Example:
        >>> from langchain_core.structured_query import Comparator, Comparison
        >>> from cormorant.langchain.filters import from_structured_query
        >>> from_structured_query(Comparison(Comparator.GTE, "year", 2024))
        {'year': {'$gte': 2024}}
    """
    directive = query.filter if isinstance(query, StructuredQuery) else query
    if directive is None:
        return {}
    if not isinstance(directive, FilterDirective):
        raise FilterError(
            "from_structured_query takes a StructuredQuery, Comparison or Operation; "
            f"got {type(query).__name__}."
        )
    translated: dict[str, Any] = directive.accept(CormorantTranslator())
    parse(translated)  # an expression that a model made up is refused here, not in the search
    return translated


def document_predicate(accepts: Callable[[Document], bool]) -> Callable[[Record], bool]:
    """A predicate on records from one on Documents, as ``InMemoryVectorStore`` takes them.

    The callable gets a Document of its own, so nothing it does to it reaches the store.

    Raises:
        FilterError: It is not callable, or a coroutine function, whose result would
            always count as yes.
    """
    if not callable(accepts):
        raise FilterError(
            f"A filter is a dict or a callable on a Document; got {type(accepts).__name__}."
        )
    if inspect.iscoroutinefunction(accepts) or inspect.iscoroutinefunction(
        getattr(accepts, "__call__", None)  # noqa: B004 - an object's own async call
    ):
        raise FilterError(
            "A filter callable must not be async: what it returns would always count as yes. "
            "Give a plain function."
        )

    def accepts_record(record: Record) -> bool:
        metadata = {name: _copy(value) for name, value in record.metadata.items()}
        document = Document(id=record.id, page_content=record.text, metadata=metadata)
        return bool(accepts(document))

    return accepts_record


def _copy(value: Any) -> Any:
    """Containers anew; scalars cannot change."""
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    return value


def _value(value: Any) -> Any:
    """The operand; LangChain's typed dates become dates."""
    if isinstance(value, (list, tuple)):
        return [_value(inner) for inner in value]
    if isinstance(value, dict) and value.get("type") in {"date", "datetime"}:
        written = value.get(value["type"])
        read = date.fromisoformat if value["type"] == "date" else datetime.fromisoformat
        try:
            return read(written)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise FilterError(
                f"{written!r} is no {value['type']}; write it in ISO 8601, as 2024-01-05 or "
                "2024-01-05T09:30:00+08:00."
            ) from error
    return value
