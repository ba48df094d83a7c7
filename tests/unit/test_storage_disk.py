"""A disk that is full or fails: the call is refused by name, and nothing of it stays.

The crash suite does the same to every single system call, SQLite's included.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import NewRecord, Storage, files, sql


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kb"


@pytest.fixture
def storage(folder: Path) -> Iterator[Storage]:
    storage = Storage.open(folder)
    add(storage, "a")
    yield storage
    storage.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def add(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(id, id, "{}") for id in ids],
            vectors=np.array([[len(id), 1] for id in ids], np.float32),
        )


def add_without_vectors(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(records=[NewRecord(id, id, "{}") for id in ids])


def ids(storage: Storage) -> list[str]:
    with storage.read() as reader:
        return [record.id for batch in reader.scan() for record in batch]


def failing(code: int, *, after: int = 0) -> Callable[..., Any]:
    """Stands in for a system call; fails once it was called ``after`` times."""
    left = [after]

    def call(*args: Any, real: Callable[..., Any]) -> Any:
        if left[0] > 0:
            left[0] -= 1
            return real(*args)
        raise OSError(code, os.strerror(code))

    return call


def strike(patch: pytest.MonkeyPatch, name: str, code: int, *, after: int = 0) -> None:
    real, fail = getattr(os, name), failing(code, after=after)
    patch.setattr(os, name, lambda *args: fail(*args, real=real))


@pytest.mark.parametrize(
    ("work", "call", "code", "says"),
    [
        (add, "pwrite", errno.ENOSPC, "the disk is full (ENOSPC)"),
        (add, "pwrite", errno.EDQUOT, "the disk is full (EDQUOT)"),
        (add, "pwrite", errno.EIO, "Input/output error (EIO)"),
        (add, "fdatasync", errno.EIO, "Input/output error (EIO)"),
        (add, "fdatasync", errno.ENOSPC, "the disk is full (ENOSPC)"),
        (add_without_vectors, "ftruncate", errno.ENOSPC, "the disk is full (ENOSPC)"),
        (add_without_vectors, "fdatasync", errno.EIO, "Input/output error (EIO)"),
    ],
)
def test_a_commit_that_fails(
    storage: Storage, folder: Path, work: Any, call: str, code: int, says: str
) -> None:
    pid_writes = 1 if call == "pwrite" else 0  # the lock's
    with pytest.MonkeyPatch.context() as patch:
        strike(patch, call, code, after=pid_writes)
        with pytest.raises(StoreError) as caught:
            work(storage, "b", "cc")
    assert says in str(caught.value)
    assert str(folder / "vectors" / "1.f32") in str(caught.value)
    assert "Nothing of this call was stored" in str(caught.value)
    assert ids(storage) == ["a"]  # reading goes on
    with pytest.raises(StoreError, match="takes no more writes, because one failed: Could not"):
        add(storage, "d")
    with pytest.raises(StoreError, match="Close the store and open it again"):
        storage.new_generation(storage.read(), np.array([0]))
    again = Storage.open(folder)
    add(again, "e")
    assert ids(again) == ids(storage) == ["a", "e"]
    assert again.verify() == []
    again.close()


def test_writes_that_come_back_short_are_gone_on_with(
    storage: Storage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, bytes(data)[:3], at))
    add(storage, "bb", "ccc")
    with storage.read() as reader:
        vectors = reader.vectors()
    assert vectors is not None
    assert vectors.tolist() == [[1, 1], [2, 1], [3, 1]]
    assert storage.verify() == []
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: 0)
    with pytest.raises(StoreError, match="the system wrote nothing"):
        add(storage, "d")


def test_sqlite_on_a_full_disk(storage: Storage, folder: Path) -> None:
    with storage.write() as writer:
        writer._open.execute("PRAGMA max_page_count = 20").fetchall()
        with pytest.raises(StoreError, match=r"\.sqlite: the disk is full \(SQLITE_FULL\)"):
            writer.commit(records=[NewRecord("b", "x" * 500_000, "{}")], dead_rows=[1])
    assert ids(storage) == ["a"]
    with pytest.raises(StoreError, match="takes no more writes"):
        add(storage, "c")
    again = Storage.open(folder)
    add(again, "d")
    assert ids(again) == ["a", "d"]
    assert again.verify() == []
    again.close()


class Broken(sqlite3.Connection):
    """SQLite, when its disk fails as a transaction ends."""

    fails = 0

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:  # type: ignore[override]
        if sql == "COMMIT" and self.in_transaction and self.total_changes and Broken.fails:
            Broken.fails -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return super().execute(sql, *args)


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        (1, "Nothing of this call was stored"),
        (2, "all of this call is stored or nothing of it"),
    ],
)
def test_a_commit_whose_sync_fails(folder: Path, fails: int, says: str) -> None:
    """It may lie whole in SQLite's log: if it can be undone there it is, else that is said."""
    connect = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Broken, **k))
        storage = Storage.open(folder)
        add(storage, "a")
        with storage.read() as reader:
            before = reader.head
        Broken.fails = fails
        with pytest.raises(StoreError, match=f"SQLITE_IOERR_FSYNC.*{says}"):
            add(storage, "b")
        Broken.fails = 0
        with storage.read() as reader:
            assert reader.head == before._replace(files=before.files + (fails == 1))
        with pytest.raises(StoreError, match="takes no more writes"):
            add(storage, "c")
        storage.close()


