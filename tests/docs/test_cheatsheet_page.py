"""docs/cheatsheet.md has a row for every retriever and compressor there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cormorant.langchain import document_transformers, retrievers
from cormorant.langchain.retrievers import document_compressors

PAGE = (Path(__file__).parents[2] / "docs" / "cheatsheet.md").read_text(encoding="utf-8")
(TABLE,) = re.findall(r"<!-- cost: begin -->\n(.*?)<!-- cost: end -->", PAGE, re.DOTALL)
ROWS = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("| `")]

# Parts of others, or the same under another name.
NOT_TAKEN = {
    "CohereRerank",
    "Compressor",
    "DocumentCompressorPipeline",
    "HostedReranker",
    "HuggingFaceCrossEncoder",
    "RerankError",
    "Reranker",
    "estimate_tokens",
    "ContextualCompressionRetriever",
    "HypotheticalDocumentEmbedder",
    "MultiVectorRetriever",
    "Retriever",
    "SentenceSplitter",
    "with_deadline",
}
NAMES = {
    *retrievers.__all__,
    *document_compressors.__all__,
    *document_transformers.__all__,
}


@pytest.mark.parametrize("name", sorted(NAMES - NOT_TAKEN))
def test_it_has_a_row(name: str) -> None:
    assert [row for row in ROWS if re.match(rf"`{name}`", row[0])]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_says_what_for_and_at_which_cost(row: list[str]) -> None:
    name, use, models, cost = row
    assert use
    assert models == "none" or re.fullmatch(r"([a-z-]+ [\d.]+(, )?)+", models)
    assert float(cost) > 0
    found = re.match(r"`(\w+)", name)
    assert found
    assert found[1] in NAMES | {"as_retriever"}


def test_every_name_of_the_first_table_exists() -> None:
    first = PAGE.split("## What each costs", maxsplit=1)[0].split("| what is wrong")[1]
    names = re.findall(r"`([A-Z]\w+)`", first)
    assert len(names) > 10
    assert set(names) <= NAMES
