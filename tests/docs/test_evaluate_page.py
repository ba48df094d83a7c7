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


def test_the_quick_start_takes_ten_lines():
    """From a store that is there to a tuned and gated one; the last paragraph of the block."""
    block = PAGE.split("```python\n")[1].split("```")[0].strip()
    lines = block.split("\n\n")[-1].splitlines()
    print("\n".join(lines))
    assert all(name in block for name in ("tune(", "apply(", "Gate.parse("))
    assert len(lines) <= 10
