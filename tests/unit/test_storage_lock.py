"""One writer at a time, whatever threads, processes and forks there are."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import StoreClosed, StoreError, StoreLocked
from cormorant.storage import NewRecord, Storage, lock

pytestmark = pytest.mark.filterwarnings(
    # The tests fork on purpose, with the threads that pytest's plugins may have.
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)

HOLDER = """
import sys
sys.path[:0] = {path!r}
from cormorant.storage import Storage
storage = Storage.open({folder!r})
with storage.write():
    print("holding", flush=True)
    sys.stdin.readline()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Storage.open(tmp_path / "kb").close()
    return tmp_path / "kb"


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, in the middle of a write."""
    code = HOLDER.format(path=sys.path, folder=str(folder))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process
        process.kill()


def add(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(records=[NewRecord(id, id, "{}") for id in ids])


def ids(storage: Storage) -> list[str]:
    with storage.read() as reader:
        return [record.id for batch in reader.scan() for record in batch]


def tell(process: subprocess.Popen[str]) -> None:
    """Let it go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def in_child(work: Callable[[], None]) -> None:
    """Run ``work`` in a forked child and fail if it does."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - nothing may unwind into pytest
            import traceback

            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status == 0


def test_another_process_is_named_and_waited_for(
    folder: Path, holder: subprocess.Popen[str]
) -> None:
    storage = Storage.open(folder, lock_timeout_s=0.05)
    with pytest.raises(StoreLocked, match=f"by process {holder.pid}; waited 0.05 s") as caught:
        add(storage, "a")
    assert caught.value.pid == holder.pid
    assert ids(storage) == []  # reading needs no lock
    storage.close()
    patient = Storage.open(folder, lock_timeout_s=30)
    threading.Timer(0.1, lambda: tell(holder)).start()
    add(patient, "b")
    assert ids(patient) == ["b"]
    patient.close()


def test_a_holder_that_dies_leaves_no_lock(folder: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    storage = Storage.open(folder, lock_timeout_s=0)
    add(storage, "a")
    storage.close()


def test_processes_take_turns(folder: Path, holder: subprocess.Popen[str]) -> None:
    """The lock is one call's, not the store's: the other has it open still."""
    tell(holder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "done\n"
    storage = Storage.open(folder, lock_timeout_s=5)
    add(storage, "a")
    storage.close()


def test_two_stores_of_one_process_are_two_writers(folder: Path) -> None:
    one, two = Storage.open(folder), Storage.open(folder, lock_timeout_s=0.02)
    with one.write() as writer:
        with pytest.raises(StoreLocked, match="another thread or store object") as caught:
            add(two, "a")
        assert caught.value.pid == os.getpid()
        writer.commit(records=[NewRecord("b", "", "{}")])
    add(two, "c")
    assert ids(one) == ["b", "c"]
    one.close()
    two.close()


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_threads_take_turns(folder: Path, where: str) -> None:
    storage = Storage.open(folder if where == "folder" else ":memory:", lock_timeout_s=60)
    seen: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for i in range(10):
                add(storage, f"{name}-{i}")
                with storage.read() as reader:
                    assert len(reader.live_rows()) == reader.head.n
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            seen.append(error)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not seen
    assert sorted(ids(storage)) == sorted(f"{n}-{i}" for n in range(6) for i in range(10))
    assert storage.verify() == []
    storage.close()


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_a_thread_waits_no_longer_than_it_should(folder: Path, where: str) -> None:
    storage = Storage.open(folder if where == "folder" else ":memory:", lock_timeout_s=0.02)
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with storage.write():
            inside.set()
            done.wait(30)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    inside.wait(30)
    with pytest.raises(StoreLocked) as caught:
        add(storage, "a")
    assert caught.value.pid == os.getpid()
    done.set()
    thread.join()
    add(storage, "a")
    storage.close()


def test_a_lock_file_that_was_removed_guards_nothing(folder: Path) -> None:
    """A writer who waited on the removed file must notice that it is another one now."""
    storage = Storage.open(folder, lock_timeout_s=5)
    with Storage.open(folder).write():
        (folder / "lock").unlink()
        add(storage, "a")  # the new file is free: nothing better can be done here
    other = Storage.open(folder, lock_timeout_s=0.02)
    with storage.write() as writer:
        with pytest.raises(StoreLocked):
            add(other, "b")
        writer.commit(records=[NewRecord("c", "", "{}")])
    assert ids(storage) == ["a", "c"]
    storage.close()
    other.close()


def test_a_lock_on_a_file_that_has_just_lost_its_name_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(folder, lock_timeout_s=5)
    other = Storage.open(folder, lock_timeout_s=0.02)
    real, calls = lock.try_lock, []

    def slow(fd: int) -> bool:
        calls.append(fd)
        if len(calls) == 1:  # between its opening and its locking
            (folder / "lock").unlink()
        return real(fd)

    monkeypatch.setattr(lock, "try_lock", slow)
    with storage.write(), pytest.raises(StoreLocked):
        add(other, "a")
    assert len(calls) > 2
    storage.close()
    other.close()


def test_a_writer_whose_lock_was_removed_does_not_overwrite(folder: Path) -> None:
    one, two = Storage.open(folder), Storage.open(folder)
    with one.write() as writer:
        (folder / "lock").unlink()
        add(two, "a")
        with pytest.raises(StoreError, match="changed by a writer without the lock"):
            writer.commit(records=[NewRecord("b", "", "{}")])
    assert ids(one) == ["a"]
    one.close()
    two.close()


def test_a_forked_child_is_told_to_open_again(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "a")

    def child() -> None:
        says = f"opened in process {os.getppid()}.*Open it again in this process"
        for use in (storage.read, storage.write):
            with pytest.raises(StoreClosed, match=says), use():
                pass
        storage.close()  # lets the parent's files be

    in_child(child)
    add(storage, "b")
    assert ids(storage) == ["a", "b"]
    storage.close()


def test_a_forked_child_goes_on_with_nothing_that_was_begun(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "a", "b", "c")
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord("d", "", "{}")], vectors=np.ones((1, 2), np.float32), config={"x": 1}
        )
    reader = storage.read()
    reader.__enter__()
    scan = reader.scan(batch=1)
    assert next(scan)[0].id == "a"
    new = storage.new_generation(reader, np.arange(4))
    writer = storage.write()
    writer.__enter__()
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}

    def child() -> None:
        works: list[Callable[[], object]] = [
            lambda: list(scan),
            lambda: reader.records([1]),
            reader.vectors,
            reader.checkpoint,
            reader.pin_problems,
            lambda: new.seal({"base": {}}),
            lambda: writer.commit(
                records=[NewRecord("e", "", "{}")], vectors=np.ones((1, 2), np.float32)
            ),
            lambda: writer.save_checkpoint({"base": {}}, writer.head.lsn),
            lambda: writer.switch_generation(new),
            writer.reclaim,
        ]
        for work in works:
            with pytest.raises(StoreClosed, match="Open it again in this process"):
                work()

    in_child(child)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    writer.__exit__(None, None, None)
    assert [records[0].id for records in scan] == ["b", "c", "d"]
    new.close()
    reader.__exit__(None, None, None)
    assert storage.verify() == []
    storage.close()


def test_what_a_forked_child_commits_is_not_lost(folder: Path) -> None:
    """The parent's last close removes SQLite's log, unless the child's lock on the file is real."""
    storage = Storage.open(folder)
    add(storage, "parent")
    ready, go = os.pipe(), os.pipe()

    def child() -> None:
        mine = Storage.open(folder)
        add(mine, "before")
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        add(mine, "after")
        # No close: the child dies here, as it may.

    pid = os.fork()
    if pid == 0:
        try:
            child()
        finally:
            os._exit(0)
    os.read(ready[0], 1)
    storage.close()
    os.write(go[1], b"x")
    os.waitpid(pid, 0)
    again = Storage.open(folder)
    assert ids(again) == ["parent", "before", "after"]
    assert again.verify() == []
    again.close()


