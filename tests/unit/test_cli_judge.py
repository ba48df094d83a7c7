"""``cormorant judge`` from end to end, without a terminal and on one."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys

import pytest

import cormorant
from cormorant.cli import main
from cormorant.cli.app import VERBS
from cormorant.cli.judge_screen import shown
from cormorant.evaluate import Run, kept_golden, read_qrels, write_run

ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u2066"


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith("CORMORANT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(capsys, monkeypatch):
    def run(*argv, keys=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{key}\n" for key in keys)))
        code = main([str(arg) for arg in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def kb(tmp_path):
    with cormorant.open(tmp_path / "kb") as store:
        store.add(
            [
                {"id": "a", "text": "a fish swims", "metadata": {"title": f"Fish{ESCAPE}"}},
                {"id": "b", "text": f"another fish {ESCAPE}\nsecond line"},
                {"id": "c", "text": "鸬鹚捕鱼，" * 60},
            ]
        )
    lines = [{"_id": "1", "text": f"fish {ESCAPE}"}, {"_id": "2", "text": "鸬鹚捕鱼"}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "kb"


def saved(name, rankings):
    found = {q: tuple((d, -float(i)) for i, d in enumerate(ids)) for q, ids in rankings.items()}
    write_run(Run(name, found), f"{name}.trec")
    return f"{name}.trec"


def test_answers_are_written_and_not_asked_again(run, kb):
    code, out, _ = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl", keys="3s")
    assert code == 0
    assert "1 of 3" in out
    assert "judged 1, skipped 1, left 2 of 3 pairs." in out
    first = read_qrels("j.jsonl")
    assert sum(map(len, first.values())) == 1
    code, out, _ = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl", keys="0u14")
    assert "1 of 2" in out
    assert "left 0 of 3 pairs" in out
    judged = read_qrels("j.jsonl")
    assert {q: set(d) for q, d in judged.items()} == {"1": {"a", "b"}, "2": {"c"}}
    assert sorted(g for d in judged.values() for g in d.values()) == [1, 3, 4]
    _, out, _ = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl")
    assert out == "judged 0, skipped 0, left 0 of 3 pairs.\n"


def test_the_store_keeps_them_and_eval_uses_them(run, kb):
    code, out, err = run("judge", kb, "--queries", "q.jsonl", "--json", keys="234")
    assert code == 0
    summary = json.loads(out)
    verb = next(verb for verb in VERBS if verb.name == "judge")
    assert set(summary) == set(verb.fields)
    assert summary["grades"] == {"0": 0, "1": 0, "2": 1, "3": 1, "4": 1}
    assert (summary["queries"], summary["pairs"], summary["judged"]) == (2, 3, 3)
    assert "of 3" in err
    with cormorant.open(kb) as store:
        assert set(kept_golden(store).qrels["1"]) == {"a", "b"}
    assert run("eval", kb, "--mode", "text")[0] == 0
    _, out, _ = run("judge", kb, "--json")  # the questions are kept, too
    assert json.loads(out)["judged_before"] == 3


def test_the_last_answer_of_all_can_be_undone(run, kb):
    _, out, _ = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl", keys="000u4q")
    assert "that was the last one" in out
    assert sorted(g for d in read_qrels("j.jsonl").values() for g in d.values()) == [0, 0, 4]


def test_other_keys_explain_and_an_end_is_an_end(run, kb):
    _, out, _ = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl", keys=["u", "9", ""])
    assert "nothing to undo" in out
    assert out.count("not about the question") == 2
    assert "judged 0" in out


def test_runs_are_pooled_blindly(run, kb):
    runs = saved("alpha", {"1": "ab"}), saved("omega", {"1": "ba", "2": "c"})
    code, out, err = run(
        "judge", kb, "--queries", "q.jsonl", "--runs", *runs, "--qrels", "j.jsonl", keys="111"
    )
    assert code == 0
    assert "1 of 3" in out
    assert "alpha" not in out + err
    assert "omega" not in out + err


def test_documents_that_are_not_there_are_named_and_the_exit_says_so(run, kb):
    name = saved("alpha", {"1": ["a", "gone"]})
    code, out, err = run("judge", kb, "--queries", "q.jsonl", "--runs", name, "--json", keys="1")
    assert code == 1
    assert json.loads(out)["missing"] == ["gone"]
    assert "'gone'" in err


def test_no_stored_text_reaches_the_terminal_as_control(run, kb):
    _, out, err = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl", keys="000")
    shown_at_all = out + err
    assert "second line" in shown_at_all
    assert "Fish" in shown_at_all
    assert not {"\x1b", "\x07", "\u202e", "\u2066"} & set(shown_at_all)
    assert shown("می\u200cخواهم") == "می\u200cخواهم"


def test_chinese_fits_the_width(run, kb):
    from cormorant.width import columns

    _, out, _ = run("judge", kb, "--queries", "q.jsonl", "--qrels", "j.jsonl", keys="000")
    assert "鸬鹚" in out
    assert max(columns(line) for line in out.splitlines()) <= 100


def test_a_scope_hides_what_is_outside(run, kb):
    scope = '{"tenant": "acme"}'
    code, out, _ = run(
        "judge", kb, "--queries", "q.jsonl", "--scope", scope, "--qrels", "j.jsonl", keys="000"
    )
    assert (code, out) == (0, "judged 0, skipped 0, left 0 of 0 pairs.\n")
    name = saved("alpha", {"1": "a"})
    code, out, _ = run(
        "judge", kb, "--queries", "q.jsonl", "--scope", scope, "--runs", name, "--json"
    )
    assert (code, json.loads(out)["missing"]) == (1, ["a"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "keeps no questions"),
        (("--queries", "q.jsonl", "--qrels", "j.tsv"), ".jsonl"),
        (("--queries", "q.jsonl", "--depth", "0"), "depth"),
        (("--queries", "q.jsonl", "--runs", "r.trec", "--mode", "text"), "--mode"),
        (("--queries", "q.jsonl", "--mode", "hybrid"), "--mode hybrid"),
    ],
)
def test_wrong_calls_are_refused(run, kb, arguments, says):
    code, _, err = run("judge", kb, *arguments)
    assert code == 2
    assert says in err


def test_single_keys_on_a_terminal(kb, tmp_path):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "cormorant.cli", "judge", "kb", "--queries", "q.jsonl"]
    os.write(leader, b"4?2q")  # no Enter
    process = subprocess.run(
        [*command, "--qrels", "j.jsonl"],
        stdin=follower,
        capture_output=True,
        check=False,
        timeout=30,
    )
    os.close(leader)
    os.close(follower)
    assert process.returncode == 0, process.stderr
    assert sorted(g for d in read_qrels("j.jsonl").values() for g in d.values()) == [2, 4]
