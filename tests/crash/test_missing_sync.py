"""Would the suite notice if one of the store's syncs were missing?

Kill -9 cannot: the page cache outlives the process. So each kind of sync is really left out, by
not letting the kernel do it, and the power losses that follow must then find damage.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from crashlab.events import Sync
from crashlab.recorder import SYNCS
from crashlab.runs import power_losses, traced_trial
from crashlab.tracer import Fault

pytestmark = pytest.mark.usefixtures("traced")

SEED, LENGTH = 1, 20  # a plan with compactions and checkpoints
EVERY = 10**9
IMAGES = 80


FAST = {
    "vectors": r"/vectors/\d+\.f32$",
    "folder": r"^store$",
    "SQLite's log": r"cormorant\.sqlite-wal$",
}
SLOW = {
    "parent folder": r"^\.$",
    "vectors folder": r"/vectors$",
    "rows of a generation": r"/vectors/\d+\.rows$",
    "derived folder": r"/derived$",
    "checkpoint": r"/derived/d\d+-\d+\.bin$",
    "checkpoint of a generation": r"/derived/g\d+\.bin$",
    "SQLite file": r"cormorant\.sqlite$",
    "SQLite file before it has its name": r"cormorant\.sqlite\.new$",
}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=name) for name, path in FAST.items()]
    + [pytest.param(path, id=name, marks=pytest.mark.slow) for name, path in SLOW.items()],
)
def test_a_missing_sync_is_found(path: str, tmp_path: Path, tally: Counter[str]) -> None:
    left_out = Fault("skip", times=EVERY, calls=SYNCS, path=path)
    trial = traced_trial(tmp_path / "disk", SEED, LENGTH, left_out)
    assert trial.recording.status == 0, trial.recording.output
    assert trial.recording.struck
    bad = power_losses(trial, tmp_path / "images", dice=1, images=IMAGES, enough=1)
    tally.update({"syncs left out": 1, "of these found": bool(bad)})
    assert bad


@pytest.mark.slow
def test_every_sync_of_the_store_is_among_them(tmp_path: Path) -> None:
    """But for one: a crash while the file is built throws it away, journal and all."""
    trial = traced_trial(tmp_path / "disk", SEED, LENGTH)
    known = [*FAST.values(), *SLOW.values(), r"cormorant\.sqlite\.new-journal$"]
    synced = {event.path for event in trial.recording.events if isinstance(event, Sync)}
    assert [path for path in synced if not any(re.search(k, path) for k in known)] == []