def test_a_fork_in_the_middle_of_a_read(folder: Path) -> None:
    """Then SQLite's locks cannot be put right in the child, and the file is refused there."""
    storage = Storage.open(folder)
    add(storage, "a")
    with storage.read() as reader:

        def child() -> None:
            with pytest.raises(StoreError, match="forked while a call on the store was running"):
                Storage.open(folder)
            reader.__exit__(None, None, None)  # what unwinding would do

        in_child(child)
        assert reader.rows_of(["a"]) == {"a": 1}
    add(storage, "b")
    assert ids(storage) == ["a", "b"]
    in_child(lambda: Storage.open(folder).close())
    storage.close()


def test_a_fork_waits_for_other_threads_reads(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "a")
    inside = threading.Event()

    def read() -> None:
        with storage.read() as reader:
            inside.set()
            time.sleep(0.05)
            assert reader.rows_of(["a"]) == {"a": 1}

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    inside.wait(30)

    def child() -> None:
        mine = Storage.open(folder)
        assert ids(mine) == ["a"]
        mine.close()

    in_child(child)
    thread.join()
    storage.close()


def test_a_forked_child_does_not_keep_the_lock(folder: Path) -> None:
    storage = Storage.open(folder)
    other = Storage.open(folder, lock_timeout_s=5)
    go = os.pipe()
    with storage.write() as writer:
        pid = os.fork()
        if pid == 0:
            os.read(go[0], 1)
            os._exit(0)
        writer.commit(records=[NewRecord("a", "", "{}")])
    add(other, "b")
    os.write(go[1], b"x")
    os.waitpid(pid, 0)
    assert ids(other) == ["a", "b"]
    storage.close()
    other.close()


