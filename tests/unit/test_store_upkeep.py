"""Work in the background: when it is due, that it is one at a time, and how it ends."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import cormorant
from cormorant import Query, defaults
from cormorant.errors import ConfigError, StoreError
from cormorant.index.vector import learning
from cormorant.store import indexing
from cormorant.store.upkeep import Upkeep

DIM = 16


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Codes from 200 vectors on, and checkpoints from 100 records on."""
    monkeypatch.setattr(defaults, "INDEX_MIN_ROWS", 200)
    monkeypatch.setattr(learning, "FEWEST", 200)
    monkeypatch.setattr(defaults, "CHECKPOINT_MIN_ROWS", 100)


def records(first, count):
    rng = np.random.default_rng(first)
    centres = np.random.default_rng(7).standard_normal((20, DIM))
    made = centres[rng.integers(0, 20, count)] + 0.4 * rng.standard_normal((count, DIM))
    return [
        {"id": f"r{first + i}", "text": f"fish {i}", "vector": vector}
        for i, vector in enumerate(made)
    ]


def threads():
    return [each for each in threading.enumerate() if each.name == "cormorant-upkeep"]


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_many_new_vectors_get_codes_in_the_background(tmp_path, where):
    path = ":memory:" if where == "memory" else tmp_path / "kb"
    with cormorant.open(path) as store:
        store.add(records(0, 300))
        assert store.wait(60)
        index = store.stats().index
        assert index is not None
        assert index.rows == 300
        store.add(records(300, 100))
        assert store.wait(60)
        assert store.stats().index.rows == 300  # an eighth, and less than INDEX_MIN_ROWS
        store.add(records(400, 150))
        assert store.wait(60)
        assert store.stats().index.rows == 550
        assert store.stats().upkeep_failure is None
    assert not threads()


def test_the_log_is_folded_in_the_background_and_without_it_in_the_call(tmp_path):
    for background in (True, False):
        folder = tmp_path / str(background)
        with cormorant.open(folder, background=background) as store:
            store.add(records(0, 150))
            assert store.wait(60)
            assert store.stats().unfolded == 0
            assert not threads()
            store.add(records(150, 40))
            assert store.wait(60)
            assert store.stats().unfolded == 1
            assert store.stats().index is None


def test_without_background_codes_come_when_asked_for(tmp_path):
    with cormorant.open(tmp_path / "kb", background=False) as store:
        store.add(records(0, 300))
        assert store.stats().index is None
        assert not threads()
        assert store.optimize(recall=0.9).built == "new"


def test_what_was_chosen_holds_in_the_background(tmp_path):
    with cormorant.open(tmp_path / "kb") as store:
        store.optimize(index="exact")
        store.add(records(0, 500))
        assert store.wait(60)
        assert store.stats().index is None
        assert store.optimize(index="pq", recall=0.9).built == "new"
    with cormorant.open(tmp_path / "kb") as store:
        assert (store.config.index.kind, store.config.index.recall) == ("pq", 0.9)
        assert store.optimize(index="exact").built == "dropped"
        assert store.stats().index is None
    with cormorant.open(tmp_path / "kb", read_only=True) as store:
        assert store.stats().index is None
        assert store.search(Query(vector=np.ones(DIM))).exact


@pytest.mark.parametrize(
    "options",
    [
        {"index": "faiss"},
        {"recall": 1.0},
        {"recall": 1},
        {"lists": 0},
        {"lists": True},
        {"index": "exact", "lists": 4},
    ],
)
def test_what_no_index_has_is_refused(options):
    with cormorant.open(":memory:") as store, pytest.raises(ConfigError, match=r"must be|alone"):
        store.optimize(**options)


def test_background_takes_true_or_false():
    with pytest.raises(ConfigError, match="background"):
        cormorant.open(":memory:", background="yes")


