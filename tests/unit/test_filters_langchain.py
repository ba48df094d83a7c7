"""LangChain's filter forms become Cormorant's."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)

from cormorant.errors import FilterError
from cormorant.filters import parse
from cormorant.langchain.filters import (
    CormorantTranslator,
    document_predicate,
    from_structured_query,
)
from cormorant.model import Record


@pytest.mark.parametrize(
    ("comparator", "value", "yes", "no"),
    [
        (Comparator.EQ, 1, 1, 2),
        (Comparator.NE, 1, 2, 1),
        (Comparator.GT, 1, 2, 1),
        (Comparator.GTE, 1, 1, 0),
        (Comparator.LT, 1, 0, 1),
        (Comparator.LTE, 1, 1, 2),
        (Comparator.CONTAIN, "x", ["x", "y"], ["y"]),
        (Comparator.LIKE, "%x%", "axb", "ab"),
        (Comparator.IN, ["x", "y"], "x", "z"),
        (Comparator.NIN, ["x", "y"], "z", "x"),
    ],
)
def test_every_comparator(comparator, value, yes, no):
    flt = parse(from_structured_query(Comparison(comparator, "f", value)))
    assert flt.matches({"f": yes})
    assert not flt.matches({"f": no})


def test_no_comparator_or_operator_is_left_out():
    translator = CormorantTranslator()
    assert set(translator.allowed_comparators) == set(Comparator)
    assert set(translator.allowed_operators) == set(Operator)


def test_operations_nest():
    a, b = Comparison(Comparator.EQ, "a", 1), Comparison(Comparator.LT, "b", 5)
    directive = Operation(
        Operator.AND,
        [
            a,
            Operation(
                Operator.NOT, [Operation(Operator.OR, [b, Comparison(Comparator.EQ, "c", "x")])]
            ),
        ],
    )
    expected = {
        "$and": [{"a": {"$eq": 1}}, {"$not": {"$or": [{"b": {"$lt": 5}}, {"c": {"$eq": "x"}}]}}]
    }
    assert from_structured_query(directive) == expected
    query = StructuredQuery(query="fish", filter=directive, limit=3)
    assert from_structured_query(query) == expected
    assert CormorantTranslator().visit_structured_query(query) == (
        "fish",
        {"filter": expected, "k": 3},
    )


def test_no_filter():
    query = StructuredQuery(query="fish", filter=None)
    assert from_structured_query(query) == {}
    assert CormorantTranslator().visit_structured_query(query) == ("fish", {})


def test_typed_dates():
    made = from_structured_query(
        Comparison(Comparator.GTE, "at", {"date": "2024-01-05", "type": "date"})
    )
    assert parse(made).matches({"at": "2024-01-05T00:00:00Z"})
    assert not parse(made).matches({"at": "2024-01-04"})
    made = from_structured_query(
        Comparison(
            Comparator.IN, "at", [{"datetime": "2024-01-05T08:00:00+08:00", "type": "datetime"}]
        )
    )
    assert parse(made).matches({"at": "2024-01-05"})
    with pytest.raises(FilterError, match="ISO 8601"):
        from_structured_query(Comparison(Comparator.EQ, "at", {"date": "May", "type": "date"}))


def test_a_name_with_a_dollar_is_a_field():
    made = from_structured_query(Comparison(Comparator.EQ, "$or", 1))
    assert parse(made).matches({"$or": 1})


@pytest.mark.parametrize(
    "directive",
    [
        Operation(Operator.AND, []),
        Operation(Operator.NOT, []),
        Operation(
            Operator.NOT, [Comparison(Comparator.EQ, "a", 1), Comparison(Comparator.EQ, "b", 1)]
        ),
        Comparison(Comparator.GT, "a", True),
        Comparison(Comparator.IN, "a", "x"),
        Comparison(Comparator.EQ, "a", ["x"]),
        Comparison(Comparator.EQ, "a", {"x": 1}),
    ],
)
def test_what_makes_no_filter_is_refused(directive):
    with pytest.raises(FilterError):
        from_structured_query(directive)


def test_something_else_is_refused():
    with pytest.raises(FilterError, match="StructuredQuery"):
        from_structured_query({"a": 1})


def test_document_predicate():
    seen = []

    def accepts(document):
        seen.append((document.id, document.page_content, dict(document.metadata)))
        document.metadata["tags"].append("changed")
        document.metadata["new"] = 1
        return document.metadata.get("lang") == "en"

    predicate = document_predicate(accepts)
    record = Record(id="a", text="hello", metadata={"lang": "en", "tags": ["x"], "d": {"e": [1]}})
    assert predicate(record) is True
    assert predicate(Record(id="b", metadata={"lang": "zh", "tags": []})) is False
    assert seen[0][:2] == ("a", "hello")
    assert record.metadata == {"lang": "en", "tags": ["x"], "d": {"e": [1]}}


@pytest.mark.parametrize(
    ("answer", "expected"), [(None, False), (0, False), ("x", True), (np.bool_(True), True)]
)
def test_truth_is_enough(answer, expected):
    assert document_predicate(lambda _: answer)(Record(id="a")) is expected


def test_what_cannot_say_no_is_refused():
    async def accepts(document):
        return False

    class Accepts:
        async def __call__(self, document):
            return False

    for wrong in (accepts, Accepts(), {"a": 1}, None):
        with pytest.raises(FilterError):
            document_predicate(wrong)
