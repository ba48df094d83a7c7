"""What does the user's dict say? Read once, checked whole, kept as a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cormorant import defaults
from cormorant.errors import FilterError
from cormorant.filters.operands import check_text
from cormorant.filters.operators import FIELD_OPERATORS, FILTER_OPERATORS, OPERATORS, nearest
from cormorant.filters.tree import Compare, Filter, Not, Or, Text, conjoin

__all__ = ["MAX_CLAUSES", "parse"]

MAX_CLAUSES = 10_000
"""Clauses in one filter. A list of values in ``$in`` counts as one, however long."""


def parse(source: Mapping[str, Any] | Filter) -> Filter:
    """The filter a dict stands for.

    Args:
        source: A dict in the filter language (``docs/filters.md``); ``{}`` is every
            record. A parsed filter comes back as it is.

    Returns:
        A tree that later changes of the dict, or of anything in it, do not reach.

    Raises:
        FilterError: Unknown operator, wrong operand, wrong shape, too deep; the message
            says where, what is accepted and what was probably meant.

    Example:
        >>> from cormorant.filters import describe, parse
        >>> print(describe(parse({"tenant": "acme", "year": {"$gte": 2024, "$ne": 2025}})))
        tenant is "acme" and year is at least 2024 and year is not 2025
    """
    if isinstance(source, Filter):
        return source
    return _Parser().filter(source, "The filter", depth=1, top=True)


class _Parser:
    """One parse: counts clauses, so that a dict that repeats itself cannot grow without end."""

    def __init__(self) -> None:
        self._clauses = 0

    def filter(self, source: object, where: str, *, depth: int, top: bool = False) -> Filter:
        """A dict of fields and operators, all of which must hold."""
        items = _items(source, where, "a dict of fields and operators")
        self._count(where, depth)
        if not items and not top:
            raise FilterError(
                f"{where} is an empty dict, which every record matches. Say what it should hold, "
                "or leave it out."
            )
        return conjoin(*(self._entry(key, value, where, depth) for key, value in items))

    def _entry(self, key: str, value: object, where: str, depth: int) -> Filter:
        if not key.startswith("$"):
            field = check_text(_unescape(key), f"a field name in {where}")
            return self._field(field, value, depth)
        if key in ("$and", "$or"):
            parts = self._list(key, value, depth)
            return conjoin(*parts) if key == "$and" else Or(tuple(parts))
        if key == "$not":
            return Not(self.filter(value, "$not", depth=depth + 1))
        row = FILTER_OPERATORS.get(key)
        if row is not None and row.check is not None:
            self._count(key, depth)
            return Text(str(row.check(value, key)))
        if key in FIELD_OPERATORS:
            raise FilterError(
                f"{key} stands under a field, not beside one. Write {{'field': {{'{key}': …}}}}; "
                f"beside fields stand {', '.join(FILTER_OPERATORS)}."
            )
        raise _unknown(key, FILTER_OPERATORS, where)

    def _list(self, key: str, value: object, depth: int) -> list[Filter]:
        if not isinstance(value, (list, tuple)):
            raise FilterError(f"{key} takes a list of filters; got {type(value).__name__}.")
        each: Callable[[Any], Any] = list.__iter__ if isinstance(value, list) else tuple.__iter__
        parts = [
            self.filter(part, f"{key}[{i}]", depth=depth + 1) for i, part in enumerate(each(value))
        ]
        if not parts:
            raise FilterError(
                f"{key} takes a list of at least one filter; got an empty one. Leave {key} out to "
                "match every record."
            )
        return parts

    def _field(self, field: str, value: object, depth: int) -> Filter:
        if isinstance(value, Mapping):
            return self._operators(field, value, depth)
        return self._compare(field, "$eq", value, depth)

    def _operators(self, field: str, source: object, depth: int) -> Filter:
        items = _items(source, f"the field {field!r}", "a value or a dict of operators")
        self._count(f"the field {field!r}", depth)
        if not items:
            raise FilterError(
                f"The field {field!r} has an empty dict. Give a value, or operators: "
                f"{', '.join(FIELD_OPERATORS)}."
            )
        parts: list[Filter] = []
        for key, value in items:
            if key == "$not":
                if not isinstance(value, Mapping):
                    raise FilterError(
                        f"$not under {field!r} takes a dict of operators; got "
                        f"{type(value).__name__}. For 'is not' use $ne."
                    )
                parts.append(Not(self._operators(field, value, depth + 1)))
            elif key in FIELD_OPERATORS:
                parts.append(self._compare(field, key, value, depth))
            elif key in FILTER_OPERATORS:
                raise FilterError(
                    f"{key} stands beside fields, not under one ({field!r}). "
                    f"Write {{'{key}': [{{'{field}': …}}, …]}}; under a field stand "
                    f"{', '.join(FIELD_OPERATORS)}, $not."
                )
            elif not key.startswith("$") and "$" + key not in OPERATORS:
                raise FilterError(
                    f"The field {field!r} has a dict with {key!r}, which is no operator. "
                    f"To reach into nested metadata write '{field}.{key}': …; "
                    f"operators are {', '.join(FIELD_OPERATORS)}, $not."
                )
            else:
                raise _unknown(key, FIELD_OPERATORS, f"the field {field!r}", also=("$not",))
        return conjoin(*parts)

    def _compare(self, field: str, operator: str, value: object, depth: int) -> Filter:
        self._count(f"the field {field!r}", depth)
        check = FIELD_OPERATORS[operator].check
        if check is None:
            raise FilterError(f"{operator} cannot be asked of a field.")
        return Compare(field, operator, check(value, f"{operator} of {field!r}"))

    def _count(self, where: str, depth: int) -> None:
        self._clauses += 1
        if depth > defaults.MAX_FILTER_DEPTH:
            raise FilterError(
                f"The filter is nested more than {defaults.MAX_FILTER_DEPTH} deep, at {where}. "
                "Lists of values belong in $in, and nested $and can be one."
            )
        if self._clauses > MAX_CLAUSES:
            raise FilterError(
                f"The filter has more than {MAX_CLAUSES} clauses, at {where}. "
                "Put lists of values into $in."
            )


def _items(source: object, where: str, accepted: str) -> list[tuple[str, object]]:
    """The entries, read once: what a mapping answers later is of no account."""
    if not isinstance(source, Mapping):
        raise FilterError(
            f"{where} must be {accepted}, as {{'tenant': 'acme', 'year': {{'$gte': 2024}}}}; "
            f"got {type(source).__name__}."
        )
    items: list[tuple[str, object]] = []
    for key, value in dict.items(source) if isinstance(source, dict) else source.items():
        if not isinstance(key, str):
            raise FilterError(
                f"Field names in {where} are strings; got {type(key).__name__} {key!r}."
            )
        items.append((str.__str__(key), value))
    return items


def _unescape(key: str) -> str:
    r"""The field a key names: ``\$ref`` is the field ``$ref``."""
    return key[1:] if key.startswith("\\") and key.lstrip("\\").startswith("$") else key


def _unknown(
    key: str, names: Mapping[str, Any], where: str, also: tuple[str, ...] = ()
) -> FilterError:
    valid = (*names, *also)
    guess = nearest(key, valid) or nearest("$" + key, valid) or nearest(key, OPERATORS)
    meant = f" Did you mean {guess}?" if guess else ""
    field = f" A field of that name is written '\\\\{key}'." if names is FILTER_OPERATORS else ""
    return FilterError(
        f"{key!r} is no operator, in {where}.{meant} Valid there: {', '.join(valid)}.{field}"
    )