ORPHAN = """
import os, sys
sys.path[:0] = {path!r}
from cormorant.storage import Storage
storage = Storage.open({folder!r})
with storage.write():
    pid = os.fork()
    if pid == 0:
        os.close(1)
        sys.stdin.readline()
        os._exit(0)
    print(pid, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_writer_that_dies_is_not_survived_by_its_childs_lock(folder: Path) -> None:
    code = ORPHAN.format(path=sys.path, folder=str(folder))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        orphan = int(process.stdout.readline())
        process.wait()
        os.kill(orphan, 0)  # it lives
        storage = Storage.open(folder, lock_timeout_s=5)
        add(storage, "a")
        storage.close()
        os.kill(orphan, signal.SIGKILL)


def test_a_program_that_is_started_meanwhile_inherits_nothing(folder: Path) -> None:
    storage = Storage.open(folder)
    other = Storage.open(folder, lock_timeout_s=5)
    with storage.write(), subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        listing = Path(f"/proc/{child.pid}/fd")
        if listing.exists():
            held = {str(entry.readlink()) for entry in listing.iterdir()}
            assert not [name for name in held if str(folder) in name]
        child.kill()
    add(other, "a")
    storage.close()
    other.close()


def test_many_forks_while_everybody_is_at_work(folder: Path) -> None:
    storage = Storage.open(folder, lock_timeout_s=60)
    stop = threading.Event()
    seen: list[BaseException] = []

    def work(name: str) -> None:
        count = 0
        try:
            while not stop.is_set():
                add(storage, f"{name}{count}")
                count += 1
                assert ids(storage)
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            seen.append(error)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for round_ in range(8):

        def child(round_: int = round_) -> None:
            # In use at that moment, if the fork's patience was too short; then it is refused.
            with contextlib.suppress(StoreError):
                mine = Storage.open(folder, lock_timeout_s=60)
                add(mine, f"child{round_}")

        in_child(child)
    stop.set()
    for thread in threads:
        thread.join()
    assert not seen
    assert storage.verify() == []
    storage.close()
