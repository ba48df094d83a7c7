"""Does a full disk or a failing one leave the store as it was, and say so?

A writer is recorded once to learn its calls; then it is run again with one of them failing. It must
see a StoreError that names what happened, no half of the call, and go on after opening again.
"""

from __future__ import annotations

import errno
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from crashlab.judge import judge
from crashlab.recorder import SYNCS, WRITES
from crashlab.runs import Trial, numbered, power_losses, traced_trial
from crashlab.tracer import Fault

from cormorant import errors

LENGTH = 12
SHARED = 10  # runs that share a plan
IMAGES = 3
DISK_FULL = (*WRITES, "ftruncate", "fallocate", "openat", "open", "mkdir", "rename", "fsync")


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Trial]:
    """What each plan does when nothing fails."""

    class Made(dict[int, Trial]):
        def __missing__(self, seed: int) -> Trial:
            root = tmp_path_factory.mktemp("unharmed") / "disk"
            trial = self[seed] = traced_trial(root, seed, LENGTH, options=("--retry",))
            assert trial.recording.status == 0, trial.recording.output
            assert len(trial.said) == LENGTH + 2
            return trial

    return Made()


def draw(run: int, trial: Trial) -> Fault:
    """Which call fails, and how: syncs, writes and the rest in turn."""
    rng = random.Random(run)
    names = [name for name, _ in trial.recording.calls]
    kind, error, times = rng.choice(
        (
            ("fail", errno.ENOSPC, 1),
            ("fail", errno.ENOSPC, 3),
            ("fail", errno.EIO, 1),
            ("fail", errno.EIO, 2),
            ("short", 0, 1),
        )
    )
    calls: tuple[str, ...] = WRITES if kind == "short" else (SYNCS, WRITES, DISK_FULL)[run % 3]
    if error == errno.EIO and run % 3 == 2:
        calls = (*DISK_FULL, "unlink", "fdatasync")
    at = rng.randrange(sum(name in calls for name in names))
    return Fault(kind, at=at, times=times, calls=calls, error=error)  # type: ignore[arg-type]


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("run", numbered(120, fast=6))
def test_a_call_that_fails(
    run: int, unharmed: dict[int, Trial], tmp_path: Path, tally: Counter[str]
) -> None:
    seed = 500 + run // SHARED
    fault = draw(run, unharmed[seed])
    trial = traced_trial(tmp_path / "disk", seed, LENGTH, fault, options=("--retry",))
    note = f"plan {seed}, {fault}, struck {trial.recording.struck}, said {trial.said}"
    assert trial.recording.struck, note
    failed = [line.split(maxsplit=3)[1:] for line in trial.said if line.startswith("fail ")]
    assert not [line for line in trial.said if line.startswith("crash ")], note
    assert not [line for line in trial.said if line.endswith(" neither")], note
    for place, error, message in failed:
        assert issubclass(getattr(errors, error), errors.StoreError), note
        # It says which file, and what the system or SQLite said.
        assert str(tmp_path) in message, note
        assert re.search(r"E[A-Z]{2,}|SQLITE_[A-Z]+", message), note
        if fault.times == 1 and place != "close":
            assert f"ack {place}" in trial.said, note
    if fault.times == 1 and "close" not in [place for place, *_ in failed]:
        assert trial.said[-1] == "ack close", note
    says = judge(tmp_path / "disk" / "store", trial.ops, trial.said)
    assert not says, f"{note}: {says}"
    bad = power_losses(trial, tmp_path / "images", dice=run, images=IMAGES)
    tally.update(
        {"runs": 1, "faults": 1, "power losses": IMAGES, "refused calls": len(failed)}
        | {"bad": len(bad)}
    )
    assert not bad, note + "\n" + "\n".join(map(str, bad))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("at", numbered(40, fast=0))
def test_a_call_that_fails_while_a_store_is_made(
    at: int, times: int, tmp_path: Path, tally: Counter[str]
) -> None:
    """Whatever the failed attempt leaves, it is in nobody's way."""
    fault = Fault("fail", at=at, times=times, error=errno.ENOSPC)
    trial = traced_trial(tmp_path / "disk", 1, 0, fault, options=("--retry",))
    note = f"struck {trial.recording.struck}, said {trial.said}"
    assert not [line for line in trial.said if line.startswith("crash ")], note
    if times == 1 and trial.said[-1] != "stopped":
        assert "ack open" in trial.said, note
    assert not judge(tmp_path / "disk" / "store", [], trial.said), note
    bad = power_losses(trial, tmp_path / "images", dice=at, images=IMAGES)
    tally.update({"runs": 1, "faults": 1, "power losses": IMAGES, "bad": len(bad)})
    assert not bad, note + "\n" + "\n".join(map(str, bad))
