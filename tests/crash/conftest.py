"""Makes `crashlab` importable, and says at the end how much the crash suite went through."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

import cormorant

HERE = str(Path(__file__).parent)
sys.path.insert(0, HERE)

from crashlab import ptrace  # noqa: E402 - its path comes first

TALLY: pytest.StashKey[Counter[str]] = pytest.StashKey()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Counter[str]:
    """Counts over the whole session: runs, images, bad, acks, …"""
    return pytestconfig.stash.setdefault(TALLY, Counter())


@pytest.fixture(autouse=True)
def same_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes import `crashlab` and the very `cormorant` that is under test."""
    package = str(Path(cormorant.__file__).parents[1])
    paths = [HERE, package, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.fixture(scope="session")
def traced() -> None:
    """Skips where syscalls cannot be recorded."""
    reason = ptrace.unavailable()
    if reason is not None:
        pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line of figures."""
    counts = terminalreporter.config.stash.get(TALLY, None)
    if counts:
        figures = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
        terminalreporter.write_line(f"crash suite: {figures}")
