"""docs/retrievers.md holds the table that benchmarks/retrievers_quality.py writes."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "retrievers.md").read_text(encoding="utf-8")


def test_the_quality_table_is_there_between_its_marks() -> None:
    (table,) = re.findall(r"<!-- quality: begin -->\n(.*?)<!-- quality: end -->", PAGE, re.DOTALL)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 8
    for _, minilm, use, cost in rows[2:]:
        assert 0 < float(minilm) < 1
        assert 0 < float(use) < 1
        assert float(cost) > 0
