"""What entered, left and moved between two runs, and the store's reasons; ``cormorant diff``."""

from __future__ import annotations

import json

import pytest

import cormorant
from cormorant.cli import main
from cormorant.errors import UsageError
from cormorant.evaluate import Golden, Run, keep_golden, run_system, write_run
from cormorant.evaluate.diffing import Asked, asked_for, diff, with_reasons

TEXTS = {
    "tide": "The tide turns at noon and floods the pier.",
    "pier": "The pier was built of oak.",
    "moon": "The moon pulls the tide.",
    "fish": "Cormorants dive for fish.",
}
QUERIES = {"1": "tide at the pier", "2": "diving for fish"}
# Vectors that rank quite otherwise than words do.
VECTORS = {"tide": (1.0, 0.0), "pier": (0.9, 0.1), "moon": (0.1, 0.9), "fish": (0.0, 1.0)}


def ranked(name, **rankings):
    return Run(
        name,
        {q: tuple((d, float(-i)) for i, d in enumerate(docs)) for q, docs in rankings.items()},
    )


@pytest.fixture
def store():
    with cormorant.open(":memory:") as made:
        made.add({"id": i, "text": t, "vector": VECTORS[i]} for i, t in TEXTS.items())
        yield made


def embed(_text):
    return [0.0, 1.0]


def test_entered_left_and_moved():
    found = diff(ranked("a", q="abcde", r="xyz"), ranked("b", q="bafce", r="xyz"), k=4)
    (one,) = found.changed
    assert [(c.id, c.before, c.after) for c in one.entered] == [("f", None, 3)]
    assert [(c.id, c.before, c.after) for c in one.left] == [("d", 4, None)]
    assert [(c.id, c.before, c.after) for c in one.moved] == [("b", 2, 1), ("a", 1, 2), ("c", 3, 4)]
    assert one.same == 0
    assert (found.compared, found.unchanged, found.same) == (2, 1, False)


def test_ranks_beyond_the_places_compared_are_told():
    (one,) = diff(ranked("a", q="abc"), ranked("b", q="acb"), k=2).changed
    assert [(c.id, c.before, c.after) for c in one.changes] == [("c", 3, 2), ("b", 2, 3)]
    assert [c.kind for c in one.changes] == ["entered", "left"]
    assert diff(ranked("a", q="abc"), ranked("b", q="acb"), k=1).same


def test_queries_of_one_run_alone_are_named_and_not_compared():
    found = diff(ranked("a", q="a", r="b"), ranked("b", q="a", s="b"))
    assert (found.only_before, found.only_after) == (("r",), ("s",))
    assert not found.changed
    assert not found.same
    with pytest.raises(UsageError, match="no query in common"):
        diff(ranked("a", q="a"), ranked("b", s="a"))
    with pytest.raises(UsageError, match="at least 1"):
        diff(ranked("a", q="a"), ranked("b", q="a"), k=0)


def test_those_that_changed_most_come_first():
    found = diff(
        ranked("a", p="abc", q="abc", r="abc"), ranked("b", p="acb", q="xyz", r="cba"), k=3
    )
    assert [each.query for each in found.most(3)] == ["q", "r", "p"]
    assert [each.query for each in found.changed] == ["p", "q", "r"]


def test_the_store_says_why(store):
    runs = [
        run_system(store, QUERIES, k=2, name=mode, config={"mode": mode}, embed=embed)
        for mode in ("text", "vector")
    ]
    asked = [asked_for(run) for run in runs]
    assert [each.fields["mode"] for each in asked] == ["text", "vector"]
    found = with_reasons(diff(*runs, k=2), store, QUERIES, *asked, embed=embed)
    first = next(each for each in found.changed if each.query == "1")
    left = {change.id: change for change in first.left}
    assert left["tide"].before_says.startswith("By text it ranks 1 of")
    assert left["tide"].after_says.startswith("By vector it ranks 4 of 4; top_k is 2")
    entered = {change.id: change for change in first.entered}
    assert entered["fish"].before_says.startswith("No term of the query occurs in its text")
    assert entered["fish"].after_says.startswith("By vector it ranks 1")


def test_a_store_that_changed_since_the_run_says_so(store):
    before, after = (ranked(name, **{"1": docs}) for name, docs in (("a", "x"), ("b", ["fish"])))
    asked = Asked({"mode": "text"}, 10)
    found = with_reasons(diff(before, after), store, QUERIES, asked, asked)
    left, entered = found.changed[0].left[0], found.changed[0].entered[0]
    assert left.before_says == "It is not in the store, or no longer."
    assert entered.after_says.startswith("The store as it is now misses it, unlike the run. No ter")
    with pytest.raises(UsageError, match="has no text"):
        with_reasons(diff(before, after), store, {}, asked, asked)


