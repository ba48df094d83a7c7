"""Would the suite notice if one of the store's syncs were missing?

Kill -9 cannot: the page cache outlives the process. So each kind of sync is really left out, by
not letting the kernel do it, and the power losses that follow must then find damage.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from crashlab.recorder import SYNCS
from crashlab.runs import power_losses, traced_trial
from crashlab.tracer import Fault

pytestmark = pytest.mark.usefixtures("traced")

LENGTH = 20
EVERY = 10**9


@pytest.mark.parametrize(
    ("path", "images"),
    [
        pytest.param(r"/vectors", 40, id="vectors"),
        pytest.param(r"^store$", 60, id="folder"),
        pytest.param(r"^\.$", 20, id="parent folder"),
        pytest.param(r"-wal$", 40, id="SQLite log"),
        pytest.param(r"sqlite$", 60, id="SQLite file"),
    ],
)
def test_a_missing_sync_is_found(
    path: str, images: int, tmp_path: Path, tally: Counter[str]
) -> None:
    left_out = Fault("skip", times=EVERY, calls=SYNCS, path=path)
    trial = traced_trial(tmp_path / "disk", 1, LENGTH, left_out)
    assert trial.recording.status == 0, trial.recording.output
    assert trial.recording.struck
    bad = power_losses(trial, tmp_path / "images", dice=1, images=images)
    tally.update({"losses with a sync left out": images, "of these found bad": len(bad)})
    assert bad
