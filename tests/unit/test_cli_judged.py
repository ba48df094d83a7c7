"""What the verbs that judge have in common: the same flags, and what they do in each."""

from __future__ import annotations

import argparse
import io
import json
import os
from dataclasses import replace

import pytest

import cormorant
from cormorant.cli import main
from cormorant.cli.app import VERBS
from cormorant.evaluate import Golden, keep_golden, kept_golden, write_beir

JUDGING = ("eval", "diff", "tune", "calibrate", "judge")
SHARED = {
    "--queries",
    "--beir",
    "--split",
    "--filter",
    "--scope",
    "--embedder",
    "--lock-timeout",
    "--json",
}
NAMES = [f"{a}a{b}o" for a in "bdfgkmpr" for b in "lmnprst"]
GOLDEN = Golden({name: f"{name} others" for name in NAMES}, {name: {name: 1} for name in NAMES})


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith("CORMORANT_"):
            monkeypatch.delenv(name)
    with cormorant.open(tmp_path / "kb") as store:
        for tenant in "ab":
            store.add(
                {
                    "id": name if tenant == "a" else f"{name}-b",
                    "text": f"{name} among others",
                    "metadata": {"tenant": tenant},
                }
                for name in NAMES
            )
        keep_golden(store.scope(tenant="a"), GOLDEN)
    write_beir(tmp_path / "beir", GOLDEN)


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = main([str(arg) for arg in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def flags(name):
    parser = argparse.ArgumentParser()
    next(verb for verb in VERBS if verb.name == name).arguments(parser)
    return {flag for action in parser._actions for flag in action.option_strings}


@pytest.mark.parametrize("name", ["eval", "tune", "calibrate"])
def test_every_verb_that_goes_by_judgements_can_group_and_judge_by_a_field(name):
    assert flags(name) >= {"--qrels", "--by", "--groups"}


@pytest.fixture
def by_file(tmp_path):
    """A store of files in two records each, and questions judged by file."""
    with cormorant.open(tmp_path / "files") as store:
        store.add(
            {
                "id": f"{name}#{n}",
                "text": f"{name} {n} others",
                "metadata": {"tags": ["a", "b"], "source": name},
            }
            for name in NAMES
            for n in range(2)
        )
    return ("files", "--beir", "beir")


def test_the_field_that_judgements_name_is_kept_with_them(run, by_file, tmp_path):
    (tmp_path / "space.toml").write_text("bm25_b = [0.1, 0.9]")
    kept = run("eval", *by_file, "--by", "source", "--keep", "--save-run", "a.jsonl", "--json")
    mean = json.loads(kept[1])["runs"][0]["metrics"]["ndcg@10"]
    assert mean > 0.9
    gate = ("--baseline", "a.jsonl", "--gate", "ndcg@10>=-0.01")
    code, out, err = run("eval", "files", *gate, "--json")
    assert (code, json.loads(out)["runs"][0]["metrics"]["ndcg@10"]) == (0, mean), err
    assert json.loads(out)["runs"][0]["config"]["judged_by"] == "source"
    assert run("tune", "files", "--space", "space.toml")[0] == 0
    assert run("calibrate", "files", "--dry-run")[0] == 0


def test_questions_are_grouped_by_the_field_they_are_judged_by(run, by_file, tmp_path):
    run("eval", *by_file, "--by", "source", "--keep", "--save-run", "a.jsonl")
    gate = ("--baseline", "a.jsonl", "--gate", "ndcg@10>=-0.01")
    code, out, err = run("eval", "files", *gate, "--groups", "source", "--json")
    assert (code, json.loads(out)["comparisons"][0]["groups"]) == (0, len(NAMES)), err
    code, _, err = run("eval", "files", "--run", "a.jsonl", *gate, "--groups", "tenant")
    assert code == 2
    assert "their source" in err


def test_a_table_without_a_header_is_named(run, tmp_path):
    (tmp_path / "bare.csv").write_text("q1,balo,1\n")
    queries = ("--queries", "beir/queries.jsonl", "--qrels", "bare.csv")
    code, _, err = run("eval", "kb", *queries)
    assert code == 2
    assert "bare.csv holds no judgements" in err
    assert "query,document,grade" in err


@pytest.mark.parametrize(("name", "exits"), [("tune", 2), ("calibrate", 2), ("eval", 0)])
def test_judgements_that_name_a_field_are_told_apart_from_those_of_records(
    run, by_file, name, exits
):
    code, _, err = run(name, *by_file)
    assert code == exits
    assert "--by source" in err


def test_judging_mixes_no_records_into_judgements_of_files(run, by_file, monkeypatch):
    run("eval", *by_file, "--by", "source", "--keep")
    monkeypatch.setattr("sys.stdin", io.StringIO("2\nq\n"))
    code, _, err = run("judge", "files", "--mode", "text")
    assert code == 2
    assert "--qrels FILE" in err
    with cormorant.open("files") as store:
        assert kept_golden(store) == replace(GOLDEN, by="source")


def test_what_was_judged_by_a_field_has_reasons_too(run, by_file):
    ways = ((), ("--filter", '{"source": {"$ne": "balo"}}'))
    for n, way in enumerate(ways):
        run("eval", *by_file, "--by", "source", *way, "--save-run", f"{n}.jsonl")
    argv = ("diff", "0.jsonl", "1.jsonl", "--kb", "files", "--beir", "beir", "--most", "0")
    code, out, _ = run(*argv, "--json")
    assert code == 1
    diffs = {each["query"]: each["changes"] for each in json.loads(out)["diffs"]}
    left = next(each for each in diffs["balo"] if each["kind"] == "left")
    assert left["id"] == "balo"
    assert left["before_says"].startswith("Its best record, balo#0: By text it ranks 1 ")
    assert left["after_says"] == "No record with this source is found."


@pytest.mark.parametrize("name", JUDGING)
def test_every_verb_that_judges_has_the_shared_flags(name):
    assert flags(name) >= SHARED


def test_a_filter_hides_the_answers_from_a_tuning(run, tmp_path):
    (tmp_path / "space.toml").write_text("bm25_b = [0.1, 0.9]")
    argv = ("tune", "kb", "--beir", "beir", "--space", "space.toml", "--mode", "text", "--json")
    assert run(*argv, "--filter", '{"tenant": "a"}')[0] == 0
    code, _, err = run(*argv, "--filter", '{"tenant": "b"}')
    assert code == 2
    assert "is 0 at each" in err


def test_a_calibration_is_measured_in_a_scope_and_never_set_by_it(run):
    scope = ("--scope", '{"tenant": "a"}')
    code, out, _ = run("calibrate", "kb", *scope, "--dry-run", "--json")
    assert code == 0
    assert json.loads(out)["modes"]["text"]["questions"] > 0
    for narrowed in (scope, ("--filter", '{"tenant": "a"}')):
        code, _, err = run("calibrate", "kb", "--beir", "beir", *narrowed)
        assert code == 2
        assert "--dry-run" in err
    with cormorant.open("kb") as store:
        assert store.calibration is None


def test_diff_asks_the_questions_of_a_beir_folder_within_a_filter(run):
    ways = ('{"mode": "text"}', '{"mode": "text", "filter": {"tenant": "b"}}')
    argv = ("diff", *ways, "--kb", "kb", "--beir", "beir", "-k", "1", "--json")
    code, out, _ = run(*argv)
    assert code == 1
    assert json.loads(out)["changed"] == len(NAMES)
    # Confined to b, both ways answer alike.
    code, out, _ = run(*argv, "--filter", '{"tenant": "b"}', "--lock-timeout", "1")
    assert code == 0
    assert json.loads(out)["changed"] == 0


def test_a_saved_run_cannot_be_filtered(run):
    assert run("eval", "kb", "--beir", "beir", "--save-run", "a.jsonl")[0] == 0
    code, _, err = run("diff", "a.jsonl", "a.jsonl", "--filter", '{"tenant": "b"}')
    assert code == 2
    assert "is a saved run" in err


def test_judge_pools_the_questions_of_a_beir_folder(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    argv = ("judge", "kb", "--beir", "beir", "--qrels", "mine.jsonl", "--mode", "text", "--json")
    code, out, _ = run(*argv)
    assert code == 0
    assert json.loads(out)["queries"] == len(NAMES)
    code, _, err = run(*argv, "--queries", "q.jsonl")
    assert code == 2
    assert "--beir brings the queries" in err
