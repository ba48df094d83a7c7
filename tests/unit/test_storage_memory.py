"""A store in memory keeps the same promises, without a file."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import StoreClosed, StoreLocked
from cormorant.storage import NewRecord, Storage


def add(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(id, id, "{}") for id in ids],
            vectors=np.array([[len(id), 1] for id in ids], np.float32),
        )


def test_no_file_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage.open(":memory:")
    assert storage.in_memory
    assert storage.path is None
    assert storage.created
    add(storage, "a")
    with storage.write() as writer:
        writer.save_checkpoint({"base": {"n": np.arange(3)}}, 1)
    assert storage.size_bytes() > 0
    storage.close()
    assert list(tmp_path.iterdir()) == []


def test_each_is_its_own() -> None:
    one, two = Storage.open(":memory:"), Storage.open(":memory:")
    add(one, "a")
    with two.read() as reader:
        assert reader.rows_of(["a"]) == {}
    one.close()
    two.close()


def test_a_commit_waits_for_other_threads_snapshots() -> None:
    storage = Storage.open(":memory:", lock_timeout_s=30)
    add(storage, "a")
    inside, done = threading.Event(), threading.Event()
    order: list[str] = []

    def read() -> None:
        with storage.read() as reader:
            inside.set()
            done.wait(30)
            time.sleep(0.02)
            order.append(f"read {len(reader.live_rows())}")

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    inside.wait(30)
    done.set()
    add(storage, "b")
    order.append("written")
    thread.join()
    assert order == ["read 1", "written"]
    storage.close()


def test_a_commit_does_not_wait_for_ever() -> None:
    storage = Storage.open(":memory:", lock_timeout_s=0.02)
    add(storage, "a")
    inside, done = threading.Event(), threading.Event()

    def read() -> None:
        with storage.read():
            inside.set()
            done.wait(30)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    inside.wait(30)
    with pytest.raises(StoreLocked, match="Close iterators"):
        add(storage, "b")
    done.set()
    thread.join()
    add(storage, "b")
    with storage.read() as reader:
        assert reader.rows_of(["a", "b"]) == {"a": 1, "b": 2}
    assert storage.verify() == []
    storage.close()


def test_a_thread_may_write_inside_its_own_snapshot() -> None:
    storage = Storage.open(":memory:", lock_timeout_s=0.5)
    add(storage, "a")
    with storage.read() as reader:
        for batch in reader.scan(batch=1):
            for record in batch:
                add(storage, record.id + "!")  # ends: rows given out meanwhile are not scanned
    with storage.read() as reader:
        assert reader.rows_of(["a", "a!", "a!!"]) == {"a": 1, "a!": 2}
    storage.close()


def test_a_snapshot_may_end_in_another_thread() -> None:
    storage = Storage.open(":memory:", lock_timeout_s=0.5)
    reader = storage.read().__enter__()
    thread = threading.Thread(target=reader.__exit__, args=(None, None, None), daemon=True)
    thread.start()
    thread.join()
    add(storage, "a")
    storage.close()


def test_arrays_do_not_change_under_their_readers() -> None:
    storage = Storage.open(":memory:")
    add(storage, "a")
    with storage.read() as reader:
        held = reader.vectors()
    assert held is not None
    for i in range(300):
        add(storage, f"{i}")
    assert held.tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="read-only"):
        held[0, 0] = 5
    storage.close()


def test_closing_waits_for_the_snapshots_and_lets_all_go() -> None:
    storage = Storage.open(":memory:")
    add(storage, "a")
    with storage.read() as reader:
        storage.close()
        assert reader.rows_of(["a"]) == {"a": 1}
    with pytest.raises(StoreClosed), storage.read():
        pass


def test_readers_and_writers_together() -> None:
    storage = Storage.open(":memory:", lock_timeout_s=60)
    add(storage, "0")
    faults: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                with storage.read() as reader:
                    head = reader.head
                    (record,) = (r for batch in reader.scan() for r in batch)
                    vectors = reader.vectors()
                    assert vectors is not None
                    assert len(vectors) == head.n
                    assert vectors[record.row - 1, 0] == len(record.id)
                    assert reader.head == head
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            faults.append(error)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(150):
        with storage.write() as writer:
            writer.commit(
                records=[NewRecord("x" * (i % 20), "", "{}")],
                vectors=np.array([[i % 20, 0]], np.float32),
                dead_rows=writer.live_rows(),
            )
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults
    storage.close()


def test_the_dimension_may_be_set_before_any_record() -> None:
    storage = Storage.open(":memory:", config={"dim": 4})
    with storage.read() as reader:
        vectors = reader.vectors()
        assert vectors is not None
        assert vectors.shape == (0, 4)
    storage.close()
