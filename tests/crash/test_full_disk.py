"""What happens on a disk that is really full: a small file system, and a limit on file sizes?

The injected faults of `test_faults.py` fail one call at a time; here everything fails that needs
room, SQLite's memory-mapped file included, until there is room again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FILL = """
import os, resource, sys
from pathlib import Path
from crashlab.judge import contents, differences
from crashlab.plan import item, open_store
from cormorant.errors import StoreError

def say(text):
    os.write(1, text.replace("\\n", " ").encode() + b"\\n")

def batch(number):
    return {r.id: r for r in (item(number, 0, i, 20) for i in range(20))}

folder, limit = Path(sys.argv[1]), int(sys.argv[2])
store = open_store(folder)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
there, number = {}, 0
while number < 1000:
    try:
        store.add(batch(number).values())
    except StoreError as error:
        say(f"fail {type(error).__name__} {error}")
        break
    there.update(batch(number))
    number += 1
say(f"stored {number} {differences(contents(store), there)}")
try:
    store.add(batch(number).values())
    say("stored once more")
except StoreError as error:
    say(f"again {type(error).__name__} {error}")
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
store.close()
with open_store(folder) as store:
    found = contents(store)
    whole = not differences(found, there) or not differences(found, {**there, **batch(number)})
    store.add(batch(number).values())
    there.update(batch(number))
    report = store.check()
    say(f"reopened {whole} {differences(contents(store), there)} {report.ok}")
"""


def lines(child: subprocess.Popen[bytes], count: int) -> list[str]:
    assert child.stdout is not None
    return [child.stdout.readline().decode().strip() for _ in range(count)]


@contextmanager
def filling(folder: Path, limit: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", FILL, str(folder), str(limit)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of its own in memory; skips where it may not be mounted."""
    place.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if sys.platform != "linux" or mount is None or unmount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root on Linux")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run([unmount, "-l", str(place)], check=True)


def judge_filling(child: subprocess.Popen[bytes], *, full: str) -> None:
    """The first part: until it is full."""
    failed, stored, again = lines(child, 3)
    assert failed.startswith("fail StoreError "), failed
    assert full in failed
    word, number, wrong = stored.split(maxsplit=2)
    assert word == "stored"
    assert int(number) > 2
    assert wrong == "[]"
    assert again.startswith("again StoreError "), again


def judge_room(child: subprocess.Popen[bytes]) -> None:
    """The second part: once there is room again."""
    assert child.stdin is not None
    child.stdin.write(b"\n")
    child.stdin.flush()
    assert lines(child, 1) == ["reopened True [] True"]
    assert child.wait() == 0


def test_a_full_file_system(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        (disk / "filler").write_bytes(bytes(500_000))
        with filling(disk / "store") as child:
            judge_filling(child, full="the disk is full")
            (disk / "filler").unlink()
            judge_room(child)


def test_a_limit_on_file_sizes(tmp_path: Path) -> None:
    with filling(tmp_path / "store", limit=300_000) as child:
        judge_filling(child, full="SQLITE_IOERR_WRITE")
        judge_room(child)


def test_a_disk_too_small_to_begin_with(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        argv = [sys.executable, "-c", FILL, str(disk / "store"), "0"]
        refused = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert refused.returncode == 1
        assert b"StoreError: Could not " in refused.stderr
        assert b"the disk is full" in refused.stderr
        # It is in nobody's way: with room, the same folder can become a store.
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        with filling(disk / "store") as child:
            judge_filling(child, full="the disk is full")
