"""Why a record matches a filter, or not."""

from __future__ import annotations

import pytest

from cormorant.filters import explain, parse


def test_one_clause_each():
    clauses = explain(
        parse({"tenant": "acme", "year": {"$gte": 2024}}), {"tenant": "acme", "year": 2023}
    )
    assert [clause.matched for clause in clauses] == [True, False]
    assert clauses[1].says == "year is at least 2024"
    assert clauses[1].note == "the record holds 2023"
    says, matched, note = clauses[0]
    assert (says, matched, note) == ('tenant is "acme"', True, 'the record holds "acme"')


@pytest.mark.parametrize(
    ("source", "metadata", "matched", "note"),
    [
        (
            {"year": 2024},
            {"year": "2024"},
            False,
            'holds "2024", of type text, and the filter asks for number',
        ),
        ({"year": {"$ne": 2024}}, {"year": "2024"}, True, "different types"),
        (
            {"a": {"$gt": "x"}},
            {"a": "2024-01-01"},
            False,
            "of type date, and the filter asks for text",
        ),
        ({"a": {"$like": "1%"}}, {"a": 10}, False, "different types"),
        ({"a": {"$contains": "1"}}, {"a": 10}, False, "different types"),
        (
            {"a": {"$in": [True]}},
            {"a": 1},
            False,
            "of type number, and the filter asks for boolean",
        ),
        ({"yaer": 2024}, {"year": 2024}, False, "no field 'yaer'; it has 'year'"),
        ({"meta.yaer": 1}, {"meta": {"year": 1}}, False, "it has 'meta.year'"),
        ({"zzz": 1}, {"year": 1}, False, "the record has no field 'zzz'"),
        ({"a": 1}, {"a": {"b": 1}}, False, "holds no value that can be compared"),
        ({"a": 9}, {"a": [1, 2, 3, 4, 5, 6, 7]}, False, "holds 1, 2, 3, 4, 5 and 2 more"),
        ({"$not": {"a": 1}}, {"a": 1}, False, "the record holds 1"),
        (
            {"$or": [{"a": 1}, {"b": 1}]},
            {"b": 2},
            False,
            "a is 1: no, the record has no field 'a'; b is 1: no",
        ),
    ],
)
def test_notes(source, metadata, matched, note):
    (clause,) = explain(parse(source), metadata)
    assert clause.matched is matched
    assert note in clause.note


@pytest.mark.parametrize(
    ("source", "metadata"),
    [
        ({"a": {"$contains": "2024"}}, {"a": "2024-01-01"}),
        ({"a": {"$like": "2024%"}}, {"a": "2024-01-01"}),
        ({"a": {"$exists": True}}, {"a": 1}),
        ({"a": {"$in": [1, "x"]}}, {"a": "y"}),
        ({"a": 1}, {"a": ["x", 2]}),
    ],
)
def test_no_talk_of_types_where_they_are_not_to_blame(source, metadata):
    (clause,) = explain(parse(source), metadata)
    assert "different types" not in clause.note


def test_every_record():
    assert explain(parse({}), {"a": 1}) == []


def test_text():
    (clause,) = explain(
        parse({"$text": "x"}), {}, "abc", text_match=lambda words, text: words in text
    )
    assert not clause.matched
    assert "3 characters" in clause.note
