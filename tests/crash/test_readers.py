"""Do two processes that read while one writes see whole transactions alone?"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from crashlab.judge import judge
from crashlab.plan import make_plan, open_store, states
from crashlab.runs import COMPACTOR, READER, numbered, worker

LENGTH = 60


@contextmanager
def process(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A child that has said ``ready``; killed at the end if it still runs."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            yield child
        finally:
            child.kill()


def finish(reader: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Let a reader look once more and tell what it saw."""
    output, _ = reader.communicate()
    assert reader.returncode == 0
    return dict(json.loads(output))


@pytest.mark.parametrize("run", numbered(12, fast=1))
def test_two_readers_and_a_writer(run: int, tmp_path: Path, tally: Counter[str]) -> None:
    """Even runs kill the writer somewhere and send another one after it."""
    folder = tmp_path / "store"
    open_store(folder).close()
    seed = 900 + run
    expected = states(make_plan(seed, LENGTH, whole=True))
    reader_argv = [*READER, str(folder)]
    with ExitStack() as stack:
        readers = [stack.enter_context(process(reader_argv)) for _ in range(2)]
        done = 0
        if run % 2 == 0:
            done = interrupted(folder, seed, random.Random(run))
        options = ("--whole", "--skip", str(done))
        with process(worker(folder, seed, LENGTH, *options)) as writer:
            output, _ = writer.communicate(b"go\n")
        assert writer.returncode == 0
        assert output.split(b"\n")[-2] == b"ack close"
        seen = [finish(reader) for reader in readers]
    tally.update({"runs": 1, "snapshots": sum(s["snapshots"] for s in seen)})
    for figures in seen:
        assert figures["problems"] == []
        assert figures["last"] == {k: r.metadata["version"] for k, r in expected[-1].items()}
    # Readers that only ever saw one state would have proved nothing.
    assert max(s["different"] for s in seen) > 3


@pytest.mark.parametrize("run", numbered(12, fast=1))
def test_a_writer_a_compactor_and_a_reader(run: int, tmp_path: Path, tally: Counter[str]) -> None:
    """Generations change under the writer; odd runs kill both somewhere."""
    folder = tmp_path / "store"
    open_store(folder).close()
    seed, rng = 950 + run, random.Random(run)
    with (
        process([*READER, str(folder)]) as reader,
        process([*COMPACTOR, str(folder)]) as compactor,
        process(worker(folder, seed, LENGTH, "--whole")) as writer,
    ):
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert compactor.stdout is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
        lines = [writer.stdout.readline() for _ in range(rng.randint(5, LENGTH))]
        if run % 2:
            time.sleep(rng.uniform(0, 0.01))
            for victim in rng.sample([writer, compactor], k=2):
                victim.kill()
        lines += writer.stdout.readlines()
        compacted, _ = compactor.communicate()
        seen = finish(reader)
    said = [line.decode().strip() for line in lines]
    tally.update({"runs": 1, "snapshots": seen["snapshots"], "kills": 2 * (run % 2)})
    assert seen["problems"] == []
    assert judge(folder, make_plan(seed, LENGTH, whole=True), said) == []
    if not run % 2:
        assert compacted.count(b"compacted") > 1
        assert said[-1] == "ack close"


def interrupted(folder: Path, seed: int, rng: random.Random) -> int:
    """Kill a writer after some acknowledgements; how many calls were acknowledged?"""
    with process(worker(folder, seed, LENGTH, "--whole")) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
        lines = [writer.stdout.readline() for _ in range(rng.randint(1, LENGTH - 10))]
        time.sleep(rng.uniform(0, 0.01))
        writer.kill()
        lines += writer.stdout.readlines()
    assert writer.returncode == -signal.SIGKILL
    return len(lines) - 1  # the first one says that the store is open


def test_the_reader_finds_a_half_batch(tmp_path: Path) -> None:
    """The check that the test above rests on can fail."""
    folder = tmp_path / "store"
    with open_store(folder) as store:
        op = next(o for o in make_plan(1, 40, whole=True) if o.kind == "add" and o.size > 2)
        store.add(op.records())
        store.delete([op.records()[0].id])
    argv = [*READER, str(folder)]
    with process(argv) as reader:
        figures = finish(reader)
    assert figures["problems"]
