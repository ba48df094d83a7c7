"""The filter language, one record at a time."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from types import MappingProxyType

import numpy as np
import pytest

from cormorant import defaults
from cormorant.errors import FilterError, UsageError
from cormorant.filters import (
    EVERYTHING,
    FIELD_OPERATORS,
    FILTER_OPERATORS,
    MAX_CLAUSES,
    OPERATORS,
    And,
    Compare,
    Filter,
    conjoin,
    describe,
    escape_field,
    parse,
)
from cormorant.filters.like import compile_like, literal_prefix
from cormorant.filters.operators import nearest
from cormorant.filters.values import instant_of_text
from cormorant.index.metadata import Columns
from cormorant.index.metadata.masks import MASKS


def matches(source, metadata):
    """By the oracle, after checking that the column mask agrees."""
    flt = parse(source)
    verdict = flt.matches(metadata)
    columns = Columns.empty().append(Columns.encode([{}, metadata]))
    assert columns.mask(flt).tolist() == [flt.matches({}), verdict]
    frozen = Columns.from_arrays(columns.to_arrays())
    assert frozen.mask(flt).tolist() == [flt.matches({}), verdict]
    return verdict


@pytest.mark.parametrize("row", [r for r in OPERATORS.values() if r.name != "$text"], ids=str)
def test_every_operators_example(row):
    assert matches(row.example, row.yes)
    assert not matches(row.example, row.no)
    assert describe(parse(row.example))


def test_the_table_names_all_there_is():
    wanted = (
        "$eq $ne $gt $gte $lt $lte $in $nin $between $and $or $not $exists $contains $any $all "
        "$like $ilike $text"
    )
    assert set(OPERATORS) == set(wanted.split())
    assert {row.mask for row in FIELD_OPERATORS.values()} == set(MASKS)
    for row in FIELD_OPERATORS.values():
        assert row.check is not None
        assert row.oracle is not None
        assert "{field}" in row.says


@pytest.mark.parametrize(
    ("source", "metadata", "expected"),
    [
        # implicit equality and conjunction
        ({}, {"a": 1}, True),
        ({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, True),
        ({"a": 1, "b": "x"}, {"a": 1, "b": "y"}, False),
        ({"a": {"$gt": 1, "$lt": 3}}, {"a": 2}, True),
        ({"a": {"$gt": 1, "$lt": 3}}, {"a": 3}, False),
        # True is not 1, 1 is 1.0
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": {"$in": [0, 1]}}, {"a": True}, False),
        ({"a": 0.0}, {"a": -0.0}, True),
        # exact beyond 2**53 and beyond 64 bits
        ({"a": 2**53}, {"a": 2**53 + 1}, False),
        ({"a": float(2**53)}, {"a": 2**53 + 1}, False),
        ({"a": {"$gt": float(2**53)}}, {"a": 2**53 + 1}, True),
        ({"a": 2**80 + 1}, {"a": 2**80 + 1}, True),
        ({"a": {"$lt": 2**80 + 1}}, {"a": 2**80}, True),
        ({"a": {"$lt": -(2**80)}}, {"a": -(2**81)}, True),
        ({"a": {"$gt": 10**400}}, {"a": 1e308}, False),
        ({"a": {"$lt": 10**400}}, {"a": 1e308}, True),
        ({"a": {"$lt": float("inf")}}, {"a": 10**400}, True),
        ({"a": 0.1}, {"a": float(np.float32(0.1))}, False),
        # missing
        ({"a": {"$ne": 1}}, {}, True),
        ({"a": {"$nin": [1]}}, {}, True),
        ({"a": {"$exists": False}}, {}, True),
        ({"a": {"$exists": True}}, {}, False),
        ({"a": {"$eq": None}}, {}, False),
        ({"a": {"$in": [None]}}, {}, False),
        ({"a": {"$like": "%"}}, {}, False),
        # None is a value
        ({"a": None}, {"a": None}, True),
        ({"a": {"$ne": None}}, {"a": None}, False),
        ({"a": {"$ne": 1}}, {"a": None}, True),
        ({"a": {"$exists": True}}, {"a": None}, True),
        ({"a": {"$lt": 1}}, {"a": None}, False),
        # arrays
        ({"a": 2}, {"a": [1, 2]}, True),
        ({"a": {"$ne": 2}}, {"a": [1, 2]}, False),
        ({"a": {"$gt": 1, "$lt": 0}}, {"a": [2, -1]}, True),
        ({"a": {"$between": [0, 1]}}, {"a": [2, -1]}, False),
        ({"a": {"$all": [1, 2.0]}}, {"a": [2, 1, 3]}, True),
        ({"a": {"$all": ["x"]}}, {"a": "x"}, True),
        ({"a": {"$any": ["x", 1]}}, {"a": "x"}, True),
        ({"a": {"$in": []}}, {"a": 1}, False),
        ({"a": {"$nin": []}}, {"a": 1}, True),
        ({"a": {"$any": []}}, {"a": [1]}, False),
        ({"a": 3}, {"a": [[1], [2, [3]]]}, True),
        ({"a": {"$exists": True}}, {"a": []}, True),
        ({"a": {"$ne": 1}}, {"a": []}, True),
        # nested
        ({"a.b": 1}, {"a": {"b": 1}}, True),
        ({"a.b": 1}, {"a.b": 1}, True),
        ({"a.b": 1}, {"a": [{"b": 2}, {"b": 1}]}, True),
        ({"a.b": {"$ne": 1}}, {"a": [{"b": 2}, {"b": 1}]}, False),
        ({"a.b.c": 1}, {"a.b": {"c": 1}}, True),
        ({"a.b.c": 1}, {"a": {"b.c": 1}}, True),
        ({"a.b": {"$exists": True}}, {"a": {"b": {}}}, True),
        ({"a": {"$exists": True}}, {"a": {"b": 1}}, True),
        ({"a.c": {"$exists": True}}, {"a": {"b": 1}}, False),
        ({"a.0": 1}, {"a": [1]}, False),
        ({"": 1}, {"": 1}, True),
        ({"a.": 1}, {"a": {"": 1}}, True),
        # names with a dollar
        ({"\\$ref": 1}, {"$ref": 1}, True),
        ({"\\\\$ref": 1}, {"\\$ref": 1}, True),
        ({"a.$ref": 1}, {"a": {"$ref": 1}}, True),
        ({"\\n": 1}, {"\\n": 1}, True),
        # dates
        ({"d": date(2024, 1, 1)}, {"d": "2024-01-01"}, True),
        ({"d": "2024-01-01"}, {"d": "2024-01-01T00:00:00Z"}, True),
        ({"d": "2024-01-01"}, {"d": datetime(2024, 1, 1, tzinfo=UTC)}, True),
        ({"d": "2024-01-01T08:00:00+08:00"}, {"d": date(2024, 1, 1)}, True),
        ({"d": {"$gt": "2024-01-01"}}, {"d": "2024-01-01T00:00:00.000001"}, True),
        ({"d": {"$lt": "2024-01-01"}}, {"d": "2023-12-31 23:59"}, True),
        ({"d": {"$lt": "2024-01-01"}}, {"d": "2023"}, False),
        ({"d": {"$lt": "zz"}}, {"d": "2023-12-31"}, False),
        ({"d": {"$gte": datetime(2024, 1, 1)}}, {"d": "2024-01-01"}, True),
        ({"d": "2024-02-30"}, {"d": "2024-02-30"}, True),
        ({"d": {"$like": "2024-%"}}, {"d": "2024-03-01"}, True),
        ({"d": {"$like": "2024-%"}}, {"d": date(2024, 3, 1)}, False),
        # text
        ({"a": {"$contains": "ell"}}, {"a": "hello"}, True),
        ({"a": {"$contains": "ell"}}, {"a": ["hello"]}, False),
        ({"a": {"$contains": "hello"}}, {"a": ["hello"]}, True),
        ({"a": {"$contains": ""}}, {"a": "x"}, True),
        ({"a": {"$contains": 5}}, {"a": [4, 5]}, True),
        ({"a": {"$contains": "5"}}, {"a": 5}, False),
        ({"a": {"$contains": "2024"}}, {"a": "2024-01-01"}, True),
        ({"a": {"$contains": "2024-01-01"}}, {"a": ["2024-01-01T00:00Z"]}, True),
        ({"a": {"$contains": "鸬"}}, {"a": "鸬鹚"}, True),
        ({"a": {"$gt": "Z"}}, {"a": "a"}, True),
        ({"a": {"$gt": "\uffff"}}, {"a": "🐟"}, True),
        ({"a": {"$ilike": "É%"}}, {"a": "école"}, True),
        # logic
        ({"$not": {"a": 1}}, {}, True),
        ({"a": {"$not": {"$gt": 1, "$lt": 3}}}, {"a": 2}, False),
        ({"a": {"$not": {"$gt": 1, "$lt": 3}}}, {"a": 3}, True),
        ({"a": {"$not": {"$not": {"$eq": 1}}}}, {"a": 1}, True),
        ({"$or": [{"a": 1}, {"b": 1}], "c": 1}, {"b": 1, "c": 1}, True),
        ({"$or": [{"a": 1}, {"b": 1}], "c": 1}, {"b": 1}, False),
    ],
)
def test_semantics(source, metadata, expected):
    assert matches(source, metadata) is expected


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ({"a": {"$gtt": 1}}, ["'$gtt'", "$gt?", "$between"]),
        ({"a": {"$equals": 1}}, ["$eq?"]),
        ({"a": {"gte": 1}}, ["$gte?"]),
        ({"a": {"$notin": [1]}}, ["$nin?"]),
        ({"$nor": [{}]}, ["$or?", "$and, $or, $not, $text"]),
        ({"$gt": 3}, ["$gt stands under a field"]),
        ({"a": {"$or": [{"$gt": 1}]}}, ["beside fields"]),
        ({"a": {"b": 1}}, ["'a.b'"]),
        ({"a": {}}, ["empty dict"]),
        ({"$and": []}, ["$and", "empty"]),
        ({"$or": []}, ["$or", "empty"]),
        ({"$or": [{}]}, ["$or[0]", "empty dict"]),
        ({"$or": {"a": 1}}, ["list of filters", "dict"]),
        ({"$not": {}}, ["empty dict"]),
        ({"$not": [{"a": 1}]}, ["$not", "list"]),
        ({"a": {"$not": 3}}, ["$ne"]),
        ({"a": [1, 2]}, ["$in", "$all"]),
        ({"a": object()}, ["object"]),
        ({"a": b"x"}, ["bytes"]),
        ({"a": float("nan")}, ["NaN"]),
        ({"a": {"$in": [1, float("nan")]}}, ["'a'[1]", "NaN"]),
        ({"a": np.float32("nan")}, ["NaN"]),
        ({"a": "\ud800"}, ["surrogate"]),
        ({"\ud800": 1}, ["surrogate"]),
        ({"a": {"$in": ["\udfff"]}}, ["surrogate"]),
        ({"a": {"$in": "abc"}}, ["list of values", "Wrap it in a list"]),
        ({"a": {"$in": {"b": 1}}}, ["list of values"]),
        ({"a": {"$in": (i for i in [1])}}, ["generator"]),
        ({"a": {"$in": [[1]]}}, ["list"]),
        ({"a": {"$all": []}}, ["at least one"]),
        ({"a": {"$gt": None}}, ["None", "$eq"]),
        ({"a": {"$lt": True}}, ["True", "$eq"]),
        ({"a": {"$between": [1]}}, ["two values", "got 1"]),
        ({"a": {"$between": [1, "x"]}}, ["one kind"]),
        ({"a": {"$between": [3, 1]}}, ["lower bound first"]),
        ({"a": {"$between": 3}}, ["[low, high]"]),
        ({"a": {"$exists": 1}}, ["True or False"]),
        ({"a": {"$exists": "yes"}}, ["True or False"]),
        ({"a": {"$like": 3}}, ["pattern"]),
        ({"a": {"$like": "x\\"}}, ["backslash"]),
        ({"a": {"$like": "\\x"}}, ["backslash"]),
        ({"$text": ""}, ["words"]),
        ({"$text": ["a"]}, ["words", "list"]),
        ({1: 2}, ["strings", "int"]),
        ([], ["dict", "list"]),
        (None, ["dict", "NoneType"]),
        ("tenant", ["dict", "str"]),
        ({"a": 10**5000, "b": {"$like": 10**5000}}, ["bits"]),
    ],
)
def test_refused_with_what_is_valid(source, parts):
    with pytest.raises(FilterError) as caught:
        parse(source)
    assert isinstance(caught.value, UsageError)
    for part in parts:
        assert part in str(caught.value)


def nested(depth, build):
    source = {"a": {"$eq": 1}}
    for _ in range(depth - 1):
        source = build(source)
    return source


def test_depth_is_limited_but_not_below_the_limit():
    for build in (lambda s: {"$not": s}, lambda s: {"$and": [s, {"b": 1}]}):
        assert parse(nested(defaults.MAX_FILTER_DEPTH, build))
        with pytest.raises(FilterError, match="nested more than"):
            parse(nested(defaults.MAX_FILTER_DEPTH + 1, build))
    under_a_field = {"$eq": 1}
    for _ in range(defaults.MAX_FILTER_DEPTH):
        under_a_field = {"$not": under_a_field}
    with pytest.raises(FilterError, match="nested more than"):
        parse({"a": under_a_field})


def test_a_filter_that_holds_itself_and_one_that_doubles_are_refused():
    endless = {}
    endless["$not"] = endless
    with pytest.raises(FilterError, match="nested more than"):
        parse(endless)
    doubling = {"a": 1}
    for _ in range(defaults.MAX_FILTER_DEPTH - 1):
        doubling = {"$or": [doubling, doubling]}
    with pytest.raises(FilterError, match=f"more than {MAX_CLAUSES} clauses"):
        parse(doubling)


def test_a_long_list_of_values_is_one_clause():
    flt = parse({"a": {"$in": range(MAX_CLAUSES * 3)}})
    assert flt.matches({"a": MAX_CLAUSES * 2})


def test_later_changes_do_not_reach_a_parsed_filter():
    inner = {"$in": ["x"]}
    parts = [{"a": inner}]
    source = {"$and": parts}
    flt = parse(source)
    before = hash(flt), flt.to_dict()
    inner["$in"].append("y")
    inner["$eq"] = "y"
    parts.append({"b": 1})
    source.clear()
    assert (hash(flt), flt.to_dict()) == before
    assert not flt.matches({"a": "y"})
    written = flt.to_dict()
    written["a"]["$in"].append("z")
    assert (hash(flt), flt.to_dict()) == before


class Shifty(dict):
    """Answers differently each time, by whatever way it is asked."""

    asked = 0

    def items(self):
        Shifty.asked += 1
        return {"tenant": "other"}.items()

    def __iter__(self):
        return iter(["tenant"])

    def __getitem__(self, key):
        return "other"

    def get(self, key, default=None):
        return "other"


class ShiftyList(list):
    def __iter__(self):
        return iter(["other"])


class ShiftyText(str):
    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __str__(self):
        return "other"


class ShiftyNumber(int):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __int__(self):
        return 99


def test_hostile_subclasses_are_read_once_and_by_their_real_content():
    flt = parse(Shifty(tenant="acme"))
    assert flt == parse({"tenant": "acme"})
    assert parse({"tenant": {"$in": ShiftyList(["acme"])}}) == parse({"tenant": {"$in": ["acme"]}})
    assert parse({"$or": ShiftyList([{"a": 1}])}) == parse({"$or": [{"a": 1}]})
    text = parse({"tenant": ShiftyText("acme")})
    assert text == parse({"tenant": "acme"})
    assert not text.matches({"tenant": "other"})
    assert type(text.to_dict()["tenant"]["$eq"]) is str
    number = parse({"n": {"$gte": ShiftyNumber(5)}})
    assert number == parse({"n": {"$gte": 5}})
    assert parse(OrderedDict(a=1)) == parse(MappingProxyType({"a": 1})) == parse({"a": 1})


def test_frozen():
    flt = parse({"a": 1})
    with pytest.raises(AttributeError):
        flt.field = "b"
    with pytest.raises(TypeError):
        flt.parts = ()


def test_numpy_and_enum_operands():
    class Colour(StrEnum):
        RED = "red"

    class Level(IntEnum):
        LOW = 1

    assert parse({"a": np.int64(3)}) == parse({"a": 3})
    assert parse({"a": np.bool_(True)}) == parse({"a": True})
    assert parse({"a": {"$in": np.array([1, 2])}}) == parse({"a": {"$in": [1, 2]}})
    assert parse({"a": np.datetime64("2024-01-01", "ns")}).matches({"a": "2024-01-01"})
    assert parse({"a": Colour.RED}).matches({"a": "red"})
    assert parse({"a": Level.LOW}).matches({"a": 1})
    with pytest.raises(FilterError):
        parse({"a": np.datetime64("NaT")})
    with pytest.raises(FilterError):
        parse({"a": np.timedelta64(5, "ns")})


def test_conjoin():
    a, b, c = parse({"a": 1}), parse({"b": 1, "c": 1}), parse({"$or": [{"d": 1}, {"e": 1}]})
    both = conjoin(a, b, None, c)
    assert isinstance(both, And)
    assert len(both.parts) == 4
    assert conjoin(a) is a
    assert conjoin() == conjoin(None) == EVERYTHING
    assert conjoin(a, EVERYTHING) == a
    with pytest.raises(FilterError, match="parse"):
        conjoin(a, {"b": 1})


def test_parse_of_parsed_is_itself():
    flt = parse({"a": 1})
    assert parse(flt) is flt
    assert isinstance(flt, Filter)
    assert isinstance(flt, Compare)


def test_fields_and_text_are_known():
    flt = parse({"a.b": 1, "$or": [{"\\$c": 1}, {"$not": {"d": 1}}]})
    assert flt.fields == {"a.b", "$c", "d"}
    assert not flt.uses_text
    assert parse({"$or": [{"a": 1}, {"$not": {"$text": "x"}}]}).uses_text


def test_text_needs_to_be_told_how():
    flt = parse({"$text": "red fish", "a": 1})

    def words_in(words, text):
        return set(words.split()) <= set(text.split())

    assert flt.matches({"a": 1}, "one red fish", text_match=words_in)
    assert not flt.matches({"a": 1}, "one fish", text_match=words_in)
    assert not flt.matches({"a": 2}, "red fish", text_match=words_in)
    with pytest.raises(FilterError, match="text_match"):
        flt.matches({"a": 1}, "red fish")
    with pytest.raises(FilterError, match="text_mask"):
        Columns.empty().mask(flt)


def test_sentences():
    source = {
        "tenant": "acme",
        "year": {"$between": [2020, 2024]},
        "$or": [{"tags": {"$all": list("abcdefg")}}, {"$not": {"d": {"$gt": date(2024, 1, 1)}}}],
        "x": {"$exists": False},
        "$text": "鸬鹚",
    }
    assert describe(parse(source)) == (
        'tenant is "acme" and year is between 2020 and 2024 and '
        '(tags has all of ["a", "b", "c", "d", "e", and 2 more] or not (d is greater than '
        '2024-01-01)) and x is missing and the text contains all terms of "鸬鹚"'
    )
    assert describe(EVERYTHING) == "every record"
    assert str(parse({"a": {"$ilike": "x%"}})) == 'a is like "x%", ignoring case'
    assert len(describe(parse({"a": "x" * 10_000}))) < 200
    assert "bits" in describe(parse({"a": 10**5000}))


def test_escape_field():
    for name in ("$a", "\\$a", "\\\\$a", "a", "\\a", "a.$b", "", "$"):
        assert parse({escape_field(name): 1}).fields == {name}


@pytest.mark.parametrize(
    ("text", "is_date"),
    [
        ("2024-01-05", True),
        ("2024-01-05T09:30", True),
        ("2024-01-05t09:30:00z", True),
        ("2024-01-05 09:30:00.123456789+08:00", True),
        ("2024-01-05T09:30:00-0330", True),
        ("2024-01-05T09:30:00+08", True),
        ("0001-01-01T00:00:00+23:59", True),
        ("9999-12-31T23:59:59-23:59", True),
        ("20240105", False),
        ("2024-1-5", False),
        ("2024-13-01", False),
        ("2024-02-30", False),
        ("2024-01-05T24:00", False),
        ("2024-01-05T09:30:60", False),
        ("2024-01-05T09:30.5", False),
        ("2024-01-05T", False),
        ("2024-01-05T09", False),
        (" 2024-01-05", False),
        ("2024-01-05\n", False),
        ("２０２４-01-05", False),
        ("0000-01-01", False),
        ("2024-W01-1", False),
        ("12:30", False),
        ("", False),
    ],
)
def test_which_strings_are_dates(text, is_date):
    assert (instant_of_text(text) is not None) is is_date


def test_instants_agree_with_datetime():
    for zone in (
        None,
        UTC,
        timezone(timedelta(hours=-9, minutes=-30)),
        timezone(timedelta(hours=14)),
    ):
        moment = datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=zone)
        assert parse({"d": moment}).matches({"d": moment.isoformat()})
        assert not parse({"d": {"$lt": moment}}).matches({"d": moment.isoformat()})
        assert parse({"d": {"$lt": moment + timedelta(microseconds=1)}}).matches(
            {"d": moment.isoformat(sep=" ")}
        )


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("_", "", False),
        ("_", "🐟", True),
        ("a%c", "abbc", True),
        ("a%c", "abcb", False),
        ("%ab%ab%", "abab", True),
        ("%ab%ab%", "aab", False),
        ("%aab", "aaab", True),
        ("a_%_c", "abc", False),
        ("a_%_c", "abbc", True),
        ("100\\%", "100%", True),
        ("100\\%", "1000", False),
        ("a\\_b", "a_b", True),
        ("a\\\\b", "a\\b", True),
        ("a.c", "abc", False),
        ("%\n%", "x\ny", True),
        ("a%", "A", False),
    ],
)
def test_like(pattern, text, expected):
    assert matches({"s": {"$like": pattern}}, {"s": text}) is expected


def test_like_does_not_blow_up():
    # With plain backtracking neither line would ever come to an end.
    assert compile_like("%a" * 40 + "%b").fullmatch("a" * 20_000) is None
    assert compile_like("_%" * 40 + "b", ignore_case=True).fullmatch("a" * 5_000) is None


def test_literal_prefix():
    assert literal_prefix("docs/%.md") == "docs/"
    assert literal_prefix("a\\%b_c") == "a%b"
    assert literal_prefix("%x") == ""


def test_nearest():
    assert nearest("$GTE", OPERATORS) == "$gte"
    assert nearest("$contain", OPERATORS) == "$contains"
    assert nearest("$regex", FIELD_OPERATORS) == "$like"
    assert nearest("$regex", FILTER_OPERATORS) is None
    assert nearest("$frobnicate", OPERATORS) is None
    assert nearest("$orr", FILTER_OPERATORS) == "$or"
