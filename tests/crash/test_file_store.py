"""LocalFileStore under kill -9: every value is whole, the old or the new one."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from cormorant.langchain.storage import LocalFileStore

KEYS = ("文档/第一章", "b", "c/d/e")
SIZE = 400_000
KILLS = 12


def value(number):
    return bytes([number % 256]) * SIZE


def write_for_ever(root, begun):
    files = LocalFileStore(root)
    number = 0
    while True:
        number += 1
        for key in KEYS:
            files.mset([(key, value(number))])
        if number == 1:
            os.write(begun, b"x")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_writer_leaves_whole_values(tmp_path):
    rng = random.Random(7)
    drafts = 0
    for _ in range(KILLS):
        reading, begun = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                write_for_ever(tmp_path, begun)
            finally:
                os._exit(1)
        os.read(reading, 1)  # all keys are there
        os.close(reading)
        os.close(begun)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        files = LocalFileStore(tmp_path)
        assert list(files.yield_keys()) == sorted(KEYS)
        for kept in files.mget(KEYS):
            assert len(kept) == SIZE
            assert len(set(kept)) == 1
        drafts = sum(1 for path in tmp_path.rglob("*~"))
    print(f"{drafts} of {KILLS} kills fell into a write")
    assert drafts, "no kill fell into a write: the test shows nothing"
    LocalFileStore(tmp_path).mset([("b", b"after")])
    assert LocalFileStore(tmp_path).mget(["b"]) == [b"after"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "folder"])
def test_a_write_that_fails_at_any_call_leaves_the_old_value(tmp_path, monkeypatch, call):
    files = LocalFileStore(tmp_path)
    files.mset([("a", b"old")])
    home = "cormorant.langchain.storage.file_system"

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    if call == "write":
        opened = type(tmp_path).open

        class Full:
            def __init__(self, file):
                self.file = file

            def __enter__(self):
                self.file.__enter__()
                return self

            def __exit__(self, *args):
                return self.file.__exit__(*args)

            def write(self, value):
                self.file.write(value[:1])
                fail()

        monkeypatch.setattr(type(tmp_path), "open", lambda self, *args: Full(opened(self, *args)))
    elif call == "fsync":
        monkeypatch.setattr(f"{home}.os.fsync", fail)
    elif call == "replace":
        monkeypatch.setattr(type(tmp_path), "replace", fail)
    else:
        monkeypatch.setattr(f"{home}._sync_folder", fail)
    with pytest.raises(OSError, match="No space"):
        files.mset([("a", b"new")])
    monkeypatch.undo()
    # Once it is renamed, the new value is there; only its survival of a power loss is unknown.
    assert files.mget(["a"]) == [b"new" if call == "folder" else b"old"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
