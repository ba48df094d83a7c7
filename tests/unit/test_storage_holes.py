"""The ways in which a naive version of this storage loses data or dies; one test each.

Those about locks and forks are in test_storage_lock.py, those about bytes that stay after
a compaction in test_storage_generation.py, the read-only folder in test_storage_open.py.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cormorant.storage import NewRecord, Storage
from cormorant.storage.ground import Ground


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kb"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def add(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(id, id, "{}") for id in ids],
            vectors=np.array([[len(id), 1] for id in ids], np.float32),
        )


def compact(storage: Storage) -> None:
    with storage.read() as reader:
        keep = np.flatnonzero(np.isin(reader.slot_map().rows, reader.live_rows()))
        new = storage.new_generation(reader, keep)
    with new:
        new.seal({"base": {}})
        with storage.write() as writer:
            writer.switch_generation(new)


def test_opening_does_not_cut_off_what_a_writer_is_appending(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "a")
    with storage.write() as writer:
        vectors = np.array([[7, 7]], "<f4")
        # The first half of a commit: the vectors lie behind the committed length.
        writer._ground.vault.append(writer.head, 2, 1, vectors.data.cast("B"))
        other = Storage.open(folder)
        with other.read() as reader:
            assert reader.head.n == 1
        code = (
            f"import sys; sys.path[:0] = {sys.path!r}\n"
            "from cormorant.storage import Storage\n"
            f"with Storage.open({str(folder)!r}).read() as reader: print(reader.head.n)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "1\n"
        assert (folder / "vectors" / "1.f32").stat().st_size == 16
        writer.commit(records=[NewRecord("b", "", "{}")], vectors=vectors)
    assert storage.verify() == []
    storage.close()
    other.close()


def test_a_mapped_page_is_never_cut_off(folder: Path) -> None:
    """Touching one would be SIGBUS; this process would not live to tell."""
    storage = Storage.open(folder)
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(f"{i}", "", "{}") for i in range(3000)],
            vectors=np.ones((3000, 2), np.float32),
        )
    path = folder / "vectors" / "1.f32"
    with path.open("ab") as file:  # what a writer that died left: several pages
        file.write(b"\xff" * 100_000)
    storage.close()
    storage = Storage.open(folder)
    with storage.read() as reader:
        vectors = reader.vectors()
        assert vectors is not None
        with storage.write():
            assert path.stat().st_size == 24_000
        assert vectors.sum() == 6000
        compact(storage)
        assert not path.exists()
        assert vectors.sum() == 6000
    assert vectors.sum() == 6000
    storage.close()


def test_a_generation_that_goes_between_a_readers_head_and_its_opening(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, other = Storage.open(folder), Storage.open(folder)
    add(storage, "a", "bb")
    with storage.write() as writer:
        writer.commit(dead_rows=[1])
    overtaken = []
    pinned_for = Ground.pinned_for

    def slow(ground: Ground, head):  # type: ignore[no-untyped-def]
        if ground is other._ground and len(overtaken) < 3:
            overtaken.append(head.generation)
            compact(storage)
        return pinned_for(ground, head)

    monkeypatch.setattr(Ground, "pinned_for", slow)
    with other.read() as reader:
        assert reader.head.generation == 4
        vectors = reader.vectors()
        assert vectors is not None
        assert vectors.tolist() == [[2, 1]]
        assert reader.checkpoint() == {"base": {}}
        assert reader.rows_of(["bb"]) == {"bb": 2}
    assert overtaken == [1, 2, 3]
    storage.close()
    other.close()


def test_a_second_store_on_the_file_does_not_drop_the_firsts_locks(folder: Path) -> None:
    """Closing any descriptor of a file drops all of a process's POSIX locks on it."""
    storage = Storage.open(folder)
    add(storage, "a")
    Storage.open(folder).close()
    with storage.read():
        # Another process that opens and closes the file is not the last to do so: if it
        # thought it were, it would move SQLite's log into the file and remove it.
        code = (
            "import sqlite3; c = sqlite3.connect("
            f"{str(folder / 'cormorant.sqlite')!r}); "
            "c.execute('SELECT * FROM head').fetchall(); c.close()"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        assert (folder / "cormorant.sqlite-wal").exists()
    add(storage, "b")
    storage.close()
    storage = Storage.open(folder)
    with storage.read() as reader:
        assert reader.rows_of(["a", "b"]) == {"a": 1, "b": 2}
    storage.close()


def test_compaction_rewrites_no_rows_of_the_database(folder: Path) -> None:
    """Renumbering rows under the lock would write the whole database once more."""
    storage = Storage.open(folder)
    with storage.write() as writer:
        writer.commit(records=[NewRecord(f"{i}", "x" * 500, "{}") for i in range(2000)])
        writer.commit(dead_rows=range(1, 1000))
    with storage.read() as reader:
        keep = np.arange(999, 2000)
        new = storage.new_generation(reader, keep)
    log = folder / "cormorant.sqlite-wal"
    with new:
        new.seal({"base": {}})
        before = log.stat().st_size
        with storage.write() as writer:
            writer.switch_generation(new)
        assert log.stat().st_size - before < 100_000
    assert storage.verify() == []
    storage.close()


def test_a_pinned_reader_costs_log_and_nothing_else(folder: Path) -> None:
    storage, other = Storage.open(folder), Storage.open(folder)
    add(storage, "a")
    with other.read() as reader:
        for i in range(30):
            add(storage, f"{i}")
        compact(storage)
        assert reader.rows_of(["a", "3"]) == {"a": 1}
        with storage.read() as now:
            assert len(now.live_rows()) == 31
    storage.close()
    other.close()


def test_nothing_is_expected_of_sqlite_that_old_builds_lack(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No statement uses RETURNING, STRICT, ->>, jsonb or unhex, whatever is run."""
    seen: list[str] = []
    connect = sqlite3.connect

    def traced(*args, **kwargs):  # type: ignore[no-untyped-def]
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    storage = Storage.open(folder)
    add(storage, "a", "b")
    with storage.write() as writer:
        writer.commit(dead_rows=[1], config={"x": 1})
        writer.save_checkpoint({}, 2)
    compact(storage)
    with storage.write() as writer:
        writer.reclaim()
    storage.backup(folder.parent / "copy")
    assert storage.verify() == []
    storage.close()
    assert len(seen) > 50
    words = ("RETURNING", "STRICT", "->", "json", "unhex", "string_agg", "concat", "carray")
    assert not [sql for sql in seen for word in words if word.lower() in sql.lower()]


def test_old_text_goes_though_sqlite_was_built_without_secure_delete(folder: Path) -> None:
    connect = sqlite3.connect

    class Insecure(sqlite3.Connection):
        def execute(self, sql, *args):  # type: ignore[no-untyped-def]
            return super().execute(sql.replace("secure_delete = ON", "secure_delete = OFF"), *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Insecure, **k))
        storage = Storage.open(folder)
        for i in range(300):
            with storage.write() as writer:
                writer.commit(records=[NewRecord(f"{i}", f"needle-{i}-" + "x" * 300, "{}")])
        with storage.write() as writer:
            writer.commit(dead_rows=[r for r in range(1, 301) if r % 7])
        compact(storage)
        with storage.write() as writer:
            assert not writer.reclaim().pending_readers
        bytes_ = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
        found = [i for i in range(300) if f"needle-{i}-".encode() in bytes_]
        assert found == [i for i in range(300) if not (i + 1) % 7]
        storage.close()
    assert names(folder / "vectors") == ["2.f32", "2.rows"]
