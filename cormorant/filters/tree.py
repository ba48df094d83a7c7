"""What is a parsed filter, and does one record match it?

A filter is a small tree that never changes and shares nothing with the dict it came
from. Two filters that mean the same, written alike, are equal and hash alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cormorant.errors import FilterError
from cormorant.filters.operands import Operand, plain, render
from cormorant.filters.operators import FIELD_OPERATORS, FILTER_OPERATORS, Operator
from cormorant.filters.values import reach

__all__ = [
    "EVERYTHING",
    "And",
    "Compare",
    "Filter",
    "Not",
    "Or",
    "Text",
    "TextMatch",
    "conjoin",
    "describe",
    "escape_field",
]

TextMatch: TypeAlias = Callable[[str, str], bool]
"""``(words, text) -> bool``: does the text contain every term of the words?"""


class Filter(ABC):
    """A parsed filter: yes or no for a record, no score."""

    __slots__ = ()

    @abstractmethod
    def matches(
        self,
        metadata: Mapping[str, Any],
        text: str = "",
        *,
        text_match: TextMatch | None = None,
    ) -> bool:
        """Does a record match? One at a time; ``Columns.mask`` does it for all at once.

        Args:
            metadata: The record's metadata.
            text: The record's text, read by ``$text`` only.
            text_match: How ``$text`` decides, by the store's analyzer.

        Raises:
            FilterError: The filter holds ``$text`` and no ``text_match`` was given.
        """

    @property
    @abstractmethod
    def fields(self) -> frozenset[str]:
        """The metadata fields it looks at."""

    @property
    @abstractmethod
    def uses_text(self) -> bool:
        """Whether it looks at the record's text."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The filter as a new dict, every operator written out.

        It parses to an equal filter, unless written out it nests beyond
        ``defaults.MAX_FILTER_DEPTH``.
        """

    def __str__(self) -> str:
        return describe(self)


@dataclass(frozen=True, slots=True)
class Compare(Filter):
    """One field against one operand."""

    field: str
    operator: str
    operand: Operand

    @property
    def row(self) -> Operator:
        """The operator's row in the table."""
        return FIELD_OPERATORS[self.operator]

    def matches(
        self,
        metadata: Mapping[str, Any],
        text: str = "",  # noqa: ARG002 - the signature all filters share
        *,
        text_match: TextMatch | None = None,  # noqa: ARG002
    ) -> bool:
        """Does the field hold what is asked?"""
        row = self.row
        if row.oracle is None:
            raise FilterError(f"{row.name} cannot be asked of a field.")
        return row.oracle(reach(metadata, self.field), self.operand) is not row.negated

    @property
    def fields(self) -> frozenset[str]:
        """The field."""
        return frozenset((self.field,))

    @property
    def uses_text(self) -> bool:
        """No."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """``{field: {operator: operand}}``."""
        return {escape_field(self.field): {self.operator: plain(self.operand)}}


@dataclass(frozen=True, slots=True)
class Text(Filter):
    """The record's text against words."""

    words: str

    def matches(
        self,
        metadata: Mapping[str, Any],  # noqa: ARG002 - the signature all filters share
        text: str = "",
        *,
        text_match: TextMatch | None = None,
    ) -> bool:
        """Does the text contain every term?"""
        if text_match is None:
            raise FilterError(
                f"$text {self.words!r} needs an analyzer to make terms of it. Give matches() "
                "text_match=, or run the filter through a store."
            )
        return text_match(self.words, text)

    @property
    def fields(self) -> frozenset[str]:
        """None."""
        return frozenset()

    @property
    def uses_text(self) -> bool:
        """Yes."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """``{"$text": words}``."""
        return {"$text": self.words}


@dataclass(frozen=True, slots=True)
class _Several(Filter):
    parts: tuple[Filter, ...]

    @property
    def fields(self) -> frozenset[str]:
        """All parts' fields."""
        return frozenset().union(*(part.fields for part in self.parts))

    @property
    def uses_text(self) -> bool:
        """Whether any part does."""
        return any(part.uses_text for part in self.parts)


@dataclass(frozen=True, slots=True)
class And(_Several):
    """All of the parts; without parts, every record."""

    def matches(
        self,
        metadata: Mapping[str, Any],
        text: str = "",
        *,
        text_match: TextMatch | None = None,
    ) -> bool:
        """Do all parts match?"""
        return all(part.matches(metadata, text, text_match=text_match) for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """``{"$and": [...]}``, or ``{}`` for every record."""
        return {"$and": [part.to_dict() for part in self.parts]} if self.parts else {}


@dataclass(frozen=True, slots=True)
class Or(_Several):
    """At least one of the parts."""

    def matches(
        self,
        metadata: Mapping[str, Any],
        text: str = "",
        *,
        text_match: TextMatch | None = None,
    ) -> bool:
        """Does any part match?"""
        return any(part.matches(metadata, text, text_match=text_match) for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """``{"$or": [...]}``."""
        return {"$or": [part.to_dict() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """The exact opposite of a filter."""

    part: Filter

    def matches(
        self,
        metadata: Mapping[str, Any],
        text: str = "",
        *,
        text_match: TextMatch | None = None,
    ) -> bool:
        """Does the part not match?"""
        return not self.part.matches(metadata, text, text_match=text_match)

    @property
    def fields(self) -> frozenset[str]:
        """The part's fields."""
        return self.part.fields

    @property
    def uses_text(self) -> bool:
        """Whether the part does."""
        return self.part.uses_text

    def to_dict(self) -> dict[str, Any]:
        """``{"$not": {...}}``."""
        return {"$not": self.part.to_dict()}


EVERYTHING = And(())
"""The filter every record matches: ``{}``."""


def conjoin(*filters: Filter | None) -> Filter:
    """One filter that matches what all of them match, so never more than any of them.

    Args:
        filters: Parsed filters; None stands for no restriction.

    Raises:
        FilterError: Something else was given: an unparsed dict could still change.
    """
    parts: list[Filter] = []
    for one in filters:
        if one is None:
            continue
        if not isinstance(one, Filter):
            raise FilterError(
                f"conjoin takes parsed filters; got {type(one).__name__}. Call parse() first."
            )
        parts.extend(one.parts if isinstance(one, And) else (one,))
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def describe(filter: Filter) -> str:
    """The filter as a sentence: ``tenant is "acme" and year is at least 2024``."""
    if isinstance(filter, Compare):
        return filter.row.says.format(field=filter.field, operand=render(filter.operand))
    if isinstance(filter, Text):
        return FILTER_OPERATORS["$text"].says.format(operand=render(filter.words))
    if isinstance(filter, Not):
        return FILTER_OPERATORS["$not"].says.format(operand=describe(filter.part))
    if isinstance(filter, Or):
        either = " or ".join(describe(part) for part in filter.parts)
        return FILTER_OPERATORS["$or"].says.format(operand=either)
    if isinstance(filter, And) and filter.parts:
        return FILTER_OPERATORS["$and"].says.format(
            operand=" and ".join(describe(part) for part in filter.parts)
        )
    return "every record"


def escape_field(name: str) -> str:
    r"""A field's name as it is written in a filter: ``$ref`` becomes ``\$ref``."""
    return "\\" + name if name.lstrip("\\").startswith("$") else name
