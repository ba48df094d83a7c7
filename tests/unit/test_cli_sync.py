"""``cormorant sync``: what it prints, asks, refuses, and how a watch ends."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cormorant
from cormorant.cli import main
from cormorant.cli import sync as verb
from cormorant.cli.console import Console
from cormorant.cli.sync_screen import Line
from cormorant.ingest import Progress
from cormorant.ingest.turn import turn

HERE = str(Path(__file__).parents[1])
sys.path.insert(0, HERE)

EMBEDDER = "python:synclab.CountingEmbeddings"


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith("CORMORANT_") and name != "CORMORANT_DATA":
            monkeypatch.delenv(name)


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Herons\n\nA heron fishes.", encoding="utf-8")
    (folder / "sub" / "b.txt").write_text("鸬鹚潜水。", encoding="utf-8")
    return folder


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = main(["sync", *map(str, argv)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def run_json(run):
    def run_json(*argv):
        code, out, err = run(*argv, "--json")
        return code, json.loads(out), err

    return run_json


def documented(said):
    named = {re.sub(r"\[.*", "", field) for field in verb.VERB.fields}
    assert set(said) == named
    rows = {
        field.removeprefix("prices[].")
        for field in verb.VERB.fields
        if field.startswith("prices[].")
    }
    assert all(set(row) == rows for row in said["prices"])


def test_it_says_what_it_did(run_json, docs):
    code, said, _ = run_json(docs, "kb", "--embedder", EMBEDDER)
    assert code == 0
    documented(said)
    assert (said["added"], said["embedded"], said["chunks"]) == (2, 2, 2)
    assert said["embedder"] == EMBEDDER
    assert said["usd"] is None
    _, said, _ = run_json(docs, "kb", "--embedder", EMBEDDER)
    assert (said["skipped"], said["embedded"]) == (2, 0)
    with cormorant.open("kb", create=False) as store:
        assert {record.metadata["source"] for record in store.records()} == {"a.md", "sub/b.txt"}


def test_it_says_so_in_words(run, docs):
    code, out, _ = run(docs, "kb", "--embedder", "none")
    assert code == 0
    assert "files 2 added" in out
    assert "chunks 2 added, 0 updated, 0 deleted" in out
    (docs / "a.md").unlink()
    _, out, _ = run(docs, "kb")
    assert "1 deleted, 1 unchanged" in out


def test_a_file_that_cannot_be_read_is_named_and_exits_1(run, docs):
    (docs / "bad.txt").write_bytes(b"a\0b\0c")
    code, out, err = run(docs, "kb", "--embedder", "none")
    assert code == 1
    assert "2 added, 1 failed" in out
    assert "bad.txt" in err


def test_an_emptied_text_takes_its_chunks_along(run, run_json, docs):
    run(docs, "kb", "--embedder", "none")
    (docs / "a.md").write_text("")
    code, said, _ = run_json(docs, "kb")
    assert (code, said["updated"], said["chunks_deleted"], said["chunks"]) == (0, 1, 1, 1)


def test_a_folder_that_cannot_be_read_keeps_its_chunks(run, run_json, docs, monkeypatch):
    run(docs, "kb", "--embedder", "none")
    iterdir = Path.iterdir

    def refuse(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    code, said, _ = run_json(docs, "kb")
    assert (code, said["deleted"], said["chunks"]) == (1, 0, 2)
    assert said["failed"][0]["source"] == "sub"


def test_an_empty_folder_is_refused_where_nobody_can_be_asked(run, docs):
    run(docs, "kb", "--embedder", "none")
    (docs / "a.md").unlink()
    (docs / "sub" / "b.txt").unlink()
    code, _, err = run(docs, "kb")
    assert code == 2
    assert "--allow-empty" in err
    code, out, _ = run(docs, "kb", "--allow-empty")
    assert code == 0
    assert "2 deleted" in out


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("YES\n", 0), ("\n", 2), ("no\n", 2)])
def test_on_a_terminal_it_asks(docs, monkeypatch, answer, left):
    assert main(["sync", str(docs), "kb", "--embedder", "none", "-q"]) == 0
    (docs / "a.md").unlink()
    (docs / "sub" / "b.txt").unlink()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["sync", str(docs), "kb"]) == (0 if left == 0 else 2)
    assert "Delete the store's 2 sources of it? [y/N]" in err.getvalue()
    with cormorant.open("kb") as store:
        assert store.count() == left


def test_another_sync_is_waited_for_and_then_exit_3(run, docs):
    run(docs, "kb", "--embedder", "none")
    with turn(Path("kb"), 0):
        code, _, err = run(docs, "kb", "--lock-timeout", "0.1")
    assert code == 3
    assert "Another sync" in err


def test_no_folder_makes_no_store(run):
    code, _, err = run("nowhere", "kb", "--embedder", "none")
    assert code == 2
    assert "no folder" in err
    assert not Path("kb").exists()


def test_a_dry_run_needs_no_key_and_no_store(run, run_json, docs):
    code, out, _ = run(docs, "kb", "--dry-run", "--embedder", "openai:text-embedding-3-small")
    assert code == 0
    assert "to embed 2 chunks" in out
    assert re.search(r"\*\s+openai text-embedding-3-small", out)
    assert "1,000 questions" in out
    _, said, _ = run_json(docs, "kb", "--dry-run", "--embedder", "openai:text-embedding-3-large")
    documented(said)
    assert said["usd"] == pytest.approx(said["tokens"] * 0.13 / 1e6)
    assert said["dry_run"]
    assert not Path("kb").exists()


def test_prices_of_ones_own(run_json, docs, monkeypatch):
    Path("prices.toml").write_text(
        'as_of = "today"\n[[price]]\nprovider = "acme"\nmodel = "m"\ndimensions = 8\n'
        "usd_per_million_tokens = 1000000\n"
    )
    monkeypatch.setenv("CORMORANT_PRICES", "prices.toml")
    _, said, _ = run_json(docs, "kb", "--dry-run", "--embedder", "acme:m")
    assert said["usd"] == said["tokens"] > 0
    assert said["prices"][0]["as_of"] == "today"


def test_a_scope_is_kept(run_json, docs):
    for tenant in ("acme", "rival"):
        scope = json.dumps({"tenant": tenant})
        _, said, _ = run_json(docs, "kb", "--embedder", "none", "--scope", scope)
        assert said["chunks_added"] == 2
    with cormorant.open("kb") as store:
        assert store.scope(tenant="acme").count() == 2
        assert store.count() == 4


def test_include_exclude_and_size(run_json, docs):
    _, said, _ = run_json(docs, "kb", "--embedder", "none", "--include", "*.md", "--size", "10")
    assert (said["added"], said["chunks_added"]) == (1, 3)
    _, said, _ = run_json(docs, "kb", "--exclude", "*.md", "--size", "10")
    assert (said["added"], said["deleted"]) == (1, 1)


def test_a_cache_is_shared_between_stores(run_json, docs):
    how = ("--embedder", EMBEDDER, "--cache", "vectors.sqlite")
    _, said, _ = run_json(docs, "kb", *how)
    assert said["embedded"] == 2
    _, said, _ = run_json(docs, "kb2", *how)
    assert (said["embedded"], said["tokens"], said["chunks_added"]) == (0, 0, 2)
    assert "2 further texts" in said["notes"][0]


def test_watch_and_dry_run_do_not_go_together(run, docs):
    code, _, err = run(docs, "kb", "--watch", "--dry-run")
    assert code == 2
    assert "do not go together" in err


def test_progress_is_drawn_on_a_terminal_alone():
    err = Terminal()
    with Line(Console(err=err, environ={})) as line:
        line.draw(Progress(3, 10, 500, 1000, 7, 2.0, 65.0))
    assert "3 of 10 files, 50% of " in err.getvalue()
    assert "7 embedded, 1 min 5 s left" in err.getvalue()
    silent = io.StringIO()
    with Line(Console(err=silent, environ={})) as line:
        line.draw(Progress(3, 10, 500, 1000, 7, 2.0, 65.0))
    assert silent.getvalue() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_watch_takes_up_changes_survives_failures_and_ends_cleanly(docs, number):
    package = str(Path(cormorant.__file__).parents[1])
    program = (
        "import cormorant.defaults as d; d.WATCH_INTERVAL_S = 0.05;"
        "from cormorant.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "sync", docs, "kb", "--watch", "--json"]
    with subprocess.Popen(
        [*command, "--embedder", "none"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    ) as child:
        try:
            assert json.loads(child.stdout.readline())["added"] == 2
            (docs / "c.md").write_text("new")
            assert json.loads(child.stdout.readline())["added"] == 1
            (docs / "bad.txt").write_bytes(b"a\0b\0c")
            assert json.loads(child.stdout.readline())["failed"]
            (docs / "bad.txt").unlink()
            while json.loads(child.stdout.readline())["failed"]:
                pass
            child.send_signal(number)
            _out, err = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 0, err
    assert "the watch has ended" in err
    assert "Traceback" not in err
    with cormorant.open("kb") as store:
        assert store.count() == 3


def test_a_watch_goes_on_though_the_folder_is_emptied(docs):
    assert main(["sync", str(docs), "kb", "--embedder", "none", "-q"]) == 0
    (docs / "a.md").unlink()
    (docs / "sub" / "b.txt").unlink()
    package = str(Path(cormorant.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-m", "cormorant.cli", "sync", docs, "kb", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    ) as child:
        try:
            said = ""
            while "--allow-empty" not in said:
                said = child.stderr.readline()
                assert said, "the watch ended"
            assert child.poll() is None
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 0
    with cormorant.open("kb") as store:
        assert store.count() == 2


def test_names_in_errors_cannot_move_the_cursor(tmp_path, capsys):
    from cormorant.cli.app import main

    (tmp_path / "c\x1b[2J.json").write_text("{")
    assert main(["chunk", str(tmp_path / "c\x1b[2J.json")]) == 2
    assert main(["sync", str(tmp_path / "no\x1b[2J"), str(tmp_path / "kb")]) == 2
    assert "\x1b" not in capsys.readouterr().err
