"""Does what a sync holds itself grow with the text?"""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import pytest
from langchain_core.documents import Document

import cormorant
from cormorant import defaults
from cormorant.ingest import sync
from cormorant.ingest.sources import ReadSource

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import Paragraphs

INGEST = tracemalloc.Filter(inclusive=True, filename_pattern="*/cormorant/ingest/*")


def held_by_sync(chunks, monkeypatch, tmp_path):
    """The most bytes allocated in cormorant/ingest that were alive after a transaction."""
    monkeypatch.setattr(defaults, "SYNC_CHUNKS", 128)

    def documents():
        for at in range(0, chunks, 100):
            text = "\n\n".join(
                f"text {n} of a long file {'reeds ' * 20}" for n in range(at, at + 100)
            )
            yield Document(text, metadata={"source": "long"})

    most = 0

    def look(_progress):
        nonlocal most
        taken = tracemalloc.take_snapshot().filter_traces([INGEST])
        most = max(most, sum(each.size for each in taken.statistics("filename")))

    with cormorant.open(tmp_path / f"{chunks}") as store:
        tracemalloc.start()
        try:
            source = ReadSource("long", chunks, 1.0, documents)
            sync([source], store, chunker=Paragraphs(), name="t", progress=look)
        finally:
            tracemalloc.stop()
        assert store.count() == chunks
    return most


@pytest.mark.slow
def test_a_source_of_any_length_takes_the_same(monkeypatch, tmp_path):
    few = held_by_sync(1_000, monkeypatch, tmp_path)
    many = held_by_sync(8_000, monkeypatch, tmp_path)
    print(f"held after a transaction: {few:,} bytes of 1,000 chunks, {many:,} of 8,000")
    # Before pairs are sorted into arrays they are in dicts, 200 bytes each and of a fixed number.
    assert many - few < 7_000 * 250
