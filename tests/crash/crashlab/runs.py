"""How is one run of the crash suite done, and how are its numbers chosen?"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from crashlab.disk import MODES, image
from crashlab.events import Recording, Sync
from crashlab.judge import judge
from crashlab.plan import Model, Op, make_plan
from crashlab.tracer import Fault, record

__all__ = [
    "COMPACTOR",
    "READER",
    "Bad",
    "Trial",
    "numbered",
    "power_losses",
    "traced_trial",
    "worker",
]

WRITER: Final = (sys.executable, "-m", "crashlab.worker")
COMPACTOR: Final = (sys.executable, "-m", "crashlab.compactor")
READER: Final = (sys.executable, "-m", "crashlab.reader")


def numbered(total: int, fast: int) -> list[Any]:
    """Parameters 0 … total-1; those after the first ``fast`` are for the slow suite alone."""
    slow = [pytest.param(i, marks=pytest.mark.slow) for i in range(fast, total)]
    return [*range(fast), *slow]


def worker(folder: Path, seed: int, length: int, *options: str) -> list[str]:
    """The command line of a writer."""
    return [*WRITER, str(folder), str(seed), str(length), *options]


@dataclass(frozen=True)
class Trial:
    """A recorded writer.

    Attributes:
        seed: Of its plan.
        ops: The plan.
        recording: What it did to the disk.
        base: What the store held before.
    """

    seed: int
    ops: list[Op]
    recording: Recording
    base: Model | None = None

    @cached_property
    def said(self) -> list[str]:
        """All the writer's lines."""
        return self.recording.acks()


def traced_trial(
    root: Path,
    seed: int,
    length: int,
    *faults: Fault,
    options: Sequence[str] = (),
    base: Model | None = None,
    start: int = 0,
    after: Recording | None = None,
) -> Trial:
    """Record a writer on ``root / "store"``; a fault's paths are relative to ``root``."""
    root.mkdir(exist_ok=True)
    whole = "--whole" in options
    ops = make_plan(seed, length, whole=whole, start=start)
    command = worker(root / "store", seed, length, "--start", str(start), *options)
    recording = record(command, root, faults=faults, after=after)
    if recording.unrecorded:
        raise AssertionError(f"the recorder cannot follow {recording.unrecorded}")
    return Trial(seed, ops, recording, base)


@dataclass(frozen=True, slots=True)
class Bad:
    """An image that is not a good store: enough to make it again."""

    seed: int
    cut: int
    mode: str
    dice: int
    says: tuple[str, ...]

    def __str__(self) -> str:
        where = f"plan {self.seed}, cut {self.cut}, mode {self.mode}, dice {self.dice}"
        return f"{where}: {'; '.join(self.says)}"


def power_losses(
    trial: Trial, place: Path, dice: int, images: int, *, enough: int | None = None
) -> list[Bad]:
    """Cut the power at ``images`` points and judge what is left.

    Half of the cuts are just before a sync or just after an acknowledgement, where most is at
    stake; the others are anywhere. Stops at ``enough`` bad images.
    """
    rng = random.Random(dice)
    events = trial.recording.events
    critical = [i for i, e in enumerate(events) if isinstance(e, Sync)]
    critical += [i + 1 for i, e in enumerate(events) if type(e).__name__ == "Ack"]
    bad = []
    for number in range(images):
        cut = rng.choice(critical) if number % 2 and critical else rng.randint(0, len(events))
        mode = MODES[(dice + number) % len(MODES)]
        throw = rng.randrange(10**9)
        folder = place / f"{dice}-{number}"
        image(trial.recording, cut, mode, random.Random(throw)).write_to(folder)
        says = judge(folder / "store", trial.ops, trial.recording.acks(cut), base=trial.base)
        if says:
            bad.append(Bad(trial.seed, cut, mode, throw, tuple(says)))
        shutil.rmtree(folder)
        if len(bad) == enough:
            break
    return bad
