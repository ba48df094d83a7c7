"""docs/evaluate.md has a row for every metric, and says the same of it as the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cormorant.evaluate import METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "evaluate.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_its_row(name):
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2] == METRICS[name].cutoff
    assert cells[1]
