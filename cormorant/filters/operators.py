"""Which operators are there? The one table behind parsing, matching, masks, docs and tests.

A row holds all that is known of an operator: where it stands, how its operand is
checked, the function that decides for one record (the oracle), the name of the function
that decides for all records at once (``index.metadata.masks``), the sentence that
explains it, and an example that the tests run through both.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cormorant.filters import operands
from cormorant.filters.like import compile_like
from cormorant.filters.operands import Choices, Operand
from cormorant.filters.values import Found, Value

__all__ = ["FIELD_OPERATORS", "FILTER_OPERATORS", "OPERATORS", "Operator", "nearest", "table"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the table.

    Attributes:
        name: As written in a filter.
        accepts: The operand, in words, for errors and docs.
        matches_when: What it means, in words, for docs.
        says: Sentence with ``{field}`` and ``{operand}``.
        example, yes, no: A filter, a metadata that matches it and one that does not.
        check: Turns what the user wrote into an operand, or raises FilterError. None
            for operators that take filters, which the parser reads.
        oracle: Do these values of one record match?
        mask: Name of the column function that does the same.
        negated: The oracle and the mask decide the opposite (so a missing field matches).
    """

    name: str
    accepts: str
    matches_when: str
    says: str
    example: Mapping[str, Any] = field(hash=False)
    yes: Mapping[str, Any] = field(hash=False)
    no: Mapping[str, Any] = field(hash=False)
    check: Callable[[object, str], Operand] | None = None
    oracle: Callable[[Found, Any], bool] | None = None
    mask: str | None = None
    negated: bool = False


def _equal(found: Found, operand: Value) -> bool:
    return operand in found.values


def _within(found: Found, operand: operands.Interval) -> bool:
    return any(operand.covers(value) for value in found.values)


def _one_of(found: Found, operand: Choices) -> bool:
    return any(value in operand.members for value in found.values)


def _all_of(found: Found, operand: Choices) -> bool:
    return operand.members <= set(found.values)


def _exists(found: Found, operand: object) -> bool:
    return found.present is operand


def _contains(found: Found, operand: Value) -> bool:
    part = operand.text
    return any(
        value == operand
        or (
            part is not None and value.text is not None and not value.element and part in value.text
        )
        for value in found.values
    )


def _like(found: Found, operand: str) -> bool:
    return _fits(found, operand, ignore_case=False)


def _ilike(found: Found, operand: str) -> bool:
    return _fits(found, operand, ignore_case=True)


def _fits(found: Found, operand: str, *, ignore_case: bool) -> bool:
    whole = compile_like(operand, ignore_case=ignore_case).fullmatch
    return any(value.text is not None and whole(value.text) is not None for value in found.values)


_VALUE = "text, number, boolean, date, datetime or None"
_NEAR = 0.65
_LONGEST_GUESSED = 100
_OTHER_DIALECTS = {"$notin": "$nin", "$not_in": "$nin", "$regex": "$like", "$startswith": "$like"}
_ORDERED = "number, text, date or datetime"

