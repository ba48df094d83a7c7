"""Does the crash laboratory itself find what it should, on small programs known good or bad?"""

from __future__ import annotations

import errno
import random
import sqlite3
import sys
import textwrap
from pathlib import Path

import pytest
from crashlab.disk import MODES, cut_points, durable, image
from crashlab.events import ROOT, Ack, Link, Move, Recording, Resize, Sync, Tree, Write
from crashlab.tracer import Fault, record

pytestmark = pytest.mark.usefixtures("traced")

PRELUDE = """
import os, sqlite3, sys, shutil
folder = sys.argv[1]
os.write(1, b"ready\\n")
sys.stdin.readline()
"""

REPLACE = """
fd = os.open(folder + "/new", os.O_CREAT | os.O_WRONLY)
os.write(fd, b"x" * 3000)
os.fsync(fd)
os.close(fd)
os.rename(folder + "/new", folder + "/file")
fd = os.open(folder, os.O_RDONLY)
os.fsync(fd)
os.write(1, b"ack\\n")
"""

SQLITE = """
db = sqlite3.connect(folder + "/db", isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE t (a INTEGER, b TEXT)")
for i in range(8):
    db.execute("BEGIN")
    for k in range(4):
        db.execute("INSERT INTO t VALUES (?, ?)", (i, "y" * 700))
    db.execute("COMMIT")
    os.write(1, b"ack\\n")
    if i == 5:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""


def run(folder: Path, program: str, *faults: Fault) -> Recording:
    script = PRELUDE + textwrap.dedent(program)
    return record([sys.executable, "-S", "-c", script, str(folder)], folder, faults=faults)


def bad_files(recording: Recording) -> int:
    """Images where ``file`` is not what was acknowledged."""
    bad = 0
    for cut in cut_points(recording):
        for mode in MODES:
            for seed in range(3):
                found = image(recording, cut, mode, random.Random(seed)).files().get("file")
                whole = found == b"x" * 3000
                bad += not (whole or (found is None and not recording.acks(cut)))
    return bad


def bad_databases(recording: Recording, place: Path) -> int:
    """Images where SQLite lost an acknowledged transaction or shows a half one."""
    bad = 0
    for cut in cut_points(recording)[::5]:
        for seed, mode in enumerate(MODES):
            folder = place / f"{cut}-{mode}"
            image(recording, cut, mode, random.Random(cut * 100 + seed)).write_to(folder)
            acks = len(recording.acks(cut))
            db = sqlite3.connect(folder / "db")
            try:
                rows = db.execute("SELECT count(*) FROM t").fetchone()[0]
                bad += rows not in (4 * acks, 4 * acks + 4)
                bad += db.execute("PRAGMA integrity_check").fetchone()[0] != "ok"
            except sqlite3.DatabaseError:
                bad += acks > 0
            finally:
                db.close()
    return bad


def test_a_correct_replacement_survives(tmp_path: Path) -> None:
    recording = run(tmp_path, REPLACE)
    assert (recording.status, recording.output) == (0, "")
    assert recording.acks() == ["ack"]
    assert recording.unrecorded == []
    assert bad_files(recording) == 0


@pytest.mark.parametrize("path", ["new", r"^\.$"], ids=["file sync", "directory sync"])
def test_a_missing_sync_is_found(tmp_path: Path, path: str) -> None:
    recording = run(tmp_path, REPLACE, Fault("skip", calls=("fsync",), path=path))
    assert recording.struck == [("fsync", "." if "." in path else "new")]
    assert bad_files(recording) > 0


def test_sqlite_in_full_mode_survives(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    recording = run(tmp_path / "live", SQLITE)
    assert recording.output == ""
    assert len(recording.acks()) == 8
    assert bad_databases(recording, tmp_path / "images") == 0


def test_sqlite_without_its_syncs_does_not(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    every = Fault("skip", times=10**9, calls=("fsync", "fdatasync"))
    recording = run(tmp_path / "live", SQLITE, every)
    assert bad_databases(recording, tmp_path / "images") > 0


def test_the_recording_misses_nothing(tmp_path: Path) -> None:
    """Replayed with nothing lost, it is the folder itself, byte by byte."""
    (tmp_path / "old").write_bytes(b"before")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "leaf").write_bytes(b"leaf")
    program = """
    os.mkdir(folder + "/sub")
    with open(folder + "/sub/a", "wb") as file:
        file.write(b"a" * 10_000)
        file.seek(100)
        file.write(b"b" * 10)
        file.truncate(9_000)
    with open(folder + "/sub/a", "ab") as file:
        file.write(b"tail")
    with open(folder + "/old", "wb") as file:
        file.write(b"after")
    shutil.copyfile(folder + "/sub/a", folder + "/copy")
    os.rename(folder + "/sub", folder + "/moved")
    os.chdir(folder)
    os.rename("moved/a", "moved/b")
    shutil.rmtree("gone")
    fd = os.open("filled", os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(fd, 0, 700)
    os.pwrite(fd, b"end", 2000)
    os.truncate("filled", 2001)
    db = sqlite3.connect(folder + "/db")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(999)])
    db.commit()
    os._exit(0)
    """
    recording = run(tmp_path, program)
    assert (recording.status, recording.output) == (0, "")
    assert recording.unrecorded == []
    last = len(recording.events)
    replayed = image(recording, last, "kept", random.Random(0)).files()
    real = {}
    for path in tmp_path.rglob("*"):
        name = str(path.relative_to(tmp_path))
        if path.is_dir():
            real[f"{name}/"] = b""
        elif not name.endswith("-shm"):
            real[name] = path.read_bytes()
    assert replayed.keys() == real.keys()
    assert replayed == real


def test_what_cannot_be_followed_is_said(tmp_path: Path) -> None:
    program = """
    import mmap
    with open(folder + "/m", "wb+") as file:
        file.truncate(4096)
        mmap.mmap(file.fileno(), 4096)[0] = 1
    """
    assert run(tmp_path, program).unrecorded == ["mmap on m"]


def test_a_fault_strikes_the_chosen_call(tmp_path: Path) -> None:
    program = """
    fd = os.open(folder + "/f", os.O_CREAT | os.O_WRONLY)
    for i in range(4):
        try:
            os.write(1, b"wrote %d\\n" % os.write(fd, b"12345678"))
        except OSError as error:
            os.write(1, b"errno %d\\n" % error.errno)
    os.write(1, b"end\\n")
    """
    full = Fault("fail", at=1, calls=("write",), path="^f$", error=errno.ENOSPC)
    short = Fault("short", at=2, calls=("write",), path="^f$")
    recording = run(tmp_path, program, full, short)
    assert recording.acks() == ["wrote 8", f"errno {errno.ENOSPC}", "wrote 4", "wrote 8", "end"]
    assert (tmp_path / "f").read_bytes() == b"12345678123412345678"
    assert [name for name, _ in recording.struck] == ["write", "write"]


@pytest.mark.parametrize(("kind", "size"), [("kill", 8), ("kill-after", 16)])
def test_a_kill_at_the_second_write(tmp_path: Path, kind: str, size: int) -> None:
    program = """
    fd = os.open(folder + "/f", os.O_CREAT | os.O_WRONLY)
    for i in range(4):
        os.write(fd, b"12345678")
    """
    recording = run(tmp_path, program, Fault(kind, at=1, calls=("write",)))  # type: ignore[arg-type]
    assert recording.status == -9
    assert (tmp_path / "f").stat().st_size == size


def test_threads_are_followed(tmp_path: Path) -> None:
    program = """
    import threading
    def work(i):
        with open(f"{folder}/t{i}", "wb") as file:
            file.write(bytes(10))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    """
    recording = run(tmp_path, program)
    assert recording.counts()["Link"] == recording.counts()["Write"] == 5


# What the model of the disk allows, on recordings made by hand


def hand(*events: object) -> Recording:
    return Recording(Tree(), list(events))  # type: ignore[arg-type]


def possible(recording: Recording, name: str = "f") -> set[bytes | None]:
    """All contents a file may have after the last event."""
    cut = len(recording.events)
    return {
        image(recording, cut, mode, random.Random(seed)).files().get(name)
        for mode in MODES
        for seed in range(60)
    }


MADE = (Link(ROOT, "f", 1, directory=False), Sync(ROOT, 1, "."))


def test_an_unsynced_write_may_be_lost_torn_or_kept() -> None:
    found = possible(hand(*MADE, Write(1, 0, b"a" * 512 + b"b" * 512)))
    assert {b"", b"a" * 512, b"a" * 512 + b"b" * 512, bytes(512) + b"b" * 512} <= found


def test_a_sync_covers_what_came_before_it_began() -> None:
    events = (*MADE, Write(1, 0, b"old"), Write(1, 0, b"new"))
    assert possible(hand(*events, Sync(1, 4, "f"))) == {b"new"}
    assert possible(hand(*events, Sync(1, 3, "f"))) == {b"old", b"new"}


def test_a_failed_sync_is_not_made_good_by_a_later_one() -> None:
    lost = hand(*MADE, Write(1, 0, b"w"), Sync(1, 3, "f", failed=True), Sync(1, 4, "f"))
    assert b"" in possible(lost)
    again = hand(*lost.events, Write(1, 0, b"w"), Sync(1, 6, "f"))
    assert possible(again) == {b"w"}


def test_a_failed_sync_of_a_directory_changes_nothing() -> None:
    made = (Link(ROOT, "f", 1, directory=False), Sync(ROOT, 1, ".", failed=True))
    assert possible(hand(*made)) == {None, b""}
    assert possible(hand(*made, Sync(ROOT, 2, "."))) == {b""}


def test_names_need_their_directory_synced() -> None:
    named = (Link(ROOT, "f", 1, directory=False), Write(1, 0, b"1"), Sync(1, 2, "f"))
    assert possible(hand(*named)) == {None, b"1"}
    moved = (*MADE, Write(1, 0, b"1"), Sync(1, 3, "f"), Move(ROOT, "f", ROOT, "g"))
    assert possible(hand(*moved)) == {None, b"1"}
    assert possible(hand(*moved), "g") == {None, b"1"}


def test_a_cut_may_be_lost_too() -> None:
    found = possible(hand(*MADE, Write(1, 0, b"123"), Sync(1, 3, "f"), Resize(1, 1)))
    assert found == {b"123", b"1"}


def test_durable_is_what_cannot_be_undone() -> None:
    recording = hand(*MADE, Write(1, 0, b"1"), Ack("a"), Sync(1, 4, "f"), Write(1, 1, b"2"))
    assert durable(recording, 6) == {0, 2}
    assert durable(recording, 3) == {0}
    assert recording.acks(3) == []
    assert recording.acks(4) == ["a"]