def test_a_run_from_elsewhere_does_not_say_how_it_was_asked():
    assert asked_for(ranked("a", q="a")) is None


# The command line


@pytest.fixture
def kb(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with cormorant.open("kb") as made:
        made.add({"id": i, "text": t, "metadata": {"long": len(t) > 26}} for i, t in TEXTS.items())
        keep_golden(made, Golden(QUERIES, {"1": {"tide": 1}, "2": {"fish": 1}}))
        for name, config in (("all", {}), ("long", {"filter": {"long": True}})):
            run = run_system(made, QUERIES, name=name, config={"mode": "text"} | config)
            write_run(run, f"{name}.jsonl")
            write_run(run, f"{name}.trec")
    return tmp_path


LONG = '{"mode": "text", "filter": {"long": true}}'


def said(capsys, *argv):
    code = main(list(argv))
    return code, *capsys.readouterr()


def test_two_configurations_are_compared_on_the_kept_questions(kb, capsys):
    (kb / "all.toml").write_text('mode = "text"\n', encoding="utf-8")
    code, out, err = said(capsys, "diff", "all.toml", LONG, "--kb", "kb", "--json")
    assert code == 1, err
    got = json.loads(out)
    assert (got["before"], got["after"]) == ("all", LONG)
    assert got["compared"] == got["changed"] + got["unchanged"] == 2
    changes = {c["id"]: c for each in got["diffs"] for c in each["changes"]}
    assert changes["moon"]["kind"] == "left"
    assert changes["moon"]["after_says"].startswith("It fails the filter")
    assert changes["moon"]["before_says"].startswith("By text it ranks")


def test_two_run_files_need_no_store(kb, capsys):
    code, out, _ = said(capsys, "diff", "all.trec", "long.trec")
    assert code == 1
    assert "queries changed in their first 10 places" in out
    assert any(line.split()[:1] == ["-"] and "moon" in line for line in out.splitlines())
    assert "before:" not in out


def test_runs_that_say_how_they_were_asked_are_explained(kb, capsys):
    code, out, _ = said(capsys, "diff", "all.jsonl", "long.jsonl", "--kb", "kb")
    assert code == 1
    assert "after: It fails the filter" in out
    code, out, err = said(capsys, "diff", "all.trec", "long.trec", "--kb", "kb")
    assert code == 1
    assert "no reasons: the run" in err
    assert "before:" not in out


def test_a_run_can_be_compared_with_a_configuration(kb, capsys):
    code, out, _ = said(capsys, "diff", "long.jsonl", LONG, "--kb", "kb")
    assert code == 0
    assert out.startswith("0 of 2 queries changed")


def test_the_store_confined_to_a_scope(kb, capsys):
    keep = kb / "q.jsonl"
    keep.write_text('{"_id": "1", "text": "tide at the pier"}\n', encoding="utf-8")
    code, out, err = said(
        capsys,
        *("diff", LONG, '{"mode": "text"}', "--kb", "kb"),
        *("--scope", '{"long": true}', "--queries", "q.jsonl"),
    )
    assert code == 0, err
    assert out.startswith("0 of 1 queries")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("all.trec", LONG), "say which store to ask, with --kb"),
        (('{"mode": ', LONG, "--kb", "kb"), "not valid TOML or JSON"),
        (('{"mode": "txt"}', LONG, "--kb", "kb"), "queries failed.*mode must be one of"),
        (('{"fusoin": "rrf"}', LONG, "--kb", "kb"), "fusoin"),
        (("none.trec", "all.trec"), "none.trec"),
        (("none.toml", LONG, "--kb", "kb"), "none.toml"),
        (("all.trec", "long.trec", "--kb", "nowhere"), "no store at nowhere"),
        (("all.trec", "long.trec", "-k", "0"), "at least 1"),
    ],
)
def test_what_cannot_be_compared_exits_2(kb, capsys, argv, says):
    import re

    code, out, err = said(capsys, "diff", *argv)
    assert code == 2
    assert not out
    assert re.search(says, err), err


def test_without_questions_a_store_cannot_be_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with cormorant.open("kb") as made:
        made.add({"id": i, "text": t} for i, t in TEXTS.items())
    code, _, err = said(capsys, "diff", '{"mode": "text"}', LONG, "--kb", "kb")
    assert code == 2
    assert "give --queries FILE" in err
