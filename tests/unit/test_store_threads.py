"""Threads, processes and forks that share a store."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cormorant
from cormorant import Query
from cormorant.errors import StoreClosed, StoreLocked

BATCH = 5


def _batch(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{number}:{i}",
            "text": f"batch{number} item{i}",
            "vector": [float(number + 1), float(i)],
            "metadata": {"batch": number, "i": i},
        }
        for i in range(BATCH)
    ]


def _all_at_once(*jobs: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - reported below, whatever it is
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    path = ":memory:" if request.param == "memory" else tmp_path / "kb"
    with cormorant.open(path, dim=2) as opened:
        yield opened


def test_threads_see_whole_transactions_while_others_write(store: cormorant.Store) -> None:
    done = threading.Event()

    def write() -> None:
        for number in range(30):
            store.add(_batch(number))
            if number % 3 == 0:
                store.add(_batch(number))
            if number % 5 == 0:
                store.delete([f"{number}:{i}" for i in range(BATCH)])
            if number % 7 == 0:
                store.compact()
        done.set()

    def read() -> None:
        while not done.is_set():
            counts: dict[int, int] = {}
            for record in store.records():
                counts[record.metadata["batch"]] = counts.get(record.metadata["batch"], 0) + 1
            assert set(counts.values()) <= {BATCH}
            hits = store.search(Query(text="item1", vector=[1.0, 1.0], top_k=200))
            for hit in hits:
                assert hit.text == f"batch{hit.metadata['batch']} item{hit.metadata['i']}"

    _all_at_once(write, read, read)
    assert store.count() == BATCH * 24


def test_threads_that_write_take_turns(store: cormorant.Store) -> None:
    def writer(offset: int) -> Callable[[], None]:
        return lambda: [store.add(_batch(offset + n)) for n in range(10)] and None

    _all_at_once(*(writer(100 * t) for t in range(4)))
    assert store.count() == 4 * 10 * BATCH
    assert store.check().ok


def test_two_stores_on_one_folder_write_in_turns(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", dim=2) as one, cormorant.open(tmp_path / "kb") as two:
        for number in range(6):
            (one if number % 2 else two).add(_batch(number))
        assert one.count() == two.count() == 6 * BATCH
        one.compact()
        two.delete(["0:0"])
        assert one.count() == two.count() == 6 * BATCH - 1


def test_a_second_writer_is_told_who_holds_the_store(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", dim=2, lock_timeout_s=0.1) as store:
        store.add(_batch(0))
        code = (
            "import sys, cormorant\n"
            "store = cormorant.open(sys.argv[1])\n"
            "with store._core.storage.write():\n"
            "    print('held', flush=True)\n"
            "    sys.stdin.readline()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "kb")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdin is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StoreLocked, match=str(holder.pid)) as caught:
                store.add(_batch(1))
            assert caught.value.pid == holder.pid
            assert store.count() == BATCH
            holder.stdin.write("\n")
        store.add(_batch(1))
        assert store.count() == 2 * BATCH


def test_a_forked_child_is_told_to_open_the_store_again(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", dim=2) as store:
        store.add(_batch(0))
        child = os.fork()
        if child == 0:
            try:
                store.count()
            except StoreClosed:
                with cormorant.open(tmp_path / "kb") as again:
                    os._exit(0 if again.count() == BATCH else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        store.add(_batch(1))
        assert store.count() == 2 * BATCH
