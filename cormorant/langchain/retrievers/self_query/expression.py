"""Which filter does an expression such as ``and(eq("topic", "birds"), gt("year", 2020))`` say?"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    Operator,
)

from cormorant import defaults
from cormorant.errors import RewriteError
from cormorant.langchain.retrievers.asking.rewriting import quoted

__all__ = ["parse_expression"]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<mark>[(),\[\]])
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<date>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?)
    |(?P<number>[+-]?(?:\d+\.\d*|\.?\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d][\w.-]*))""",
    re.VERBOSE,
)
_DIGITS: Final = 400  # more than the largest float has
_CONSTANTS: Final = {"true": True, "false": False}
_COMPARATORS: Final = {each.value: each for each in Comparator}
_OPERATORS: Final = {each.value: each for each in Operator}


def parse_expression(
    text: str,
    *,
    comparators: Sequence[Comparator] = tuple(Comparator),
    operators: Sequence[Operator] = tuple(Operator),
) -> FilterDirective:
    """The filter an expression stands for.

    Args:
        text: ``comparator("attribute", value)``, or ``operator(expression, …)``.
        comparators: Those allowed.
        operators: Those allowed.

    Raises:
        RewriteError: If it is not such an expression, saying where.

    Example:
        >>> parse_expression('gte("year", 2020)')
        Comparison(comparator=<Comparator.GTE: 'gte'>, attribute='year', value=2020)
    """
    parser = _Parser(text, comparators, operators)
    directive = parser.expression(1)
    parser.end()
    return directive


class _Parser:
    def __init__(
        self, text: str, comparators: Sequence[Comparator], operators: Sequence[Operator]
    ) -> None:
        self._text = text
        self._allowed = [each.value for each in (*comparators, *operators)]
        self._tokens = _tokens(text)
        self._at = 0

    def expression(self, depth: int) -> FilterDirective:
        if depth > defaults.MAX_FILTER_DEPTH:
            raise self._error(f"is nested more than {defaults.MAX_FILTER_DEPTH} deep")
        kind, name = self._next()
        name = name.lower()
        if kind != "word" or name not in self._allowed:
            raise self._error(
                f"says {quoted(name)} where one of {', '.join(self._allowed)} must stand"
            )
        self._mark("(")
        if name in _OPERATORS:
            parts = [self.expression(depth + 1)]
            while self._taken(","):
                parts.append(self.expression(depth + 1))
            self._mark(")")
            return Operation(operator=_OPERATORS[name], arguments=parts)
        kind, attribute = self._next()
        if kind not in {"string", "word"}:
            raise self._error(f"has {quoted(attribute)} where an attribute's name must stand")
        self._mark(",")
        value = self._value()
        self._mark(")")
        return Comparison(
            comparator=_COMPARATORS[name],
            attribute=_unquoted(attribute) if kind == "string" else attribute,
            value=value,
        )

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error(f"goes on with {quoted(self._tokens[self._at][1])} after its end")

    def _value(self, *, in_list: bool = False) -> Any:
        kind, token = self._next()
        if (kind, token) == ("mark", "[") and not in_list:
            values: list[Any] = []
            while not self._taken("]"):
                if values:
                    self._mark(",")
                values.append(self._value(in_list=True))
            return values
        if kind == "string":
            return _unquoted(token)
        if kind == "number":
            return self._number(token)
        if kind == "date":
            sort = "date" if len(token) == len("2024-01-05") else "datetime"
            return {"type": sort, sort: token}
        if kind == "word" and token.lower() in _CONSTANTS:
            return _CONSTANTS[token.lower()]
        raise self._error(f"has {quoted(token)} where a value must stand")

    def _number(self, token: str) -> int | float:
        if not re.search(r"[.eE]", token):
            if len(token) > _DIGITS:  # Python refuses to read far longer ones
                raise self._error(f"has a number of {len(token)} digits")
            return int(token)
        value = float(token)
        if math.isinf(value):
            raise self._error(f"has a number that is too large, {quoted(token)}")
        return value

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise self._error("ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _taken(self, mark: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == ("mark", mark):
            self._at += 1
            return True
        return False

    def _mark(self, mark: str) -> None:
        _, token = self._next()
        if token != mark:
            raise self._error(f"has {quoted(token)} where {mark!r} must stand")

    def _error(self, says: str) -> RewriteError:
        return RewriteError(f"the filter {quoted(self._text)} {says}")


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise RewriteError(
                f"the filter {quoted(text)} cannot be read at {text[at : at + 20]!r}"
            )
        tokens.append((str(found.lastgroup), str(found[str(found.lastgroup)])))
        at = found.end()
    return tokens


def _unquoted(token: str) -> str:
    if token[0] == '"':
        try:
            return str(json.loads(token, strict=False))
        except ValueError:
            pass
    return re.sub(r"\\(.)", r"\1", token[1:-1])