def test_vectors_that_no_code_serves_are_not_tried_at_every_write(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(indexing, "learn", lambda *_, **__: tried.append(1))
    with cormorant.open(tmp_path / "kb") as store:
        for first in (0, 300, 400):
            store.add(records(first, 300 if not first else 100))
            assert store.wait(60)
        assert len(tried) == 1
        store.add(records(500, 100))
        assert store.wait(60)
        assert len(tried) == 2  # twice as many: they may look otherwise by now


def test_a_failure_is_logged_and_shown_and_over_with_the_next_success(
    tmp_path, monkeypatch, caplog
):
    def full(*_, **__):
        raise StoreError("disk full")

    with cormorant.open(tmp_path / "kb") as store:
        with monkeypatch.context() as patch:
            patch.setattr(indexing, "learn", full)
            store.add(records(0, 300))
            assert store.wait(60)
        assert "disk full" in store.stats().upkeep_failure
        assert "Upkeep of a store failed" in caplog.text
        assert store.count() == 300
        store.add(records(300, 1))
        assert store.wait(60)
        assert store.stats().upkeep_failure is None
        assert store.stats().index.rows == 301


def test_reads_and_writes_go_on_while_codes_are_made_and_close_stops_it(tmp_path, monkeypatch):
    begun, stopped = threading.Event(), threading.Event()

    def endless(*_, progress, **__):
        begun.set()
        try:
            while True:
                progress("train", 0.5)
        finally:
            stopped.set()

    monkeypatch.setattr(indexing, "learn", endless)
    store = cormorant.open(tmp_path / "kb")
    store.add(records(0, 300))
    assert begun.wait(60)
    store.add(records(300, 10))
    assert store.search(Query(vector=np.ones(DIM), mode="vector")).exact
    assert not store.wait(0.01)
    assert len(threads()) == 1
    store.close()
    assert stopped.is_set()
    assert not threads()
    with cormorant.open(tmp_path / "kb", read_only=True) as again:
        assert again.count() == 310
    assert [path.name for path in (tmp_path / "kb" / "derived").iterdir()] == []


def test_optimize_does_not_wait_for_what_runs_but_stops_it(tmp_path, monkeypatch):
    begun = threading.Event()
    true_learn = indexing.learn

    def endless(*args, **options):
        if threading.current_thread().name != "cormorant-upkeep":
            return true_learn(*args, **options)
        begun.set()
        while True:
            options["progress"]("train", 0.5)

    monkeypatch.setattr(indexing, "learn", endless)
    with cormorant.open(tmp_path / "kb") as store:
        store.add(records(0, 300))
        assert begun.wait(60)
        assert store.optimize(recall=0.9).index.rows == 300


def test_never_more_than_one_at_a_time():
    upkeep, running, most = Upkeep(), [], []

    def work(progress):
        running.append(1)
        most.append(len(running))
        progress("train", 0.0)
        running.pop()

    for _ in range(50):
        upkeep.wake(work)
    assert upkeep.wait(60)
    upkeep.close()
    upkeep.wake(work)
    assert set(most) == {1}
    assert not threads()


def test_an_interpreter_that_ends_without_closing_ends(tmp_path):
    script = f"""
        import threading, numpy as np, cormorant
        from cormorant import defaults
        from cormorant.store import indexing
        defaults.INDEX_MIN_ROWS = 200
        begun = threading.Event()

        def endless(*_, progress, **__):
            begun.set()
            while True:
                progress("train", 0.5)

        indexing.learn = endless
        store = cormorant.open({str(tmp_path / "kb")!r})
        rows = np.random.default_rng(0).standard_normal((300, 8))
        store.add([{{"id": str(i), "vector": row}} for i, row in enumerate(rows)])
        begun.wait(60)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    with cormorant.open(Path(tmp_path / "kb"), read_only=True) as store:
        assert store.count() == 300


def test_what_was_folded_lies_in_files_and_not_in_memory(tmp_path):
    query = Query(text="fish 7", top_k=5)
    with cormorant.open(tmp_path / "kb", background=False) as store:
        for first in range(0, 400, 50):
            store.add(records(first, 50))
        before = [(hit.id, hit.score) for hit in store.search(query)]
        store.optimize()
        (segment,) = store._core._state.text._segments
        assert not segment.slots.flags.owndata
        assert not segment.slots.flags.writeable
        assert [(hit.id, hit.score) for hit in store.search(query)] == before
        store.add(records(400, 10))
        assert store.stats().records == 410
        assert store.check().ok


def test_memory_is_swapped_for_files_while_others_write(tmp_path, monkeypatch):
    with cormorant.open(tmp_path / "kb", background=False) as store:
        store.add(records(0, 150))
        core = store._core
        whole, written = core._load, []

        def overtaken(reader):
            loaded = whole(reader)
            if len(written) < 2:
                written.append(store.add(records(1000 + 10 * len(written), 10)))
            return loaded

        monkeypatch.setattr(core, "_load", overtaken)
        core.remap()
        core.remap()
        assert store.stats().records == 170
        assert {hit.id for hit in store.search(Query(text="fish", top_k=200))} == {
            record.id for record in store.records()
        }
