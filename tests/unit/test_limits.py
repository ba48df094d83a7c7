"""Questions and filters that would take too long are refused before any work is done."""

from __future__ import annotations

import pytest

from cormorant import Query, defaults
from cormorant.errors import FilterError, QueryError
from cormorant.filters import compile_like, parse
from cormorant.filters.operators import nearest

ROOM = defaults.MAX_QUERY_BYTES


@pytest.mark.parametrize("letter", ["a", "é", "中", "🐟", "\ud800"])
@pytest.mark.parametrize("mode", ["text", "hybrid"])
def test_a_question_has_a_largest_size(letter, mode):
    most = ROOM // len(letter.encode("utf-8", "surrogatepass"))
    asked = {"vector": [1.0]} if mode == "hybrid" else {}
    assert Query(text=letter * most, mode=mode, **asked).text == letter * most
    with pytest.raises(QueryError, match="at most 65,536 bytes in UTF-8") as caught:
        Query(text=letter * (most + 1), mode=mode, **asked)
    assert len(str(caught.value)) < 400


def test_what_the_text_leg_does_not_read_may_be_longer():
    assert Query(text="a" * (ROOM + 1), vector=[1.0], mode="vector").resolved_mode == "vector"


@pytest.mark.parametrize("letter", ["a", "é", "中", "🐟"])
def test_the_words_of_a_filter_have_a_largest_size(letter):
    most = ROOM // len(letter.encode())
    assert parse({"$text": letter * most}).uses_text
    with pytest.raises(FilterError, match=r"\$text.*at most 65,536 bytes") as caught:
        parse({"$or": [{"a": 1}, {"$text": letter * (most + 1)}]})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("operator", ["$like", "$ilike"])
@pytest.mark.parametrize(
    ("fits", "too_much", "says"),
    [
        ("a" * defaults.MAX_PATTERN_LENGTH, "a" * (defaults.MAX_PATTERN_LENGTH + 1), "512 char"),
        (
            "%_" * (defaults.MAX_PATTERN_WILDCARDS // 2),
            "%_" * (defaults.MAX_PATTERN_WILDCARDS // 2) + "%",
            "64 wildcards",
        ),
    ],
)
def test_patterns_have_a_largest_size(operator, fits, too_much, says):
    assert parse({"a": {operator: fits}}).fields == {"a"}
    with pytest.raises(FilterError, match=f"at most {says}") as caught:
        parse({"a": {operator: too_much}})
    assert len(str(caught.value)) < 400


def test_a_pattern_that_is_refused_for_another_fault_is_not_shown_whole():
    with pytest.raises(FilterError, match="backslash") as caught:
        parse({"a": {"$like": "x" * 500 + "\\"}})
    assert len(str(caught.value)) < 400


def test_escaped_wildcards_are_no_wildcards():
    assert parse({"a": {"$like": "\\%" * 100}}).matches({"a": "%" * 100})


def test_long_names_are_not_compared_for_a_likely_one():
    assert nearest("tenent" * 10, ["tenant" * 10]) == "tenant" * 10
    names = ["x" * 200_000 + str(i) for i in range(2_000)]
    assert nearest("x" * 200_000, names) is None


def test_the_hardest_pattern_ends():
    hardest = "%" + "_a" * 63
    hardest += "a" * (defaults.MAX_PATTERN_LENGTH - len(hardest) - 1) + "b"
    assert parse({"a": {"$ilike": hardest}})
    assert compile_like(hardest, ignore_case=True).fullmatch("a" * 20_000) is None