def test_what_another_process_left_in_the_log_is_written_again(
    storage: Storage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sync may have failed there: then the log can be read, but is not on the disk."""
    rewritten: list[tuple[str, int]] = []
    real = files.rewrite

    def rewrite(path: Path) -> None:
        rewritten.append((path.name, path.stat().st_size))
        before = path.read_bytes()
        real(path)
        assert path.read_bytes() == before

    monkeypatch.setattr(files, "rewrite", rewrite)
    other = Storage.open(folder)
    add(other, "b")
    add(other, "c")
    ((name, size),) = rewritten
    assert name == "cormorant.sqlite-wal"
    assert size > 4096
    assert ids(storage) == ["a", "b", "c"]
    other.close()


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "fsync"])
def test_a_checkpoint_that_fails(storage: Storage, folder: Path, call: str) -> None:
    with pytest.MonkeyPatch.context() as patch, storage.write() as writer:
        strike(patch, call, errno.ENOSPC)
        with pytest.raises(StoreError, match="ENOSPC"):
            writer.save_checkpoint({"base": {"n": np.arange(9)}}, 1)
    with storage.read() as reader:
        assert reader.checkpoint() == {}
        assert len(reader.deltas(0) or []) == 1
    again = Storage.open(folder)
    with again.write() as writer:
        assert writer.save_checkpoint({"base": {"n": np.arange(4)}}, 1)
    assert len(names(folder / "derived")) == 1
    assert again.verify() == []
    again.close()


def test_a_switch_that_fails_as_it_ends_loses_nothing(folder: Path) -> None:
    """Its COMMIT may be in the log all the same: then the head names the new generation."""
    connect = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Broken, **k))
        storage = Storage.open(folder)
        add(storage, "a")
        with storage.read() as reader, storage.new_generation(reader, np.array([0])) as new:
            new.seal({"base": {}})
            with storage.write() as writer:
                Broken.fails = 2
                with pytest.raises(StoreError, match="all of this call is stored or nothing"):
                    writer.switch_generation(new)
                Broken.fails = 0
        both = ["1.f32", "2.f32", "2.rows"]
        assert names(folder / "vectors") == both
        assert names(folder / "derived") == ["g2.bin"]
        again = Storage.open(folder)
        add(again, "b")  # sweeps by the head as it came out
        assert names(folder / "vectors") == ["1.f32"]
        assert names(folder / "derived") == []
        assert again.verify() == []
        again.close()
        storage.close()


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "fsync"])
def test_a_compaction_that_fails_stops_nothing(storage: Storage, folder: Path, call: str) -> None:
    def build() -> None:
        with storage.read() as reader, storage.new_generation(reader, np.array([0])) as new:
            new.seal({"base": {}})

    with pytest.MonkeyPatch.context() as patch:
        strike(patch, call, errno.EIO)
        with pytest.raises(StoreError, match="EIO"):
            build()
    assert names(folder / "vectors") == ["1.f32"]
    assert names(folder / "derived") == []
    add(storage, "b")
    assert storage.verify() == []


@pytest.mark.parametrize(
    ("call", "after"),
    [("fdatasync", 0), *(("fsync", n) for n in range(4)), *(("mkdir", n) for n in range(3))],
)
def test_a_creation_that_fails_leaves_nothing(folder: Path, call: str, after: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        strike(patch, call, errno.EIO, after=after)
        with pytest.raises(StoreError, match="EIO"):
            Storage.open(folder)
    assert not folder.exists()
    storage = Storage.open(folder)
    assert storage.created
    add(storage, "a")
    assert storage.verify() == []
    storage.close()


def test_a_vector_file_that_lost_bytes_is_not_written_to(storage: Storage, folder: Path) -> None:
    os.truncate(folder / "vectors" / "1.f32", 4)
    with pytest.raises(CorruptionError, match="4 bytes long; 8 were committed") as caught:
        add(storage, "b")
    assert caught.value.path == str(folder / "vectors" / "1.f32")
    again = Storage.open(folder, read_only=True)
    with again.read() as reader, pytest.raises(CorruptionError, match="4 bytes long"):
        reader.vectors()
    assert "4 bytes long" in again.verify()[0].what
    assert ids(again) == ["a"]
    again.close()


def test_what_the_system_refuses_when_opening_is_ours(folder: Path) -> None:
    Storage.open(folder).close()
    with pytest.MonkeyPatch.context() as patch:
        strike(patch, "open", errno.EMFILE)
        with pytest.raises(StoreError, match="EMFILE"):
            Storage.open(folder)
    Storage.open(folder).close()


def test_a_full_disk_is_said_where_sqlite_calls_it_an_io_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    folder.mkdir()
    said = str(sql.sql_error(error, folder / "cormorant.sqlite", "open"))
    assert "SQLite says disk I/O error (SQLITE_IOERR_SHMSIZE)" in said
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    said = str(sql.sql_error(error, folder / "cormorant.sqlite", "open"))
    assert "the disk is full (SQLITE_IOERR_SHMSIZE)" in said
