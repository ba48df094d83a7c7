"""What does ``cormorant chunk`` say of a file, and what does it leave alone?"""

from __future__ import annotations

import json

import pytest

from cormorant.cli import main

TEXT = (
    "# Birds\n\nCormorants dive. They bring the fish back.\n\n"
    "## 鸬鹚\n\n鸬鹚捕鱼。翅膀会湿吗？\x1b[31m\n"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize("chunker", ["recursive", "structural", "fixed", "hierarchical"])
def test_chunks_and_figures(file, capsys, chunker):
    arguments = ["chunk", str(file), "--chunker", chunker, "--size", "40", "--overlap", "5"]
    assert main([*arguments, "--json", "--show"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["count"] == len(told["chunks"]) > 1
    assert told["longest"] <= 40
    for chunk in told["chunks"]:
        assert TEXT[chunk["metadata"]["start_index"] :].startswith(chunk["text"])
    assert main(arguments) == 0
    assert f"count              {told['count']}" in capsys.readouterr().out
    assert sorted(path.name for path in file.parent.iterdir()) == ["a.md"]


def test_what_is_shown_cannot_steer_the_terminal(file, capsys):
    assert main(["chunk", str(file), "--show", "--size", "400"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    assert "鸬鹚捕鱼" in shown
    assert "── 1 · " in shown


def test_what_cannot_be_read_or_cut(tmp_path, file, capsys):
    assert main(["chunk", str(tmp_path / "nothing.md")]) == 2
    (tmp_path / "b.pdf").write_bytes(b"")
    assert main(["chunk", str(tmp_path / "b.pdf")]) == 2
    assert "cannot be read as pdf" in capsys.readouterr().err
    assert main(["chunk", str(file), "--size", "5", "--overlap", "5"]) == 2
    assert "overlap must be less" in capsys.readouterr().err
