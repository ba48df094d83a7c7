"""Chunks are parts of their text at the places they name, no larger than asked, nothing torn."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from cormorant.errors import ConfigError
from cormorant.ingest.chunkers import (
    ChunkingWarning,
    FixedChunker,
    HierarchicalChunker,
    RecursiveChunker,
    SemanticChunker,
    StructuralChunker,
)

PARTS = st.sampled_from(
    [
        "fish",
        "Boat. ",
        "\n",
        "\n\n",
        "# Head\n",
        "```\n# no head\n```\n",
        "鸬鹚捕鱼。",
        "渔船，",
        " ",
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "🇨🇳🇩🇪",
        "👍🏽",
        "각",
        "x" * 30,
        "\r\n",
        "\u3000",
        "क्षि",
        "def f():\n",
        "!?",
    ]
)
TEXTS = st.lists(PARTS, max_size=60).map("".join)
KINDS = st.sampled_from(["markdown", "text", "code"])


def chunkers(size, overlap):
    return [
        RecursiveChunker(size, overlap),
        FixedChunker(size, overlap),
        StructuralChunker(size, overlap),
        HierarchicalChunker(size * 3, size, overlap),
        SemanticChunker(DeterministicFakeEmbedding(size=4), size=size, overlap=overlap, amount=50),
    ]


@settings(max_examples=150, deadline=None)
@given(TEXTS, KINDS, st.integers(2, 60), st.integers(1, 20))
def test_chunks_are_where_they_say(text, kind, size, overlap):
    borders = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    longest = max((len(each) for each in regex.findall(r"\X", text)), default=0)
    overlap = min(overlap, size - 1)
    for chunker in chunkers(size, overlap):
        document = Document(text, metadata={"type": kind, "source": "a.py", "tags": ["x"]})
        chunks = list(chunker.chunk([document]))
        covered = set()
        for chunk in chunks:
            start = chunk.metadata["start_index"]
            end = start + len(chunk.page_content)
            assert text[start:end] == chunk.page_content
            assert chunk.page_content.strip()
            assert len(chunk.page_content) <= size
            covered.update(range(start, end))
            if longest <= size:  # else something has to be torn
                assert start in borders, (text, start)
                assert end in borders, (text, end)
            chunk.metadata["tags"].append("y")
        assert document.metadata["tags"] == ["x"]
        assert all(text[i].isspace() for i in set(range(len(text))) - covered)
        starts = [chunk.metadata["start_index"] for chunk in chunks]
        assert starts == sorted(starts)
        again = [chunk.page_content for chunk in chunker.chunk([document])]
        assert again == [chunk.page_content for chunk in chunks]


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(3, 30))
def test_sizes_may_be_counted_otherwise(text, size):
    def words(part):
        return len(part.split())

    for chunk in RecursiveChunker(size, 1, length=words).chunk([Document(text)]):
        assert words(chunk.page_content) <= size


@given(TEXTS)
@settings(max_examples=80, deadline=None)
def test_families_hold_their_children(text):
    for parent, children in HierarchicalChunker(60, 20, 5).families([Document(text)]):
        assert children
        for child in children:
            assert child.page_content in parent.page_content
            at = child.metadata["start_index"] - parent.metadata["start_index"]
            assert parent.page_content[at:].startswith(child.page_content)


def test_sections_of_markdown_are_not_mixed():
    text = "# A\none\n## B\ntwo\n```\n# no heading\n```\n# C\nthree"
    chunks = list(StructuralChunker(200, 10).chunk([Document(text, metadata={"type": "markdown"})]))
    assert [(chunk.metadata.get("section"), chunk.page_content) for chunk in chunks] == [
        ("A", "# A\none"),
        ("A > B", "## B\ntwo\n```\n# no heading\n```"),
        ("C", "# C\nthree"),
    ]


def test_code_is_cut_before_definitions():
    code = "\n".join(f"@cache\ndef f{n}(x):\n    y = x\n\n    return y\n" for n in range(6))
    document = Document(code, metadata={"type": "code", "source": "a.py"})
    chunks = [chunk.page_content for chunk in StructuralChunker(90, 1).chunk([document])]
    assert len(chunks) > 2
    assert all(chunk.startswith("@cache\ndef ") for chunk in chunks)


def test_a_subject_that_changes_ends_a_chunk():
    class Subjects(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            asked.extend(texts)
            return [[1.0, 0.0] if "fish" in each else [0.0, 1.0] for each in texts]

    asked = []
    text = "A fish swims. The fish eats. Fish: fish again. Rates rise. Banks lend. Rates fall."
    chunks = list(SemanticChunker(Subjects(size=2), buffer=0, amount=70).chunk([Document(text)]))
    assert [chunk.page_content for chunk in chunks] == [
        "A fish swims. The fish eats. Fish: fish again.",
        "Rates rise. Banks lend. Rates fall.",
    ]
    assert len(asked) == len(set(asked)) == 6


def test_no_overlap_warns_and_wrong_sizes_are_refused():
    with pytest.warns(ChunkingWarning, match="overlap is 0"):
        RecursiveChunker(100, 0)
    for size, overlap in ((0, 0), (10, 10), (10, -1), ("x", 1)):
        with pytest.raises(ConfigError):
            FixedChunker(size, overlap)
    with pytest.raises(ConfigError, match="parent_size"):
        HierarchicalChunker(5, 10, 1)
    with pytest.raises(ConfigError, match="breakpoints"):
        SemanticChunker(DeterministicFakeEmbedding(size=2), breakpoints="nope")
