"""What is a store, what may become one, and what is refused without being touched."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cormorant.errors import (
    ConfigError,
    CormorantError,
    CorruptionError,
    FormatError,
    NotFound,
    StoreError,
    StoreLocked,
)
from cormorant.storage import FORMAT, Head, NewRecord, Storage
from cormorant.storage.head import head_crc

NOBODY = 65534


def fingerprint(folder: Path) -> dict[str, object]:
    """All there is, with contents and times."""
    return {
        str(p.relative_to(folder)): (p.lstat().st_mtime_ns, p.is_file() and p.read_bytes())
        for p in sorted(folder.rglob("*"))
    }


def make(folder: Path, *ids: str) -> Path:
    with Storage.open(folder).write() as writer:
        writer.commit(records=[NewRecord(id, id, "{}") for id in ids])
    return folder


def sign(connection: sqlite3.Connection) -> None:
    """Make the head's checksum right, as somebody who means harm would."""
    columns = [row[1] for row in connection.execute("PRAGMA table_info(head)")]
    (row,) = connection.execute(f"SELECT {', '.join(columns[1:-1])} FROM head")
    connection.execute("UPDATE head SET crc = ?", (head_crc(Head(*row)),))


def close_all(folder: Path) -> None:
    """Close what a test left to the garbage collector."""
    Storage.open(folder).close()


@pytest.mark.parametrize("existing", [False, True])
def test_a_missing_or_empty_folder_becomes_a_store(tmp_path: Path, existing: bool) -> None:
    folder = tmp_path / "deep" / "er" / "kb"
    if existing:
        folder.mkdir(parents=True)
    storage = Storage.open(folder, config={"a": [1], "dim": 7})
    assert storage.created
    assert storage.path == folder
    assert not storage.in_memory
    assert not storage.read_only
    with storage.read() as reader:
        assert dict(reader.config) == {"a": [1], "dim": 7}
    storage.close()
    assert sorted(p.name for p in folder.iterdir()) == [
        "cormorant.sqlite",
        "derived",
        "lock",
        "vectors",
    ]
    again = Storage.open(folder, config={"a": "ignored"})
    assert not again.created
    with again.read() as reader:
        assert reader.config["a"] == [1]
    again.close()


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_no_store_is_made_where_none_may_be(tmp_path: Path, options: dict[str, bool]) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(NotFound, match="There is no store at"):
            Storage.open(folder, **options)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotFound):
        Storage.open(":memory:", **options)


@pytest.mark.parametrize("config", [{"dim": 0}, {"dim": 1.5}, {"dim": True}, {"x": object()}])
def test_settings_that_cannot_be_kept_leave_nothing(tmp_path: Path, config: object) -> None:
    with pytest.raises(ConfigError):
        Storage.open(tmp_path / "kb", config=config)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError):
        Storage.open(":memory:", config=config)  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [-1, float("nan"), "10", None, True])
def test_a_time_out_is_a_number(tmp_path: Path, timeout: object) -> None:
    with pytest.raises(ConfigError, match="lock_timeout_s"):
        Storage.open(tmp_path / "kb", lock_timeout_s=timeout)  # type: ignore[arg-type]


def test_something_else_is_refused_and_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    full = tmp_path / "full"
    (full / "vectors").mkdir(parents=True)
    (full / "notes.txt").write_text("mine")
    holding = tmp_path / "holding"
    (holding / "vectors").mkdir(parents=True)
    (holding / "vectors" / "1.f32").write_bytes(b"1234")
    text = tmp_path / "text"
    text.mkdir()
    (text / "cormorant.sqlite").write_text("not a database" * 20)
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "cormorant.sqlite").write_bytes(b"")
    other = tmp_path / "other"
    other.mkdir()
    connection = sqlite3.connect(other / "cormorant.sqlite")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = fingerprint(tmp_path)
    for name, says in {
        "file": "is a file, not a store's folder",
        "file/below": "is a file",
        "full": "it holds notes.txt, vectors, and no cormorant.sqlite",
        "holding": "it holds vectors",
        "text": "is not a SQLite file",
        "empty": "is not a SQLite file",
        "other": "not a Cormorant store",
        "dangling": "a link to nothing",
    }.items():
        with pytest.raises(FormatError, match=says):
            Storage.open(tmp_path / name)
    assert fingerprint(tmp_path) == before


def test_a_newer_format_is_refused_and_not_touched(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    before = fingerprint(folder)
    says = f"has format {FORMAT + 1}; this release reads and writes format {FORMAT}.*newer release"
    with pytest.raises(FormatError, match=says):
        Storage.open(folder)
    assert fingerprint(folder) == before


def test_a_newer_format_is_seen_in_the_log_too(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(FormatError, match=f"has format {FORMAT + 1}"):
        Storage.open(folder)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER DELETE ON records BEGIN DELETE FROM config; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON records (text)",
        "DROP TABLE ranges",
        "ALTER TABLE log ADD COLUMN x",
    ],
)
def test_foreign_tables_and_triggers_are_refused(tmp_path: Path, statement: str) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(FormatError, match="does not have the tables of format 1"):
        Storage.open(folder)


