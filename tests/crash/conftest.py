"""Makes `crashlab` importable, and says at the end how much the crash suite went through."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crashlab import ptrace

TALLY: pytest.StashKey[Counter[str]] = pytest.StashKey()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Counter[str]:
    """Counts over the whole session: runs, images, bad, acks, …"""
    return pytestconfig.stash.setdefault(TALLY, Counter())


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