FIELD_OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        row.name: row
        for row in (
            Operator(
                name="$eq",
                accepts=_VALUE,
                matches_when="a value equals it; `{field: value}` is short for it",
                says="{field} is {operand}",
                example={"tenant": {"$eq": "acme"}},
                yes={"tenant": "acme"},
                no={"tenant": "Acme"},
                check=operands.scalar,
                oracle=_equal,
                mask="equal",
            ),
            Operator(
                name="$ne",
                accepts=_VALUE,
                matches_when="no value equals it, or the field is missing",
                says="{field} is not {operand}",
                example={"status": {"$ne": "draft"}},
                yes={},
                no={"status": ["draft", "old"]},
                check=operands.scalar,
                oracle=_equal,
                mask="equal",
                negated=True,
            ),
            Operator(
                name="$gt",
                accepts=_ORDERED,
                matches_when="a value is greater",
                says="{field} is greater than {operand}",
                example={"year": {"$gt": 2023}},
                yes={"year": 2024},
                no={"year": 2023},
                check=operands.more,
                oracle=_within,
                mask="within",
            ),
            Operator(
                name="$gte",
                accepts=_ORDERED,
                matches_when="a value is greater or equal",
                says="{field} is at least {operand}",
                example={"year": {"$gte": 2024}},
                yes={"year": 2024.0},
                no={"year": "2024"},
                check=operands.at_least,
                oracle=_within,
                mask="within",
            ),
            Operator(
                name="$lt",
                accepts=_ORDERED,
                matches_when="a value is less",
                says="{field} is less than {operand}",
                example={"published": {"$lt": "2024-07-01"}},
                yes={"published": "2024-06-30"},
                no={"published": "2024-06-30T23:59:00-01:00"},
                check=operands.less,
                oracle=_within,
                mask="within",
            ),
            Operator(
                name="$lte",
                accepts=_ORDERED,
                matches_when="a value is less or equal",
                says="{field} is at most {operand}",
                example={"price": {"$lte": 9.5}},
                yes={"price": 9},
                no={"price": None},
                check=operands.at_most,
                oracle=_within,
                mask="within",
            ),
            Operator(
                name="$between",
                accepts="list of two of one kind, [low, high]",
                matches_when="one value lies between them, both included",
                says="{field} is between {operand}",
                example={"year": {"$between": [2020, 2024]}},
                yes={"year": [1999, 2024]},
                no={"year": [1999, 2025]},
                check=operands.between,
                oracle=_within,
                mask="within",
            ),
            Operator(
                name="$in",
                accepts="list of values; an empty one matches nothing",
                matches_when="a value is in the list",
                says="{field} is one of {operand}",
                example={"lang": {"$in": ["en", "zh"]}},
                yes={"lang": "zh"},
                no={"lang": "de"},
                check=operands.scalars,
                oracle=_one_of,
                mask="one_of",
            ),
            Operator(
                name="$nin",
                accepts="list of values; an empty one matches everything",
                matches_when="no value is in the list, or the field is missing",
                says="{field} is none of {operand}",
                example={"lang": {"$nin": ["en", "zh"]}},
                yes={"title": "x"},
                no={"lang": "en"},
                check=operands.scalars,
                oracle=_one_of,
                mask="one_of",
                negated=True,
            ),
            Operator(
                name="$exists",
                accepts="True or False",
                matches_when="the field is there (even if None or empty), or is not",
                says="{field} is {operand}",
                example={"reviewer": {"$exists": True}},
                yes={"reviewer": None},
                no={"author": "kim"},
                check=operands.flag,
                oracle=_exists,
                mask="exists",
            ),
            Operator(
                name="$contains",
                accepts=_VALUE,
                matches_when="an array has it as an element, or a lone text has it inside "
                "(case-sensitive)",
                says="{field} contains {operand}",
                example={"tags": {"$contains": "rag"}},
                yes={"tags": ["rag", "search"]},
                no={"tags": ["storage"]},
                check=operands.scalar,
                oracle=_contains,
                mask="contains",
            ),
            Operator(
                name="$any",
                accepts="list of values; an empty one matches nothing",
                matches_when="an array has at least one of them",
                says="{field} has any of {operand}",
                example={"groups": {"$any": ["staff", "audit"]}},
                yes={"groups": ["audit", "board"]},
                no={"groups": ["board"]},
                check=operands.scalars,
                oracle=_one_of,
                mask="one_of",
            ),
            Operator(
                name="$all",
                accepts="list of at least one value",
                matches_when="an array has every one of them",
                says="{field} has all of {operand}",
                example={"groups": {"$all": ["staff", "audit"]}},
                yes={"groups": ["audit", "board", "staff"]},
                no={"groups": ["staff"]},
                check=operands.some_scalars,
                oracle=_all_of,
                mask="all_of",
            ),
            Operator(
                name="$like",
                accepts="text pattern: `%` any characters, `_` one, `\\` before a literal one",
                matches_when="a whole text fits, case-sensitive",
                says="{field} is like {operand}",
                example={"path": {"$like": "docs/%.md"}},
                yes={"path": "docs/a/b.md"},
                no={"path": "Docs/a.md"},
                check=operands.pattern,
                oracle=_like,
                mask="like",
            ),
            Operator(
                name="$ilike",
                accepts="text pattern, as `$like`",
                matches_when="a whole text fits, ignoring case",
                says="{field} is like {operand}, ignoring case",
                example={"path": {"$ilike": "docs/%.md"}},
                yes={"path": "DOCS/README.MD"},
                no={"path": "src/docs/a.md"},
                check=operands.pattern,
                oracle=_ilike,
                mask="ilike",
            ),
        )
    }
)
"""What may stand under a field (``$not`` may, too)."""

FILTER_OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        row.name: row
        for row in (
            Operator(
                name="$and",
                accepts="list of at least one filter",
                matches_when="every filter matches; fields side by side mean the same",
                says="{operand}",
                example={"$and": [{"year": {"$gt": 2020}}, {"lang": "en"}]},
                yes={"year": 2024, "lang": "en"},
                no={"year": 2024, "lang": "zh"},
            ),
            Operator(
                name="$or",
                accepts="list of at least one filter",
                matches_when="at least one filter matches",
                says="({operand})",
                example={"$or": [{"year": {"$gt": 2020}}, {"lang": "en"}]},
                yes={"year": 2024, "lang": "zh"},
                no={"year": 1999, "lang": "zh"},
            ),
            Operator(
                name="$not",
                accepts="one filter; under a field, one dict of operators",
                matches_when="it does not match, the exact opposite (so a missing field may)",
                says="not ({operand})",
                example={"$not": {"lang": "en", "year": 2024}},
                yes={"lang": "en", "year": 2023},
                no={"lang": "en", "year": 2024},
            ),
            Operator(
                name="$text",
                accepts="text",
                matches_when="the record's text (not its metadata) contains every term of it, as "
                "the store's analyzer makes terms",
                says="the text contains all terms of {operand}",
                example={"$text": "filter language"},
                yes={},
                no={},
                check=operands.words,
            ),
        )
    }
)
"""What may stand beside fields."""

OPERATORS: Mapping[str, Operator] = MappingProxyType({**FIELD_OPERATORS, **FILTER_OPERATORS})


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, if one is near."""
    if len(name) > _LONGEST_GUESSED:  # comparing takes the square of the length
        return None
    folded = {known.casefold(): known for known in names}
    other = _OTHER_DIALECTS.get(name.casefold())
    if other in folded:
        return folded[other]
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=_NEAR)
    if not found:  # "$equals", "$greater": one is the other's beginning
        found = [known for known in folded if len(known) > 1 and name.casefold().startswith(known)]
    return folded[max(found, key=len)] if found else None


def table() -> str:
    """The operators as a Markdown table: the one in ``docs/filters.md``."""
    lines = ["| operator | takes | matches when | example |", "|---|---|---|---|"]
    for row in OPERATORS.values():
        cells = (f"`{row.name}`", row.accepts, row.matches_when, f"`{row.example!r}`")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
