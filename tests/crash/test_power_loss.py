"""Is everything acknowledged still there after the power goes, and nothing half done?

A writer's syscalls are recorded once; then, at many points, the disk is rebuilt as a power loss may
leave it, and a fresh store must open on it with every acknowledged call and no half one.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from crashlab.disk import MODES, image
from crashlab.judge import contents, judge
from crashlab.plan import open_store
from crashlab.runs import Trial, numbered, power_losses, traced_trial
from crashlab.tracer import Fault

pytestmark = pytest.mark.usefixtures("traced")

LENGTH = 20  # calls of a plan
IMAGES = 10  # power losses a run
SHARED = 4  # runs that share a recording


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Trial]:
    """Recordings by seed, made when first wanted."""

    class Made(dict[int, Trial]):
        def __missing__(self, seed: int) -> Trial:
            root = tmp_path_factory.mktemp("recorded") / "disk"
            trial = self[seed] = traced_trial(root, seed, LENGTH)
            assert trial.recording.status == 0, trial.recording.output
            return trial

    return Made()


@pytest.mark.parametrize("run", numbered(160, fast=10))
def test_power_loss(
    run: int, trials: dict[int, Trial], tmp_path: Path, tally: Counter[str]
) -> None:
    trial = trials[run // SHARED]
    bad = power_losses(trial, tmp_path, dice=run, images=IMAGES)
    tally.update({"runs": 1, "power losses": IMAGES, "bad": len(bad)})
    assert not bad, "\n".join(map(str, bad))


@pytest.mark.parametrize("run", numbered(20, fast=1))
def test_power_loss_while_recovering(
    run: int, trials: dict[int, Trial], tmp_path: Path, tally: Counter[str]
) -> None:
    """A second power loss, on a store that was just opened after a first one."""
    first = trials[run // SHARED]
    rng = random.Random(run)
    cut = rng.randint(len(first.recording.events) // 2, len(first.recording.events))
    crashed = image(first.recording, cut, "torn", rng)
    crashed.write_to(tmp_path / "look")
    with open_store(tmp_path / "look" / "store") as store:
        base = contents(store)
    crashed.write_to(tmp_path / "disk")
    second = traced_trial(tmp_path / "disk", 1000 + run, 6, base=base, start=1000)
    assert second.recording.status == 0, second.recording.output
    bad = power_losses(second, tmp_path / "images", dice=run, images=IMAGES)
    tally.update({"runs": 1, "power losses": IMAGES, "bad": len(bad)})
    assert not bad, "\n".join(map(str, bad))


@pytest.mark.parametrize("run", numbered(40, fast=3))
def test_power_loss_after_a_kill(run: int, tmp_path: Path, tally: Counter[str]) -> None:
    """The first writer is killed, the second goes on, then the power goes.

    What the first one did not sync the second one finds in the page cache, and must not build on.
    """
    seed, length = 700 + run, 10
    at = random.Random(run).randrange(12 if run % 4 == 0 else 90)
    first = traced_trial(tmp_path / "disk", seed, length, Fault("kill", at=at))
    done = sum(line.startswith("ack ") and line.split()[1].isdigit() for line in first.said)
    if done == length:
        pytest.skip("the plan was done before the kill")
    second = traced_trial(
        tmp_path / "disk", seed, length, options=("--skip", str(done)), after=first.recording
    )
    assert second.recording.status == 0, second.recording.output
    bad = power_losses(second, tmp_path / "images", dice=run, images=IMAGES)
    tally.update({"runs": 1, "kills": 1, "power losses": IMAGES, "bad": len(bad)})
    assert not bad, f"killed at {first.recording.struck}\n" + "\n".join(map(str, bad))


@pytest.mark.parametrize(
    ("modes", "throws"),
    [
        pytest.param(("torn", "names", "data"), 1, id="some"),
        pytest.param(MODES, 8, id="all", marks=pytest.mark.slow),
    ],
)
def test_power_loss_while_a_store_is_made(
    modes: tuple[str, ...], throws: int, tmp_path: Path, tally: Counter[str]
) -> None:
    """At every single point: whatever is left, it is a store or may become one."""
    trial = traced_trial(tmp_path / "disk", 1, 0)
    assert trial.said == ["ack open", "ack close"]
    bad = []
    for cut in range(len(trial.recording.events) + 1):
        acks = trial.recording.acks(cut)
        for mode in modes:
            for throw in range(throws):
                folder = tmp_path / f"{cut}-{mode}-{throw}"
                image(trial.recording, cut, mode, random.Random(throw)).write_to(folder)
                says = judge(folder / "store", [], acks)
                bad += [f"cut {cut}, mode {mode}, dice {throw}: {says}"] if says else []
                tally["power losses"] += 1
    assert not bad, "\n".join(bad)


def test_a_folder_that_a_killed_process_made_has_a_durable_name(tmp_path: Path) -> None:
    """It exists, but the sync of its name never came; the next process must not trust it."""
    at = Fault("kill", calls=("fsync",), path=r"^\.$")
    first = traced_trial(tmp_path / "disk", 1, 3, at)
    assert first.recording.struck == [("fsync", ".")]
    second = traced_trial(tmp_path / "disk", 1, 3, after=first.recording)
    assert second.recording.status == 0, second.recording.output
    bad = power_losses(second, tmp_path / "images", dice=3, images=20)
    assert not bad, "\n".join(map(str, bad))


def test_replayed_whole_it_is_the_store_itself(trials: dict[int, Trial], tmp_path: Path) -> None:
    trial = trials[0]
    end = len(trial.recording.events)
    image(trial.recording, end, "kept", random.Random(0)).write_to(tmp_path / "disk")
    assert trial.said[-1] == "ack close"
    assert len(trial.said) == LENGTH + 2
    assert judge(tmp_path / "disk" / "store", trial.ops, trial.said) == []
