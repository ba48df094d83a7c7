"""Stores written by earlier releases open, answer, take writes and compact."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import numpy as np
import pytest

import cormorant
from cormorant import Query

GOLDEN = sorted((Path(__file__).parent / "golden").glob("format-*"))
HELD = [i for i in range(50) if i not in (3, 4, 9)]


def test_there_is_a_golden_store_of_every_format() -> None:
    from cormorant.storage import FORMAT

    assert [p.name for p in GOLDEN] == [f"format-{n}" for n in range(1, FORMAT + 1)]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_store_of_an_earlier_release_opens_and_works(golden: Path, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    shutil.copytree(golden, kb)
    with cormorant.open(kb) as store:
        assert (store.dim, store.metric, store.embedder) == (3, "dot", "local")
        assert store.check().ok
        assert sorted(r.metadata["n"] for r in store.records()) == HELD
        for i in HELD:
            (record,) = store.get([f"记录-{i}"], with_vectors=True)
            assert record.text == f"Record number {i} of the golden store; 第{i}条记录, err_{i}."
            assert record.metadata["day"] == dt.date(2026, 1, 1) + dt.timedelta(days=i)
            assert record.metadata["inner"] == {"deep": i / 4}
            if i % 5 == 0:
                assert record.vector is None
            else:
                assert np.array_equal(record.vector, np.float32([i, i % 7, 1]))  # type: ignore[arg-type]
        documents = store.documents(["文档-1", "文档-2"])
        assert [d.text for d in documents] == ["Document 1.", "Document 2."]
        assert store.search(Query(text="err_17")).hits[0].id == "记录-17"
        assert store.search(Query(vector=[1.0, 0.0, 0.0], top_k=1)).hits[0].id == "记录-49"
        assert store.count({"day": {"$gte": "2026-02-01"}, "tags": "t0", "even": True}) == len(
            [i for i in HELD if i >= 31 and i % 3 == 0 and i % 2 == 0]
        )
        assert store.add([{"id": "new", "text": "added by this release"}]).added == 1
        store.compact()
        assert store.check().ok
        assert store.count() == len(HELD) + 1
