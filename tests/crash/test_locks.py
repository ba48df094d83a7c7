"""Who may write, and what does the other one hear?"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crashlab.judge import contents
from crashlab.plan import item, open_store

from cormorant.errors import StoreLocked
from cormorant.model import Record

PRELUDE = """
import os, sys
from pathlib import Path
from crashlab.plan import item, open_store
from cormorant.errors import StoreClosed, StoreError
folder = Path(sys.argv[1])
say = lambda text: os.write(1, text.encode() + b"\\n")
wait = sys.stdin.readline
"""

HOLDER = """
store = open_store(folder)
store.add([item(1, 0, i, 2) for i in range(2)])
told = []

def hold(record):
    # A predicate of a delete runs while the lock is held.
    if not told:
        told.append(record)
        say("holds")
        wait()
    return False

store.delete(filter=hold)
say("let go")
wait()
"""

FORKED_IN_USE = """
def refused(work):
    try:
        work()
        return "done"
    except StoreError as error:
        return type(error).__name__

def hold(record):
    if not told:
        told.append(record)
        child = os.fork()
        if child == 0:
            say(refused(store.count))
            say(refused(lambda: store.add([item(9, 0, 0, 1)])))
            say(refused(lambda: open_store(folder)))
            store.close()
            say("closed")
            wait()
            os._exit(0)
        say(f"forked {child}")
        os.waitpid(child, 0)
    return False

told = []
store = open_store(folder)
store.add([item(1, 0, i, 2) for i in range(2)])
store.delete(filter=hold)
store.add([item(2, 0, 0, 1)])
say(f"parent {store.count()} {store.check().ok}")
store.close()
"""

FORKED_IDLE = """
store = open_store(folder)
store.add([item(1, 0, i, 2) for i in range(2)])
child = os.fork()
if child == 0:
    try:
        store.count()
        say("done")
    except StoreClosed as error:
        say(f"StoreClosed {os.getppid() == int(str(error).split('process ')[1].split(',')[0])}")
    with open_store(folder) as own:
        own.add([item(9, 0, i, 2) for i in range(2)])
        say(f"own {own.count()}")
    wait()
    store.close()
    os._exit(0)
store.add([item(2, 0, 0, 1)])
os.waitpid(child, 0)
say(f"parent {store.count()} {store.check().ok}")
store.close()
"""


@contextmanager
def script(folder: Path, body: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child that runs a piece of Python beside us."""
    program = PRELUDE + textwrap.dedent(body)
    argv = [sys.executable, "-c", program, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def line(child: subprocess.Popen[bytes]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().decode().strip()


def go_on(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    child.stdin.write(b"\n")
    child.stdin.flush()


def batch(number: int) -> list[Record]:
    return [item(number, 0, i, 2) for i in range(2)]


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with script(folder, HOLDER) as holder:
        assert line(holder) == "holds"
        with open_store(folder, lock_timeout_s=0.1) as store:
            for write in (
                lambda: store.add(batch(5)),
                lambda: store.delete(["b1-0"]),
                lambda: store.delete(filter={"batch": 1}),
                store.compact,
                store.optimize,
            ):
                with pytest.raises(StoreLocked, match=str(holder.pid)) as caught:
                    write()
                assert caught.value.pid == holder.pid
                assert str(folder) in str(caught.value)
            assert set(contents(store)) == {"b1-0", "b1-1"}  # reading goes on meanwhile
            go_on(holder)
            assert line(holder) == "let go"
            store.add(batch(5))
            assert store.count() == 4


def test_a_second_writer_waits_for_its_turn(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with script(folder, HOLDER) as holder:
        assert line(holder) == "holds"
        with open_store(folder, lock_timeout_s=60) as store:
            timer = threading.Timer(0.2, go_on, [holder])
            timer.start()
            store.add(batch(5))
            timer.join()
            assert line(holder) == "let go"
            assert store.count() == 4


def test_a_killed_writer_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with script(folder, HOLDER) as holder:
        assert line(holder) == "holds"
        holder.kill()
        holder.wait()
        with open_store(folder, lock_timeout_s=0.1) as store:
            store.add(batch(5))
            assert store.count() == 4
            assert store.check().ok


def test_two_stores_of_one_process_are_two_writers(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with open_store(folder) as one, open_store(folder, lock_timeout_s=0.05) as other:
        one.add(batch(1))
        refused = []

        def write(record: Record) -> bool:
            with pytest.raises(StoreLocked) as caught:
                other.add(batch(2))
            refused.append(caught.value.pid)
            return False

        one.delete(filter=write)
        assert set(refused) == {os.getpid()}
        other.add(batch(2))
        assert one.count() == 4


def test_a_child_forked_in_the_middle_of_a_write_has_no_part_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with script(folder, FORKED_IN_USE) as parent:
        said = sorted(line(parent) for _ in range(5))
        assert said[:3] == ["StoreClosed", "StoreClosed", "StoreError"]
        assert said[3] == "closed"
        go_on(parent)
        assert line(parent) == "parent 3 True"


def test_a_forked_child_does_not_keep_its_dead_parents_lock(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with script(folder, FORKED_IN_USE) as parent:
        said = [line(parent) for _ in range(5)]
        child = int(next(text for text in said if text.startswith("forked")).split()[1])
        parent.kill()
        parent.wait()
        os.kill(child, 0)  # still there
        with open_store(folder, lock_timeout_s=0.1) as store:
            store.add(batch(5))
            assert store.count() == 4
        go_on(parent)


def test_parent_and_forked_child_each_write_with_a_store_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with script(folder, FORKED_IDLE) as parent:
        said = {line(parent) for _ in range(2)}
        assert "StoreClosed True" in said
        assert said & {"own 4", "own 5"}
        go_on(parent)
        assert line(parent) == "parent 5 True"
    with open_store(folder, create=False) as store:
        assert store.count() == 5
        assert store.check().ok
