"""Are the values of a generated filter of the types their fields have?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.structured_query import Comparator, Comparison, FilterDirective, Operation

from cormorant.errors import RewriteError
from cormorant.langchain.retrievers.self_query.constructor import AttributeInfo
from cormorant.ranges import is_number

__all__ = ["typed"]

_NUMBERS: Final = frozenset({"int", "integer", "float", "number", "double"})
_TEXTS: Final = frozenset({"str", "string", "text"})
_BOOLEANS: Final = frozenset({"bool", "boolean"})


def typed(directive: FilterDirective, fields: Sequence[AttributeInfo]) -> FilterDirective:
    """The filter, with ``"2020"`` a number where the field holds numbers, and the like.

    A type that is none of those in the tables is not looked at.

    Raises:
        RewriteError: If a value cannot become the field's type, so that it could match nothing.
    """
    return _typed(directive, {each.name: each.type.strip().lower() for each in fields})


def _typed(directive: FilterDirective, types: Mapping[str, str]) -> FilterDirective:
    if isinstance(directive, Operation):
        arguments = [_typed(argument, types) for argument in directive.arguments]
        return Operation(operator=directive.operator, arguments=arguments)
    if isinstance(directive, Comparison):
        kind = types.get(directive.attribute, "")
        value = directive.value
        if isinstance(value, list):
            value = [_value(each, kind, directive) for each in value]
        elif directive.comparator is not Comparator.LIKE:
            value = _value(value, kind, directive)
        return Comparison(
            comparator=directive.comparator, attribute=directive.attribute, value=value
        )
    return directive


def _value(value: Any, kind: str, directive: Comparison) -> Any:
    fits = True
    if kind in _NUMBERS:
        if isinstance(value, str):
            value = _number(value)
        fits = is_number(value)
    elif kind in _BOOLEANS:
        if isinstance(value, str):
            value = {"true": True, "false": False}.get(value.strip().lower())
        fits = isinstance(value, bool)
    elif kind in _TEXTS and is_number(value):
        value = str(value)
    if not fits:
        raise RewriteError(
            f"the filter compares {directive.attribute!r}, of type {kind}, with "
            f"{directive.value!r:.200}"
        )
    return value


def _number(text: str) -> float | None:
    """The number a text says; None if it says none, or one that is not finite."""
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        return value if -math.inf < value < math.inf else None
    return None
