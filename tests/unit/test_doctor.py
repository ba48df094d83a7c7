"""The doctor: for each check a store and a pipeline that fail it, and some that pass."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import cormorant
from cormorant.cli.app import main
from cormorant.errors import ConfigError, NotFound, ScopeError, UsageError
from cormorant.evaluate import Golden, keep_golden
from cormorant.ingest.doctor import CHECKS, Pipeline, examine
from cormorant.langchain import Cormorant

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings

SENTENCE = "A cormorant dives into the cold water and brings the fish back to the boat"
BODY = f"{SENTENCE}. " * 2


def record(id, text=None, vector=(1.0, 0.0), **metadata):
    text = f"{BODY}Number {id}." if text is None else text
    return {"id": id, "text": text, "vector": vector, "metadata": metadata}


def some(count=30, **metadata):
    return [record(str(number), **metadata) for number in range(count)]


def fixed(count=30):
    return [
        record(str(number), f"{number:02d} {SENTENCE} and {SENTENCE}") for number in range(count)
    ]


def spans(step):
    return [record(str(n), source="a", start_index=n * step, text=f"{n} {BODY}") for n in range(3)]


GOOD = {
    "chunk-overlap": [
        (spans(20), {}),
        (some(), {"chunk_overlap": 50}),
        (spans(500), {"chunker": "structural"}),
    ],
    "chunk-sizes-compared": [(some(), {"chunk_sizes_compared": [300, 500]})],
    "tenant-field": [
        (some(tenant="acme"), {}),
        (some(team="x"), {"tenant_field": "team"}),
        (some(), {"tenant_field": ""}),
    ],
    "one-embedder": [(some(), {"index_embedder": "a", "query_embedder": "a"})],
    "filter-fields": [
        ([*some(lang="en"), record("x", lang="de"), record("y", lang="de")], {"filters": ["lang"]})
    ],
    "hybrid": [(some(), {"mode": "hybrid"})],
    "reranker": [(some(), {"reranker": "cross-encoder"})],
    "query-rewriting": [(some(), {"query_rewriting": True})],
    "evaluation": [(some(), {"evaluated": True})],
    "tracing": [(some(), {"tracing": True})],
    "fallback": [(some(), {"fallback": True})],
    "cost-by-tenant": [(some(), {"cost_by_tenant": True})],
    "chunk-size": [(some(), {})],
    "cut-mid-sentence": [(some(), {}), ([record("h", "# A heading without an end")], {})],
    "fixed-splitter": [(some(), {}), (fixed(), {"chunker": "recursive"})],
    "duplicates": [(some(), {})],
    "empty-chunks": [(some(), {})],
    "over-long-chunks": [(some(), {})],
    "normalised-vectors": [(some(), {}), (some(), {"metric": "dot"})],
    "enum-drift": [(some(type="pdf"), {})],
    "copied-texts": [(some(title="A fish"), {})],
}
BAD = {
    "chunk-overlap": [(spans(500), {}), (some(), {"chunk_overlap": 0})],
    "chunk-sizes-compared": [(some(), {"chunk_sizes_compared": [500]})],
    "tenant-field": [(some(), {}), ([*some(tenant="acme"), record("x")], {})],
    "one-embedder": [(some(), {"index_embedder": "a", "query_embedder": "b"})],
    "filter-fields": [
        (some(), {}),
        (some(lang="en"), {"filters": []}),
        (some(lang="en"), {"filters": ["lang"]}),
        (some(lang="en"), {"filters": ["year"]}),
    ],
    "hybrid": [(some(), {"mode": "vector"}), ([*some(), record("x", vector=None)], {})],
    "reranker": [(some(), {"reranker": ""})],
    "query-rewriting": [(some(), {"query_rewriting": False})],
    "evaluation": [(some(), {"evaluated": False})],
    "tracing": [(some(), {"tracing": False})],
    "fallback": [(some(), {"fallback": False})],
    "cost-by-tenant": [(some(), {"cost_by_tenant": False})],
    "chunk-size": [([record("a", "fish")], {}), ([record("a", BODY * 20)], {})],
    "cut-mid-sentence": [
        (fixed(), {}),
        ([record("a", "鸬鹚潜入冰冷的水中把鱼带回到小船上面来然后又再一次潜入水")], {}),
    ],
    "fixed-splitter": [(fixed(), {}), (some(), {"chunker": "fixed"})],
    "duplicates": [([*some(), record("x", f"{BODY}Number 0.")], {})],
    "empty-chunks": [([*some(), record("x", " ")], {})],
    "over-long-chunks": [([record("a", BODY * 100)], {})],
    "normalised-vectors": [([record("a", vector=(3.0, 0.0))], {"metric": "dot"})],
    "enum-drift": [([record("a", type="PDF"), record("b", type="pdf")], {})],
    "copied-texts": [([record("a", page=f"{BODY}Number a.")], {})],
}
UNKNOWN = {check.name for check in CHECKS if check.checklist} - {"tenant-field", "filter-fields"}


def look(case, name):
    records, described = case
    pipeline = {key: value for key, value in described.items() if key != "metric"}
    with cormorant.open(":memory:", metric=described.get("metric", "cosine")) as store:
        store.add(records)
        (found,) = [each for each in examine(store, pipeline).findings if each.name == name]
    return found


def test_every_check_has_a_case_of_both_kinds_and_twelve_are_the_checklist():
    names = {check.name for check in CHECKS}
    assert set(GOOD) == names == set(BAD)
    assert len(names) == len(CHECKS)
    assert sum(check.checklist for check in CHECKS) == 12


@pytest.mark.parametrize(("name", "case"), [(n, c) for n, cases in GOOD.items() for c in cases])
def test_it_passes(name, case):
    found = look(case, name)
    assert (found.state, found.remedy) == ("passed", ""), found.evidence


@pytest.mark.parametrize(("name", "case"), [(n, c) for n, cases in BAD.items() for c in cases])
def test_it_fails_with_evidence_and_a_remedy(name, case):
    found = look(case, name)
    assert found.state == "failed", found.evidence
    assert found.remedy
    assert found.evidence


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_what_nobody_described_is_unknown(name):
    found = look((some(), {}), name)
    assert found.state == "unknown"
    assert found.remedy


def test_examples_are_ids():
    assert look(BAD["empty-chunks"][0], "empty-chunks").examples == ("x",)
    assert look(BAD["duplicates"][0], "duplicates").examples == ("x",)
    assert look(BAD["enum-drift"][0], "enum-drift").examples == ("type: 'PDF', 'pdf'",)


def test_stored_text_cannot_move_the_cursor():
    found = look(([record("a", type="\x1b[2JA"), record("b", type="\x1b[2Ja")], {}), "enum-drift")
    assert "\x1b" not in found.examples[0]


def test_the_store_s_own_evidence_counts():
    with Cormorant(CountingEmbeddings()) as vs:
        vs.add_texts([BODY])
        keep_golden(vs.store, Golden({"1": "a fish?"}, {"1": {"a": 1}}))
        found = {each.name: each for each in examine(vs.store).findings}
    assert found["one-embedder"].state == "passed"
    assert found["evaluation"].evidence == "the store keeps 1 judged questions"


DESCRIBED = {
    "chunk_overlap": 50,
    "chunk_sizes_compared": [300, 500],
    "tenant_field": "",
    "index_embedder": "a",
    "query_embedder": "a",
    "mode": "hybrid",
    "reranker": "x",
    "query_rewriting": True,
    "evaluated": True,
    "tracing": True,
}


@pytest.mark.parametrize(
    ("left_out", "passed", "verdict"),
    [(0, 9, "nearly"), (2, 7, "nearly"), (3, 6, "not ready"), (-1, 10, "ready")],
)
def test_the_verdict(left_out, passed, verdict):
    described = dict(DESCRIBED)
    for name in ("tracing", "evaluated", "query_rewriting")[: max(left_out, 0)]:
        del described[name]
    if left_out < 0:
        described["fallback"] = True
    with cormorant.open(":memory:") as store:
        store.add(some())
        diagnosis = examine(store, described)
        assert (diagnosis.passed, diagnosis.verdict) == (passed, verdict)
        assert diagnosis.ok == (verdict == "ready")
        # What leaks is an error, however long the list of what is well.
        leaks = examine(store, {**described, "tenant_field": "team", "cost_by_tenant": True})
        assert not leaks.ok


def test_a_scope_sees_its_own_alone_and_a_large_store_is_sampled():
    with cormorant.open(":memory:") as store:
        store.scope(tenant="acme").add(some())
        store.scope(tenant="other").add([record("x", "")])
        inside = examine(store.scope(tenant="acme"))
        assert (inside.records, inside.sampled) == (30, None)
        assert {e.name: e.state for e in inside.findings}["empty-chunks"] == "passed"
        part = examine(store, limit=10)
        assert (part.records, part.examined) == (31, 10)
        assert part.sampled.startswith("The oldest 10 of 31 records")
    with cormorant.open(":memory:", require_scope=("tenant",)) as store, pytest.raises(ScopeError):
        examine(store)


def test_an_empty_store_is_not_ready():
    with cormorant.open(":memory:") as store:
        assert examine(store).verdict == "not ready"


@pytest.mark.parametrize(
    ("described", "says"),
    [
        ({"rerankr": "x"}, "Did you mean 'reranker'"),
        ({"tracing": 1}, "takes a true or false; got 1"),
        ({"chunk_overlap": True}, "takes a whole number"),
        ({"filters": "lang"}, "takes a list of texts"),
        ({"chunk_sizes_compared": ["a"]}, "takes a list of whole numbers"),
    ],
)
def test_a_description_that_says_nothing_is_refused(described, says):
    with pytest.raises(ConfigError, match=says):
        Pipeline.of(described)


def test_descriptions_are_read_from_toml_and_json(tmp_path):
    (tmp_path / "p.toml").write_text('[pipeline]\nmode = "hybrid"\nfilters = ["lang"]\n')
    (tmp_path / "p.json").write_text('{"mode": "hybrid", "filters": ["lang"]}')
    read = [Pipeline.load(tmp_path / name) for name in ("p.toml", "p.json")]
    assert read == [Pipeline(mode="hybrid", filters=("lang",))] * 2
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match="no TOML or JSON"):
        Pipeline.load(tmp_path / "bad.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ConfigError, match="takes an object"):
        Pipeline.load(tmp_path / "list.json")
    with pytest.raises(NotFound):
        Pipeline.load(tmp_path / "none.toml")


def test_only_an_open_store_is_examined():
    with pytest.raises(UsageError, match="takes an open store"):
        examine("kb")


def test_the_command_line(tmp_path, capsys):
    path = str(tmp_path / "kb")
    with cormorant.open(path) as store:
        store.add(some())
    file = tmp_path / "p.json"
    file.write_text(json.dumps({**DESCRIBED, "fallback": True}))
    assert main(["doctor", path, "--pipeline", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["passed"], told["of"], told["verdict"]) == (True, 10, 12, "ready")
    assert [each["name"] for each in told["findings"]] == [check.name for check in CHECKS]
    assert main(["doctor", path]) == 1
    shown = capsys.readouterr()
    assert "0/12: not ready" in shown.out
    assert "--pipeline" in shown.err
    assert main(["doctor", path, "--pipeline", str(tmp_path / "none")]) == 2
