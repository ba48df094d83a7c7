"""Is everything acknowledged still there after kill -9, at any instant and at chosen syscalls?"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from crashlab.judge import judge
from crashlab.plan import make_plan
from crashlab.runs import numbered, traced_trial, worker
from crashlab.tracer import Fault

LENGTH = 40


@pytest.mark.parametrize("options", [(), ("--background",)], ids=["alone", "background"])
@pytest.mark.parametrize("run", numbered(100, fast=5))
def test_kill_at_a_random_instant(
    run: int, options: tuple[str, ...], tmp_path: Path, tally: Counter[str]
) -> None:
    rng = random.Random(run)
    folder = tmp_path / "store"
    with subprocess.Popen(
        worker(folder, run, LENGTH, *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.stdin.write(b"go\n")
        child.stdin.flush()
        # A call takes a few milliseconds: so many acknowledgements, then a random part of one.
        lines = [child.stdout.readline() for _ in range(rng.randint(0, LENGTH - 5))]
        time.sleep(rng.uniform(0, 0.03))
        child.kill()
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    acks = [line.decode().strip() for line in lines]
    bad = judge(folder, make_plan(run, LENGTH), acks)
    tally.update({"runs": 1, "kills": 1, "acknowledgements": len(acks), "bad": bool(bad)})
    assert not bad, f"plan {run}, after {acks[-1:]}: {bad}"


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("run", numbered(60, fast=4))
def test_kill_at_a_syscall(run: int, tmp_path: Path, tally: Counter[str]) -> None:
    rng = random.Random(run)
    seed, length = 300 + run, 12
    at = rng.randrange(150)
    kind = rng.choice(("kill", "kill-after"))
    trial = traced_trial(tmp_path / "disk", seed, length, Fault(kind, at=at))
    killed = bool(trial.recording.struck)
    assert trial.recording.status == (-signal.SIGKILL if killed else 0), trial.recording.output
    bad = judge(tmp_path / "disk" / "store", trial.ops, trial.said)
    tally.update(
        {"runs": 1, "kills": killed, "acknowledgements": len(trial.said), "bad": bool(bad)}
    )
    assert not bad, f"plan {seed}, {kind} {at} at {trial.recording.struck}: {bad}"
