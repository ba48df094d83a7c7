"""``cormorant eval``: what it prints, keeps, saves, refuses, and what it exits with."""

from __future__ import annotations

import json

import pytest

import cormorant
from cormorant.cli import main
from cormorant.evaluate import Run, kept_golden, read_run, write_run
from cormorant.model import Query

DOCS = {
    "a": "A fish swims in the sea.",
    "b": "A bird flies over the sea.",
    "c": "A cormorant is a bird that dives for fish.",
}
ASKED = {
    "fish in the sea": "a",
    "bird flies": "b",
    "diving bird": "c",
    "swims": "a",
    "sea": "b",
    "cormorant": "c",
    "fish": "a",
    "flies": "b",
    "dives for fish": "c",
    "over the sea": "b",
}
# Over fewer queries, few of which differ, no interval says anything.
QUERIES = {f"q{i}": pair for i, pair in enumerate([*ASKED.items()] * 4)}


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    with cormorant.open("kb") as store:
        store.add([{"id": id, "text": text, "metadata": {"kind": id}} for id, text in DOCS.items()])
    queries = [{"_id": query, "text": text} for query, (text, _) in QUERIES.items()]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
    (tmp_path / "r.qrels").write_text(
        "".join(f"{query} 0 {doc} 1\n" for query, (_, doc) in QUERIES.items())
    )


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = main(["eval", *argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


FILES = ("--queries", "q.jsonl", "--qrels", "r.qrels")


def worse(name: str = "base.jsonl") -> Run:
    """A run that puts the right document last, everywhere."""
    others = {doc: [d for d in DOCS if d != doc] for doc in DOCS}
    made = Run(
        "worse",
        {
            query: tuple((d, 3.0 - n) for n, d in enumerate([*others[doc], doc]))
            for query, (_, doc) in QUERIES.items()
        },
    )
    write_run(made, name)
    return made


def test_it_prints_the_metrics_of_the_stores_answers(run):
    code, out, _ = run("kb", *FILES, "--metric", "ndcg@10,mrr", "--metric", "P@1")
    assert code == 0
    assert out.split()[:4] == ["system", "ndcg@10", "mrr", "precision@1"]
    assert "40 queries" in out
    assert "ms a query" in out
    code, out, _ = run("kb", *FILES, "--json", "--per-query", "--metric", "hit@1")
    fields = json.loads(out)
    (judged,) = fields["runs"]
    with cormorant.open("kb") as store:
        first = {q: store.search(Query(text=t)).hits[0].id for q, (t, _) in QUERIES.items()}
    expected = {query: float(first[query] == doc) for query, (_, doc) in QUERIES.items()}
    assert judged["values"]["hit@1"] == expected
    assert 0 < judged["metrics"]["hit@1"] == sum(expected.values()) / 40 < 1
    assert judged["spending"]["queries"] == 40
    assert judged["config"]["query"] == {"mode": "text"}


def test_golden_queries_are_kept_in_the_store_and_asked_without_files(run):
    code, _, err = run("kb")
    assert code == 2
    assert "--keep" in err
    code, first, err = run("kb", *FILES, "--keep")
    assert code == 0
    assert "40 judged queries are kept" in err
    code, again, _ = run("kb")
    assert code == 0
    assert first.splitlines()[:2] == again.splitlines()[:2]
    worse()
    assert run("kb", "--run", "base.jsonl")[0] == 0, "judgements come from the store, too"
    with cormorant.open("kb") as store:
        assert len(kept_golden(store).queries) == 40


def test_golden_queries_of_a_scope_are_its_own(run):
    scope = ("--scope", '{"kind": "a"}')
    assert run("kb", *FILES, "--keep", *scope)[0] == 0
    assert run("kb", *scope)[0] == 0
    assert run("kb")[0] == 2


def test_a_saved_run_is_what_was_asked(run):
    for name in ("run.trec", "run.jsonl", "run.csv"):
        assert run("kb", *FILES, "--save-run", name, "--name", "mine")[0] == 0
    with cormorant.open("kb") as store:
        hits = [hit.id for hit in store.search(Query(text="fish in the sea"))]
    for name in ("run.trec", "run.jsonl", "run.csv"):
        assert list(read_run(name).ids("q0")) == hits
    assert read_run("run.jsonl").name == "mine"
    _, from_run, _ = run("--run", "run.trec", "--qrels", "r.qrels", "--json")
    _, from_store, _ = run("kb", *FILES, "--json")
    metrics = [json.loads(out)["runs"][0]["metrics"] for out in (from_run, from_store)]
    assert metrics[0] == metrics[1]


def test_queries_without_hits_are_told_of_where_the_file_cannot_hold_them(run):
    arguments = ("kb", *FILES, "--filter", '{"kind": "a"}', "--save-run")
    _, _, err = run(*arguments, "run.trec")
    assert "no hits" in err
    assert "no hits" not in run(*arguments, "run.jsonl")[2]


def test_against_a_baseline(run):
    worse()
    code, out, _ = run("kb", *FILES, "--baseline", "base.jsonl", "--metric", "mrr", "--json")
    assert code == 0
    fields = json.loads(out)
    (comparison,) = fields["comparisons"]
    assert fields["baseline"] == comparison["baseline"] == "worse"
    assert comparison["verdict"] == "better"
    assert comparison["low"] > 0
    _, out, _ = run("kb", *FILES, "--baseline", "base.jsonl")
    assert "significantly better" in out


def test_two_runs_of_one_name_are_told_apart(run):
    worse("one.jsonl")
    worse("two.jsonl")
    _, out, _ = run("--run", "one.jsonl", "--run", "two.jsonl", "--qrels", "r.qrels", "--json")
    assert [each["name"] for each in json.loads(out)["runs"]] == ["one.jsonl", "two.jsonl"]
    _, out, _ = run("--run", "one.jsonl", "--baseline", "two.jsonl", "--qrels", "r.qrels", "--json")
    assert json.loads(out)["baseline"] == "worse (baseline)"


@pytest.mark.parametrize(
    ("gates", "code", "outcomes"),
    [
        (["ndcg@10>=-0.01"], 0, ["pass"]),
        (["ndcg@10>=+0.9"], 1, ["fail"]),
        (["mrr>=+0", "mrr>=+0.95"], 1, ["pass", "fail"]),
        (["hit@10>=0.5"], 0, ["pass"]),
        (["hit@1>=0.8"], 0, ["cannot tell"]),
        (["hit@1>=0.8", "--strict"], 1, ["cannot tell"]),
    ],
)
def test_gates_decide_the_exit_code(run, gates, code, outcomes):
    worse()
    arguments = [part for gate in gates for part in (["--gate", gate] if ">" in gate else [gate])]
    got, out, _ = run("kb", *FILES, "--baseline", "base.jsonl", *arguments, "--json")
    assert got == code
    assert [gate["outcome"] for gate in json.loads(out)["gates"]] == outcomes
    got, out, _ = run("kb", *FILES, "--baseline", "base.jsonl", *arguments)
    assert got == code
    assert outcomes[-1].upper() in out


def test_a_gate_that_cannot_be_asked_never_passes(run):
    gate = ("--gate", "ndcg@10>=-0.01")
    code, _, err = run("kb", *FILES, *gate)
    assert (code, "baseline" in err) == (2, True)
    code, _, err = run("kb", *FILES, *gate, "--baseline", "none.trec")
    assert (code, "Cannot read none.trec" in err) == (2, True)
    base = worse()
    half = {query: base.rankings[query] for query in list(base.rankings)[:5]}
    write_run(Run("half", half), "half.jsonl")
    code, _, err = run("kb", *FILES, *gate, "--baseline", "half.jsonl")
    assert (code, "no answer to 35 of 40" in err) == (2, True)
    others = dict.fromkeys([query for query in QUERIES if query not in half], "no")
    write_run(Run("failing", half, failed=others), "failing.jsonl")
    code, _, err = run("--run", "failing.jsonl", "--qrels", "r.qrels", "--gate", "mrr>=0.1")
    assert (code, "failed" in err) == (2, True)
    write_run(Run("empty", dict.fromkeys(base.rankings, ())), "empty.jsonl")
    code, _, _ = run("--run", "empty.jsonl", "--qrels", "r.qrels", "--gate", "mrr>=0.1")
    assert code == 2
    worse()
    code, _, err = run("kb", *FILES, "--gate", "ndgc@10>=-0.01", "--baseline", "base.jsonl")
    assert (code, "ndcg" in err) == (2, True)


def test_failing_queries_are_an_error_and_no_empty_answers(run):
    queries = [{"_id": query, "text": text} for query, (text, _) in QUERIES.items()]
    queries[3]["text"] = "x" * 200_000
    with open("long.jsonl", "w", encoding="utf-8") as file:  # noqa: PTH123 - a line's worth
        file.writelines(json.dumps(query) + "\n" for query in queries)
    arguments = ("kb", "--queries", "long.jsonl", "--qrels", "r.qrels")
    code, out, err = run(*arguments, "--json")
    assert code == 1
    assert list(json.loads(out)["runs"][0]["failed"]) == ["q3"]
    assert "1 of 40 queries failed" in err
    assert run(*arguments, "--gate", "mrr>=0.1")[0] == 2
    code, _, err = run(*arguments, "--save-run", "run.trec")
    assert (code, "jsonl" in err) == (2, True)


def test_what_a_run_lacks_is_told(run):
    base = worse()
    write_run(Run("half", {"q0": base.rankings["q0"]}), "half.jsonl")
    code, out, err = run("--run", "half.jsonl", "--qrels", "r.qrels", "--json")
    assert code == 0
    assert "39 of 40 judged queries are not in the run" in err
    assert len(json.loads(out)["runs"][0]["missing"]) == 39


def test_more_places_than_hits_are_told_of(run):
    assert "recall@20" in run("kb", *FILES, "--metric", "recall@20")[2]
    assert "recall@20" not in run("kb", *FILES, "--metric", "recall@20", "-k", "20")[2]


def test_hits_are_judged_by_a_field_if_so_wished(run):
    _, out, _ = run("kb", *FILES, "--by", "kind", "--json")
    _, plain, _ = run("kb", *FILES, "--json")
    assert json.loads(out)["runs"][0]["metrics"] == json.loads(plain)["runs"][0]["metrics"]
    code, _, err = run("kb", *FILES, "--by", "nothing")
    assert (code, "'nothing'" in err) == (2, True)


def test_a_beir_folder_brings_both(run, tmp_path):
    (tmp_path / "qrels").mkdir()
    lines = "".join(f"{query}\t{doc}\t1\n" for query, (_, doc) in QUERIES.items())
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    (tmp_path / "q.jsonl").rename("queries.jsonl")
    assert run("kb", "--beir", ".", "--split", "dev")[0] == 0
    code, _, err = run("kb", "--beir", ".")
    assert (code, "dev" in err) == (2, True)


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_tables_for_documents(run, form):
    out = run("kb", *FILES, "--format", form)[1]
    assert {"markdown": "| system |", "latex": "\\toprule"}[form] in out
    assert "ms a query" not in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--run FILE"),
        (["--run", "base.jsonl"], "--qrels"),
        (["kb", "--qrels", "r.qrels"], "--queries is missing"),
        (["kb", "--queries", "q.jsonl"], "--qrels is missing"),
        (["kb", *FILES, "--beir", "."], "--beir brings"),
        (["kb", "--run", "base.jsonl", "--save-run", "x", "--qrels", "r.qrels"], "--save-run"),
        (["kb", *FILES, "--save-run", "r.qrels"], "--qrels reads"),
        (["kb", *FILES, "--save-run", "./q.jsonl"], "--queries reads"),
        (["kb", *FILES, "--baseline", "b.jsonl", "--save-run", "b.jsonl"], "--baseline reads"),
        (["kb", "--keep"], "--keep needs"),
        (["--run", "base.jsonl", "--keep", *FILES], "--keep needs"),
        ([*["--run", "base.jsonl"] * 2, "--qrels", "r.qrels", "--gate", "mrr>=.1"], "one run"),
        (["kb", *FILES, "--metric", "ndgc@10"], "Did you mean 'ndcg'"),
        (["none", *FILES], "no store"),
        (["kb", *FILES, "--mode", "vector"], "no vectors"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(run, arguments, says):
    worse()
    code, out, err = run(*arguments)
    assert code == 2
    assert says in err
    assert not out


# Groups


@pytest.mark.parametrize("groups", ["records", "kind", "groups.csv"])
def test_questions_in_groups_count_as_one(run, tmp_path, groups):
    rows = "".join(f"{query},{doc}\n" for query, (_, doc) in QUERIES.items())
    (tmp_path / "groups.csv").write_text("query,group\n" + rows)
    assert run("kb", *FILES, "--save-run", "base.jsonl")[0] == 0
    code, out, _ = run("kb", *FILES, "--baseline", "base.jsonl", "--groups", groups, "--json")
    assert code == 0
    assert {each["groups"] for each in json.loads(out)["comparisons"]} == {3}
    code, _, err = run(
        "kb", *FILES, "--baseline", "base.jsonl", "--groups", groups, "--gate", "mrr@10>=-0.01"
    )
    assert code == 2
    assert "40 queries are in 3 groups" in err


def test_questions_that_plainly_belong_together_are_told_of(run):
    assert "--groups" not in run("kb", *FILES, "--save-run", "base.jsonl")[2]
    argv = ("kb", *FILES, "--baseline", "base.jsonl")
    assert "40 questions are about 3 records" in run(*argv)[2]
    assert "questions are about" not in run(*argv, "--groups", "records")[2]


def test_a_field_to_group_by_needs_a_store(run):
    assert run("kb", *FILES, "--save-run", "base.jsonl")[0] == 0
    code, _, err = run("--run", "base.jsonl", "--qrels", "r.qrels", "--groups", "kind")
    assert code == 2
    assert "looked up in a store" in err


def test_judgements_that_name_nothing_returned_are_told_with_the_field_they_name(run, tmp_path):
    with cormorant.open("kb") as store:
        store.add([{"id": id, "text": text, "metadata": {"file": f"{id}.md"}}
                   for id, text in DOCS.items()])  # fmt: skip
    judged = "".join(f"{query} 0 {doc}.md 1\n" for query, (_, doc) in QUERIES.items())
    (tmp_path / "files.qrels").write_text(judged)
    argv = ("kb", "--queries", "q.jsonl", "--qrels", "files.qrels")
    code, _, err = run(*argv)
    assert code == 0
    assert "No document that was returned is judged" in err
    assert "judge with --by file." in err
    code, out, err = run(*argv, "--by", "file", "--json")
    assert "No document" not in err
    assert json.loads(out)["runs"][0]["metrics"]["ndcg@10"] > 0.5
    (tmp_path / "files.qrels").write_text(judged.replace(".md", ".txt"))
    assert "Do they belong together?" in run(*argv)[2]


def test_a_comparison_is_drawn(run, tmp_path):
    assert run("kb", *FILES, "--save-run", "base.jsonl")[0] == 0
    code, _, err = run("kb", *FILES, "--baseline", "base.jsonl", "--plot", "one.svg")
    assert code == 0
    assert "drawn: one.svg" in err
    assert (tmp_path / "one.svg").read_text().lstrip().startswith("<?xml")
    saved = ("--run", "base.jsonl", "--run", "base.jsonl", "--qrels", "r.qrels")
    assert run(*saved, "--baseline", "base.jsonl", "--plot", "two.png")[0] == 0
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")
    for argv, says in (
        (("kb", *FILES, "--plot", "x.svg"), "give a --baseline"),
        (("kb", *FILES, "--baseline", "base.jsonl", "--plot", "x.pdf"), ".png or .svg"),
    ):
        code, _, err = run(*argv)
        assert code == 2
        assert says in err


def test_costs_stand_beside_the_metrics(run):
    code, out, _ = run("kb", *FILES, "--costs", "--format", "markdown")
    assert code == 0
    assert out.splitlines()[0].replace(" ", "").endswith("|unjudged@10|ms|")
