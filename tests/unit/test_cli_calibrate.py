"""``cormorant calibrate`` from end to end."""

from __future__ import annotations

import json
import os

import pytest

import cormorant
from cormorant import Query
from cormorant.cli import main
from cormorant.cli.app import VERBS

NAMES = [f"{a}a{b}o" for a in "bdfgkmpr" for b in "lmnprst"]
NAMED = ("--queries", "queries.jsonl", "--qrels", "qrels.tsv")


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith("CORMORANT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = main([str(arg) for arg in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def kb(tmp_path):
    with cormorant.open(tmp_path / "kb") as store:
        store.add({"id": name, "text": f"{name} among others"} for name in NAMES)
    lines = [json.dumps({"_id": name, "text": f"{name} others"}) for name in NAMES]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels.tsv").write_text("".join(f"{name}\t{name}\t1\n" for name in NAMES))
    return tmp_path / "kb"


def best(kb):
    with cormorant.open(kb) as store:
        return store.search(Query(text="balo others")).hits[0].relevance


def test_thresholds_become_probabilities_and_go_back(run, kb):
    before = best(kb)
    code, out, err = run("calibrate", kb, *NAMED)
    assert code == 0
    assert "Brier" in out
    assert "score_threshold" in err
    assert best(kb) > 0.9 > before
    _, out, _ = run("search", kb, "balo others", "--min-score", ".8", "--json")
    assert [hit["id"] for hit in json.loads(out)["hits"]] == ["balo"]
    _, out, _ = run("info", kb, "--json")
    assert json.loads(out)["calibration"]["by"] == "calibrate"
    assert "calibrated for text" in run("info", kb)[1]
    code, _, err = run("calibrate", kb, "--drop")
    assert (code, best(kb)) == (0, before)
    assert "dropped" in err
    assert "there was none" in run("calibrate", kb, "--drop")[2]
    assert json.loads(run("info", kb, "--json")[1])["calibration"] is None


def test_a_dry_run_changes_nothing(run, kb):
    before = best(kb)
    code, out, _ = run("calibrate", kb, *NAMED, "--dry-run", "--json")
    printed = json.loads(out)
    verb = next(verb for verb in VERBS if verb.name == "calibrate")
    assert code == 0
    assert set(printed) == set(verb.fields)
    assert printed["calibrated"] is False
    assert printed["modes"]["text"]["brier"] < printed["modes"]["text"]["brier_without"]
    assert best(kb) == before


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((), "--keep"),
        ((*NAMED, "--relevant", "0"), "above 0"),
        ((*NAMED, "--relevant", "2"), "only 0 relevant"),
        ((*NAMED, "--drop"), "--drop"),
        (NAMED[2:], "--queries is missing"),
    ],
)
def test_wrong_calls(run, kb, argv, says):
    code, _, err = run("calibrate", kb, *argv)
    assert code == 2
    assert says in err