def test_sqlites_own_statistics_are_welcome(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute("ANALYZE")
    connection.close()
    Storage.open(folder).close()


@pytest.mark.parametrize(
    "name", ["cormorant.sqlite", "cormorant.sqlite-wal", "vectors", "derived", "lock"]
)
def test_links_in_place_of_a_stores_parts_are_refused(tmp_path: Path, name: str) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    part, away = folder / name, tmp_path / "away"
    if part.exists():
        part.rename(away)
    else:
        away.write_bytes(b"")
    part.symlink_to(away)
    with pytest.raises(FormatError, match=f"{name} is not a plain"):
        Storage.open(folder)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    other = make(tmp_path / "other", "b")
    link = tmp_path / "link"
    link.symlink_to(folder)
    storage = Storage.open(link)
    with storage.read() as reader:
        assert reader.rows_of(["a"]) == {"a": 1}
        link.unlink()
        link.symlink_to(other)  # of no concern to what is open
        with storage.read() as second, storage.write() as writer:
            assert second.rows_of(["a", "b"]) == {"a": 1}
            writer.commit(records=[NewRecord("c", "", "{}")])
    storage.close()
    with Storage.open(folder).read() as reader:
        assert reader.rows_of(["a", "b", "c"]) == {"a": 1, "c": 2}


def test_a_relative_path_means_the_same_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage.open("kb")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with storage.read(), storage.read(), storage.write() as writer:
        writer.commit(records=[NewRecord("a", "", "{}")])
    assert list((tmp_path / "elsewhere").iterdir()) == []
    storage.close()


@pytest.mark.parametrize(
    "assignment",
    ["checkpoint = '../../outside'", "checkpoint = '/etc/passwd'", "checkpoint = 'g1/../../x'"],
)
def test_a_head_cannot_point_outside_of_the_folder(tmp_path: Path, assignment: str) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute(f"UPDATE head SET {assignment}")
    sign(connection)
    connection.commit()
    connection.close()
    storage = Storage.open(folder)
    with pytest.raises(CorruptionError, match="names a checkpoint"), storage.read():
        pass
    storage.close()


@pytest.mark.parametrize(
    "assignment",
    [
        "generation = '../x'",
        "generation = 0",
        "lsn = -1",
        "lsn = NULL",
        "n = 99",
        "n = 1.5",
        "dim = 'three'",
        "dim = 0",
        "base_n = 5",
        "checkpoint_lsn = 9",
    ],
)
def test_a_head_that_makes_no_sense_is_damage(tmp_path: Path, assignment: str) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    try:
        connection.execute(f"UPDATE head SET {assignment}")
    except sqlite3.IntegrityError:
        pytest.skip("SQLite itself refuses this")
    sign(connection)
    connection.commit()
    connection.close()
    with pytest.raises(CorruptionError, match="its head is"):
        Storage.open(folder)


@pytest.mark.parametrize("assignment", ["lsn = 7", "next_row = 99", "files = 1"])
def test_a_head_that_does_not_match_its_checksum_is_damage(tmp_path: Path, assignment: str) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute(f"UPDATE head SET {assignment}")
    connection.commit()
    connection.close()
    with pytest.raises(CorruptionError, match="its head is"):
        Storage.open(folder)


def test_a_damaged_sqlite_file_is_damage(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", *(f"id{i}" for i in range(200)))
    close_all(folder)
    file = folder / "cormorant.sqlite"
    whole = bytearray(file.read_bytes())
    whole[4096:] = os.urandom(len(whole) - 4096)
    file.write_bytes(whole)
    with pytest.raises(CorruptionError) as caught:
        Storage.open(folder)
    assert caught.value.path == str(file)


def test_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    (folder / "vectors").mkdir(parents=True)
    (folder / "vectors" / "1.f32").touch()
    (folder / "lock").write_text("4711")
    (folder / "cormorant.sqlite.new").write_bytes(b"half")
    (folder / "cormorant.sqlite.new-journal").write_bytes(b"half")
    with pytest.raises(NotFound):
        Storage.open(folder, create=False)
    storage = Storage.open(folder)
    assert storage.created
    storage.close()
    assert not list(folder.glob("*.new*"))


def test_a_folder_without_derived_files_gets_one(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    close_all(folder)
    shutil.rmtree(folder / "derived")
    storage = Storage.open(folder)
    with storage.write() as writer:
        writer.commit(records=[NewRecord("b", "", "{}")])
    assert (folder / "derived").is_dir()
    storage.close()
    shutil.rmtree(folder / "vectors")
    with pytest.raises(FormatError, match="has no folder vectors"):
        Storage.open(folder)


def test_read_only_refuses_writes_and_sees_them(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    writer = Storage.open(folder)
    reader = Storage.open(folder, read_only=True)
    assert reader.read_only
    with pytest.raises(StoreError, match="open read-only"), reader.write():
        pass
    with writer.write() as changing:
        changing.commit(records=[NewRecord("b", "", "{}")])
    with reader.read() as snapshot:
        assert snapshot.rows_of(["a", "b"]) == {"a": 1, "b": 2}
    writer.close()
    reader.close()


AS_NOBODY = """
import os, sys
sys.path[:0] = {path!r}
from cormorant.storage import NewRecord, Storage
from cormorant.errors import StoreError
os.setuid({uid})
try:
    storage = Storage.open({folder!r}, read_only={read_only})
    with storage.read() as reader:
        print("read", reader.rows_of(["a"]), reader.vectors().tolist(), storage.read_only)
    with storage.write():
        pass
except StoreError as error:
    print(type(error).__name__, error)
"""


def as_nobody(folder: Path, *, read_only: bool = False) -> str:
    """What a user without any right to write sees."""
    for place in (*reversed(folder.parents), folder):
        if not os.access(place, os.X_OK):
            pytest.skip(f"{place} cannot be searched")
    code = AS_NOBODY.format(
        path=sys.path, uid=NOBODY if os.getuid() == 0 else os.getuid(), folder=str(folder),
        read_only=read_only,
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def locked_up(tmp_path: Path) -> Path:
    """A closed store that nobody may write."""
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == os.getuid() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o055)
    folder = tmp_path / "kb"
    storage = Storage.open(folder, config={"dim": 1})
    with storage.write() as writer:
        writer.commit(records=[NewRecord("a", "", "{}")], vectors=np_ones())
    storage.close()
    return folder


def np_ones():  # type: ignore[no-untyped-def]
    import numpy as np

    return np.ones((1, 1), np.float32)


def forbid(folder: Path) -> None:
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o555 if place.is_dir() else 0o444)


def allow(folder: Path) -> None:
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_read_only_folder_opens_to_be_read(locked_up: Path, read_only: bool) -> None:
    forbid(locked_up)
    before = fingerprint(locked_up)
    said = as_nobody(locked_up, read_only=read_only).splitlines()
    assert said[0] == "read {'a': 1} [[1.0]] True"
    assert said[1].startswith("StoreError")
    assert "is open read-only" in said[1]
    assert fingerprint(locked_up) == before
    allow(locked_up)


def test_a_read_only_folder_with_a_log_says_what_to_do(locked_up: Path) -> None:
    (locked_up / "cormorant.sqlite-wal").write_bytes(b"")
    forbid(locked_up)
    said = as_nobody(locked_up)
    assert "is read-only for this user, and it holds cormorant.sqlite-wal" in said
    assert "Open it once where it can be written" in said
    allow(locked_up)


def test_no_store_is_made_in_a_read_only_folder(locked_up: Path) -> None:
    empty = locked_up.parent / "empty"
    empty.mkdir()
    empty.chmod(0o555)
    said = as_nobody(empty)
    assert said.startswith("StoreError Could not")
    assert "EACCES" in said
    assert list(empty.iterdir()) == []
    empty.chmod(0o755)


def test_a_foreign_lock_on_the_file_is_said(tmp_path: Path) -> None:
    folder = make(tmp_path / "kb", "a")
    storage = Storage.open(folder)
    foreign = sqlite3.connect(folder / "cormorant.sqlite", isolation_level=None)
    with storage.write():
        pass
    foreign.execute("BEGIN IMMEDIATE")
    with storage.write() as writer:
        writer._open.execute("PRAGMA busy_timeout = 1").fetchall()
        with pytest.raises(StoreLocked, match="something else holds its SQLite lock"):
            writer.commit(records=[NewRecord("b", "", "{}")])
    foreign.execute("ROLLBACK")
    foreign.close()
    with storage.write() as writer:  # it was no failure of the disk: the store goes on
        writer.commit(records=[NewRecord("b", "", "{}")])
    storage.close()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a\0b", "no path has that"),
        ("\ud800", "no path has that"),
        ("x" * 300, "ENAMETOOLONG"),
        ("x/" + "y" * 300 + "/z", "ENAMETOOLONG"),
        ("/proc/no such folder", "Could not"),
        ("/proc/self/stat/kb", "is a file|Could not"),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_a_path_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str, create: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    says = says if create else f"{says}|There is no store at"
    with pytest.raises(CormorantError, match=says):
        Storage.open(name, create=create)
    storage = Storage.open(":memory:")
    if create:
        with pytest.raises(CormorantError, match=says):
            storage.backup(name)
    storage.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [4090, 4082, 4072])
@pytest.mark.parametrize("existing", [False, True])
def test_folders_made_for_a_store_that_cannot_be_are_taken_away(
    tmp_path: Path, existing: bool, length: int
) -> None:
    deep = tmp_path / "a"
    while len(str(deep)) < length - 1:  # room for the folder, not for all that lies in it
        deep /= "a" * min(250, length - 1 - len(str(deep)))
    if existing:
        (tmp_path / "a").mkdir()
    with pytest.raises(StoreError, match=r"ENAMETOOLONG|CANTOPEN"):
        Storage.open(deep)
    assert [p.name for p in tmp_path.iterdir()] == ["a"] * existing
    storage = Storage.open(":memory:")
    with pytest.raises(StoreError, match=r"ENAMETOOLONG|CANTOPEN"):
        storage.backup(deep)
    storage.close()
    assert [p.name for p in tmp_path.rglob("*")] == ["a"] * existing
