"""The page on the doctor says what its table says."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from cormorant.ingest.doctor import CHECKS, Pipeline

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_every_check_has_its_row_in_its_table(check):
    row = f"| `{check.name}` | {check.question} | {check.severity} | {check.remedy} |"
    assert row in PAGE.splitlines()
    assert (PAGE.index(row) < PAGE.index("## The records")) == check.checklist


def test_the_example_describes_everything_that_can_be_described():
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    described = tomllib.loads(example)["pipeline"]
    assert set(described) == {each.name for each in dataclasses.fields(Pipeline)}
    Pipeline.of(described)
