"""Which records may this caller touch?

A scope is a filter nobody can widen. It is AND-ed under every read, decides which
records a delete may reach, and is stamped on (or checked against) what is added.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from cormorant.errors import FilterError, ScopeError
from cormorant.filters import Filter, conjoin, parse, reach

__all__ = ["Scope"]

_BINDING = ("$eq", "$in")
_ABOUT_ARRAYS = ("$contains", "$any", "$all", "$exists")


class Scope:
    """An immutable set of predicates on metadata fields, all of which hold.

    Args:
        predicates: Field name to a value (an equality, which is stamped on what is
            added) or to an operator dict such as ``{"$in": [...]}`` (which is checked).

    Raises:
        ScopeError: On a field name that is not one, or a predicate that is None.
        FilterError: On an unknown operator or operand.
    """

    __slots__ = ("_predicates", "_stamps", "filter")

    def __init__(self, predicates: Mapping[str, Any] | None = None) -> None:
        self._predicates: tuple[tuple[str, Any], ...] = ()
        self._stamps: dict[str, Any] = {}
        self.filter: Filter | None = None
        for field, predicate in (predicates or {}).items():
            self._add(field, predicate)

    def _add(self, field: str, predicate: Any) -> None:
        if not isinstance(field, str) or not field or field.startswith("$"):
            raise ScopeError(f"A scope takes field names, such as tenant='acme'; got {field!r}.")
        if predicate is None:
            # Almost always an unset variable; reading it as 'no restriction' would leak.
            raise ScopeError(f"The scope's {field} is None. Give the value to restrict to.")
        operators = isinstance(predicate, Mapping) and any(
            isinstance(key, str) and key.startswith("$") for key in predicate
        )
        if isinstance(predicate, Mapping) and not operators:
            raise ScopeError(
                f"The scope's {field} is a dict without operators; got {predicate!r}. "
                'Name the nested field, as in scope(**{"acl.team": "blue"}).'
            )
        if not operators and isinstance(predicate, (list, tuple, set, frozenset)):
            raise ScopeError(
                f"The scope's {field} is a {type(predicate).__name__}; "
                f'to accept any of several values use {{"$in": [...]}}.'
            )
        try:
            predicate = copy.deepcopy(predicate)
        except Exception as error:
            raise ScopeError(
                f"The scope's {field} is a {type(predicate).__name__}, which cannot be kept; give "
                "a value or an operator dict."
            ) from error
        try:
            parsed = parse({field: predicate})
        except FilterError as error:
            raise FilterError(f"In the scope: {error}") from error
        self._predicates = (*self._predicates, (field, predicate))
        if not operators:
            self._stamp_once(field, predicate)
        elif set(predicate) == {"$eq"}:
            self._stamp_once(field, predicate["$eq"])
        self.filter = parsed if self.filter is None else conjoin(self.filter, parsed)

    def _stamp_once(self, field: str, value: Any) -> None:
        # Two different equalities on one field match nothing on reading; on writing the
        # first stays, and the second then refuses it.
        self._stamps.setdefault(field, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its predicates: they are read anew."""
        return _of, (self._predicates,)

    def __bool__(self) -> bool:
        return self.filter is not None

    def __repr__(self) -> str:
        return "Scope(" + ", ".join(f"{field}={value!r}" for field, value in self._predicates) + ")"

    def narrowed(self, predicates: Mapping[str, Any]) -> Scope:
        """This scope and further predicates; a field named again must satisfy both."""
        return _of((*self._predicates, *predicates.items()))

    def require(self, fields: tuple[str, ...]) -> None:
        """Refuse a call that is not bound on every one of ``fields``.

        Raises:
            ScopeError: Naming the fields that are missing.
        """
        bound = {field for field, predicate in self._predicates if _binds(predicate)}
        missing = [field for field in fields if field not in bound]
        if missing:
            example = ", ".join(f'{field}="…"' for field in missing)
            raise ScopeError(
                f"This store requires a scope on {', '.join(missing)} (an equality or $in); "
                f"the call has {self or 'none'}. Use store.scope({example}), or --scope on the "
                "command line."
            )

    def stamp(self, metadata: dict[str, Any], *, id: str) -> dict[str, Any]:
        """Metadata with the scope's equalities set; ``metadata`` is changed and returned.

        Raises:
            ScopeError: If it says otherwise than the scope, or fails one of its predicates.
        """
        if self.filter is None:
            return metadata
        for field, value in self._stamps.items():
            _set(metadata, field, value, id=id)
        for field, predicate in self._predicates:
            values = [value.raw for value in reach(metadata, field).values]
            operators = predicate if isinstance(predicate, Mapping) else {"$eq": predicate}
            inside = parse({field: predicate}).matches(metadata)
            if not inside or not _all_inside(field, operators, values):
                held = f"its {field} holds {values!r}" if values else f"it has no {field}"
                raise ScopeError(
                    f"Record {id!r} is outside the scope: {held}, and every value must satisfy "
                    f"{predicate!r}."
                )
        return metadata

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a stored record is inside the scope."""
        return self.filter is None or self.filter.matches(metadata)


def _of(predicates: tuple[tuple[str, Any], ...]) -> Scope:
    """A scope of predicates, of which several may be on one field."""
    scope = Scope()
    for field, predicate in predicates:
        scope._add(field, predicate)  # noqa: SLF001 - its own
    return scope


def _binds(predicate: Any) -> bool:
    if isinstance(predicate, Mapping):
        return any(operator in predicate for operator in _BINDING)
    return True


def _all_inside(field: str, operators: Mapping[str, Any], values: list[Any]) -> bool:
    """Does every value satisfy the predicate, not merely one of them?

    A filter matches an array by any element, and a name by a nested or a dotted key: a
    record with ``["acme", "rival"]``, or with both keys, would be seen from another scope.
    Operators that speak of an array as a whole are left to the filter itself.
    """
    about_one = {op: operand for op, operand in operators.items() if op not in _ABOUT_ARRAYS}
    if not about_one:
        return True
    predicate = parse({field: about_one})
    return all(predicate.matches({field: value}) for value in values)


def _set(metadata: dict[str, Any], field: str, value: Any, *, id: str) -> None:
    """Set a possibly dotted field, refusing to contradict what is there."""
    target = metadata
    *path, last = field.split(".")
    for name in path:
        inner = target.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ScopeError(
                f"Record {id!r} cannot take the scope's {field}: its {name} is not a dict."
            )
        target = inner
    if last in target and not _same(target[last], value):
        raise ScopeError(
            f"Record {id!r} has {field}={target[last]!r}, the scope says {value!r}. "
            "Leave the field out, or use the scope it belongs to."
        )
    target[last] = copy.deepcopy(value)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
