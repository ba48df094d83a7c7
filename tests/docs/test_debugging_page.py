"""docs/debugging.md: each failure is made, and found by the commands shown, with what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from cormorant.cli import main
from cormorant.model import Cause

PAGE = (Path(__file__).parents[2] / "docs" / "debugging.md").read_text(encoding="utf-8")
SECTIONS = PAGE.split("\n## ")[1:]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("section", SECTIONS, ids=[each.splitlines()[0] for each in SECTIONS])
def test_the_failure_is_found_by_what_is_shown(section, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = FENCE.findall(section)
    commands = [line for kind, code in blocks if kind == "bash" for line in code.splitlines()]
    assert len(commands) < 3
    for code in [code for kind, code in blocks if kind == "python"]:
        exec(compile(code, "debugging.md", "exec"), {"__name__": "__main__"})
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "cormorant"
        assert main(arguments) == 1, "a record missed"
    told = capsys.readouterr().out
    expected = [line for kind, code in blocks if kind == "text" for line in code.splitlines()]
    assert expected
    assert [line for line in expected if line not in told] == []


def test_there_are_five():
    assert len(SECTIONS) == 5


def test_every_cause_has_its_row():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted([*rows, "found"]) == sorted(get_args(Cause))
