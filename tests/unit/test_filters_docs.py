"""docs/filters.md says what the operator table says."""

from __future__ import annotations

import ast
from pathlib import Path

from cormorant import defaults
from cormorant.filters import MAX_CLAUSES, OPERATORS, parse, table

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"


def test_the_page_holds_the_table():
    assert table() in PAGE.read_text(encoding="utf-8"), f"Paste into {PAGE}:\n{table()}"


def test_the_tables_examples_are_filters():
    for line in table().splitlines()[2:]:
        example = line.rsplit("`", 2)[1]
        parse(ast.literal_eval(example))
    assert table().count("\n") == len(OPERATORS) + 2


def test_the_page_names_every_operator_and_the_limits():
    page = PAGE.read_text(encoding="utf-8")
    for name in OPERATORS:
        assert f"`{name}`" in page
    assert f"{defaults.MAX_FILTER_DEPTH} levels" in page
    assert f"{MAX_CLAUSES:,} clauses" in page
