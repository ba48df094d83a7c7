"""A store whose files were moved, removed, replaced or cut short while it is open says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import NewRecord, Storage


def add(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(id, id, "{}") for id in ids],
            vectors=np.ones((len(ids), 2), np.float32),
        )


def ids(storage: Storage) -> list[str]:
    with storage.read() as reader:
        return [record.id for batch in reader.scan() for record in batch]


def compact(storage: Storage) -> None:
    with storage.read() as reader:
        new = storage.new_generation(reader, np.arange(reader.head.n))
    with new:
        new.seal({"base": {"x": np.arange(4)}})
        with storage.write() as writer:
            writer.switch_generation(new)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kb"


@pytest.fixture
def storage(folder: Path) -> Storage:
    storage = Storage.open(folder)
    add(storage, "a")
    return storage


@pytest.mark.parametrize(
    "name", ["cormorant.sqlite", "cormorant.sqlite-wal", "cormorant.sqlite-shm", "vectors/1.f32"]
)
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_lost_its_name_takes_no_writes(
    storage: Storage, folder: Path, name: str, replaced: bool
) -> None:
    path = folder / name
    copy = path.read_bytes()
    path.unlink()
    if replaced:
        path.write_bytes(copy)
    if replaced and name == "vectors/1.f32":
        add(storage, "b")  # the bytes are those that were committed, so it is gone on with
        assert (folder / name).stat().st_size == 16
    else:
        with pytest.raises(StoreError, match=r"no longer the file|is missing"):
            add(storage, "b")
    storage.close()


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("work", [lambda storage: add(storage, "b"), compact])
def test_a_store_that_was_moved_takes_no_writes(
    storage: Storage, folder: Path, tmp_path: Path, replaced: bool, work: Callable[[Storage], None]
) -> None:
    folder.rename(tmp_path / "moved")
    if replaced:
        other = Storage.open(folder)
        add(other, "x", "y")
        compact(other)
        before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    with pytest.raises(StoreError, match="no longer the file that was opened"):
        work(storage)
    assert ids(storage) == ["a"]
    storage.close()
    if replaced:
        assert {p: p.read_bytes() for p in folder.rglob("*.*") if p.is_file()} == before
        assert ids(other) == ["x", "y"]
        assert other.verify() == []
        other.close()
    moved = Storage.open(tmp_path / "moved")
    add(moved, "b")
    assert ids(moved) == ["a", "b"]
    moved.close()


def test_a_folder_that_was_removed_and_made_anew(storage: Storage, folder: Path) -> None:
    shutil.rmtree(folder)
    other = Storage.open(folder)
    add(other, "x")
    with pytest.raises(StoreError, match="no longer the file that was opened"):
        add(storage, "b")
    storage.close()
    assert ids(other) == ["x"]
    other.close()


def test_a_new_connection_never_reads_another_store(storage: Storage, folder: Path) -> None:
    shutil.rmtree(folder)
    other = Storage.open(folder)
    add(other, "x")
    with storage.read() as first:
        assert first.head.n == 1
        with pytest.raises(StoreError, match="no longer the file that was opened"):
            ids(storage)  # needs a second connection
    storage.close()
    other.close()


def test_a_moved_store_is_not_read_with_another_ones_files(
    storage: Storage, folder: Path, tmp_path: Path
) -> None:
    assert ids(storage) == ["a"]
    folder.rename(tmp_path / "moved")
    other = Storage.open(folder)
    add(other, "x")
    compact(other)
    moved = Storage.open(tmp_path / "moved")
    compact(moved)
    with pytest.raises(StoreError, match="no longer the file that was opened"), storage.read():
        pass
    for one in (storage, other, moved):
        one.close()


def test_a_store_that_was_moved_back_goes_on(
    storage: Storage, folder: Path, tmp_path: Path
) -> None:
    folder.rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="no longer the file that was opened"):
        add(storage, "b")
    os.rename(tmp_path / "moved", folder)  # noqa: PTH104 - as a shell does
    add(storage, "b")
    assert ids(storage) == ["a", "b"]
    storage.close()


def with_checkpoint(folder: Path) -> Storage:
    """A store with vectors, a base and a checkpoint of some pages each."""
    storage = Storage.open(folder)
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(str(i), "", "{}") for i in range(3000)],
            vectors=np.ones((3000, 4), np.float32),
        )
    with storage.read() as reader:
        new = storage.new_generation(reader, np.arange(3000))
    with new:
        new.seal({"base": {"x": np.arange(9000)}})
        with storage.write() as writer:
            writer.switch_generation(new)
    return storage


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vectors/2.f32", "it is 4096 bytes long; 48000 were committed"),
        ("vectors/2.rows", "it was cut to 4096 bytes while it was in use"),
        ("derived/g2.bin", "it was cut to 4096 bytes while it was in use"),
    ],
)
def test_a_file_that_is_cut_short_under_its_mapping_is_not_touched(
    folder: Path, name: str, says: str
) -> None:
    storage = with_checkpoint(folder)

    def everything() -> None:
        with storage.read() as reader:
            reader.vectors()
            reader.slot_map()
            reader.checkpoint()

    everything()
    os.truncate(folder / name, 4096)
    with pytest.raises(CorruptionError, match=says) as caught:
        everything()
    assert caught.value.path == str(folder / name)
    work = compact if name == "vectors/2.rows" else lambda storage: add(storage, "b")
    with pytest.raises(StoreError, match=says):
        work(storage)
    assert any(says in problem.what for problem in storage.verify())
    storage.close()


def test_who_holds_no_arrays_of_a_cut_checkpoint_goes_on(folder: Path) -> None:
    storage = with_checkpoint(folder)
    with storage.read():
        pass
    os.truncate(folder / "derived/g2.bin", 4096)
    assert len(ids(storage)) == 3000
    with storage.read() as reader, pytest.raises(CorruptionError, match="cut to 4096"):
        reader.checkpoint()
    with storage.write() as writer:
        writer.save_checkpoint({"base": {"x": np.arange(3)}}, writer.head.lsn)
    assert storage.verify() == []
    storage.close()
