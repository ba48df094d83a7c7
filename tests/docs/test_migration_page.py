"""Every name of docs/migration.md is where the page says, and at work in one of its blocks.

The blocks themselves run in test_code_blocks.py.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]
NAMES = [(row[0].split("`")[-2], row[2].strip("`")) for row in ROWS]


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 28
    assert all(len(row) == 4 and all(row) for row in ROWS)


@pytest.mark.parametrize(("name", "module"), NAMES)
def test_the_name_is_in_its_new_place(name: str, module: str) -> None:
    assert hasattr(import_module(module), name)
    assert name in import_module(module).__all__


@pytest.mark.parametrize("name", [name for name, _ in NAMES])
def test_the_name_is_used_beyond_its_import(name: str) -> None:
    assert len(re.findall(rf"\b{name}\b", CODE)) >= 2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_old_place_is_one_of_theirs(row: list[str]) -> None:
    assert re.fullmatch(r"`langchain_(classic|community)(\.[a-z_]+)+`", row[1])
