"""A backup is one snapshot, whole, whatever is written meanwhile; or it is nothing."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import FormatError, NotFound, StoreError
from cormorant.storage import NewRecord, Storage


@pytest.fixture(params=["folder", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    where = ":memory:" if request.param == "memory" else tmp_path / "kb"
    storage = Storage.open(where, config={"x": [1]})
    yield storage
    storage.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def add(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(id, id, '{"k":1}') for id in ids],
            vectors=np.array([[len(id), 1] for id in ids], np.float32),
        )


def compact(storage: Storage) -> None:
    with storage.read() as reader:
        keep = np.flatnonzero(np.isin(reader.slot_map().rows, reader.live_rows()))
        new = storage.new_generation(reader, keep)
    with new:
        new.seal({"base": {"n": np.arange(len(keep))}})
        with storage.write() as writer:
            writer.switch_generation(new)


def contents(storage: Storage) -> tuple[object, ...]:
    with storage.read() as reader:
        vectors = reader.vectors()
        slots = reader.slot_map()
        return (
            reader.head,
            dict(reader.config),
            [record for batch in reader.scan() for record in batch],
            None if vectors is None else vectors.tolist(),
            slots.rows.tolist(),
            slots.has_vector.tolist(),
            [(d.lsn, d.lo, d.postings) for d in reader.deltas(reader.head.checkpoint_lsn) or []],
            {
                g: {n: a.tolist() for n, a in arrays.items()}
                for g, arrays in reader.checkpoint().items()
            },
        )


def test_a_backup_holds_everything(storage: Storage, tmp_path: Path) -> None:
    add(storage, "a", "bb")
    with storage.write() as writer:
        writer.commit(dead_rows=[1])
    compact(storage)
    add(storage, "ccc")
    copy = tmp_path / "deep" / "copy"
    storage.backup(copy)
    other = Storage.open(copy, create=False)
    assert contents(other) == contents(storage)
    assert other.verify() == []
    add(other, "dddd")
    compact(other)
    add(storage, "e")
    with other.read() as reader:
        assert list(reader.rows_of(["bb", "ccc", "dddd", "e"])) == ["bb", "ccc", "dddd"]
    other.close()
    assert sorted(p.name for p in copy.iterdir()) == [
        "cormorant.sqlite",
        "derived",
        "lock",
        "vectors",
    ]


def test_an_empty_store_and_an_empty_folder(storage: Storage, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    storage.backup(str(copy))
    other = Storage.open(copy, create=False)
    assert contents(other) == contents(storage)
    assert other.verify() == []
    other.close()


def test_a_folder_that_holds_something_is_refused(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "y").write_text("y")
    with pytest.raises(FormatError, match="not a folder"):
        storage.backup(tmp_path / "file")
    with pytest.raises(FormatError, match="not empty"):
        storage.backup(tmp_path / "full")
    assert (tmp_path / "file").read_text() == "x"
    assert names(tmp_path / "full") == ["y"]


def test_a_folder_inside_the_store_is_refused(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "kb")
    with pytest.raises(FormatError, match="lies inside the store"):
        storage.backup(tmp_path / "kb" / "copy")
    assert not (tmp_path / "kb" / "copy").exists()
    storage.close()


@pytest.mark.parametrize("call", ["fdatasync", "fsync", "pwrite"])
def test_a_backup_that_fails_leaves_nothing(
    storage: Storage, tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(storage, "a")
    compact(storage)
    mine = tmp_path / "mine"
    mine.mkdir()
    real = getattr(os, call)
    allowed, made = 1_000_000, 0

    def strike(*args):  # type: ignore[no-untyped-def]
        nonlocal made
        made += 1
        if made > allowed:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args)

    monkeypatch.setattr(os, call, strike)
    storage.backup(tmp_path / "whole")
    total = made
    assert total > 1
    for allowed in range(total):
        for folder in (tmp_path / "copy", mine):
            made = 0
            if folder == mine and call == "fsync" and allowed == total - 1:
                continue  # it is there already, so one name less has to be synced
            with pytest.raises(StoreError, match="ENOSPC"):
                storage.backup(folder)
        assert not (tmp_path / "copy").exists()
        assert names(mine) == []


def test_an_unfinished_backup_is_no_store(storage: Storage, tmp_path: Path) -> None:
    add(storage, "a")
    copy = tmp_path / "copy"
    storage.backup(copy)
    (copy / "cormorant.sqlite").rename(copy / "cormorant.sqlite.new")
    with pytest.raises(FormatError, match="is not a store: it holds"):
        Storage.open(copy)


def test_a_read_only_store_can_be_backed_up(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "kb")
    add(storage, "a")
    storage.close()
    storage = Storage.open(tmp_path / "kb", read_only=True)
    storage.backup(tmp_path / "copy")
    storage.close()
    with Storage.open(tmp_path / "copy").read() as reader:
        assert reader.rows_of(["a"]) == {"a": 1}
    with pytest.raises(NotFound):
        Storage.open(tmp_path / "nothing", read_only=True)


def test_a_damaged_checkpoint_is_left_out(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "kb")
    add(storage, "a")
    with storage.write() as writer:
        writer.save_checkpoint({"base": {"n": np.arange(3)}}, 1)
    storage.close()
    (file,) = (tmp_path / "kb" / "derived").iterdir()
    file.write_bytes(b"junk")
    storage = Storage.open(tmp_path / "kb")
    storage.backup(tmp_path / "copy")
    other = Storage.open(tmp_path / "copy")
    (problem,) = other.verify()
    assert problem.repairable
    assert "is missing" in problem.what
    storage.close()
    other.close()


def test_a_backup_under_way_does_not_mix_states(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "kb", lock_timeout_s=60)
    add(storage, "x")
    stop = threading.Event()

    def write() -> None:
        number = 1
        while not stop.is_set():
            number += 1
            with storage.write() as writer:
                writer.commit(
                    records=[NewRecord("x" * number, str(number), "{}")],
                    vectors=np.array([[number, 1]], np.float32),
                    dead_rows=writer.live_rows(),
                )
            if number % 5 == 0:
                compact(storage)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    for number in range(5):
        copy = tmp_path / f"copy{number}"
        storage.backup(copy)
        other = Storage.open(copy)
        assert other.verify() == []
        with other.read() as reader:
            (record,) = (r for batch in reader.scan() for r in batch)
            vectors = reader.vectors()
            assert vectors is not None
            at = reader.slot_map().rows.tolist().index(record.row)
            assert vectors[at, 0] == len(record.id)
        other.close()
    stop.set()
    thread.join()
    storage.close()
