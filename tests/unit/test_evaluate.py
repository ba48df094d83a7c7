"""Metrics and judgement files."""

from __future__ import annotations

import math

import pytest

from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate import mean_ndcg, ndcg, read_qrels


def test_ndcg_of_a_worked_example():
    # Grades 3 2 3 0 1 2 in this order; by hand: DCG 6.861, ideal DCG 7.141 (all six judged).
    grades = {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1, "f": 2}
    got = ndcg(list("abcdef"), grades)
    dcg = 3 + 2 / math.log2(3) + 3 / 2 + 0 + 1 / math.log2(6) + 2 / math.log2(7)
    ideal = 3 + 3 / math.log2(3) + 2 / 2 + 2 / math.log2(5) + 1 / math.log2(6)
    assert dcg == pytest.approx(6.861, abs=1e-3)
    assert ideal == pytest.approx(7.141, abs=1e-3)
    assert got == pytest.approx(dcg / ideal)


def test_ndcg_counts_k_places_and_ignores_the_unjudged():
    assert ndcg(["x", "y", "a"], {"a": 1}, k=2) == 0.0
    assert ndcg(["x", "a"], {"a": 1}) == pytest.approx(1 / math.log2(3))
    assert ndcg(["a"], {"a": 1, "b": 0}) == 1.0
    assert ndcg(["a"], {}) == 0.0
    assert ndcg(["a"], {"a": -1}) == 0.0


def test_ndcg_refuses_what_has_no_meaning():
    with pytest.raises(UsageError, match="at least 1"):
        ndcg(["a"], {"a": 1}, k=0)
    with pytest.raises(UsageError, match="twice"):
        ndcg(["a", "a"], {"a": 1})


def test_a_judged_query_without_an_answer_counts_as_zero():
    assert mean_ndcg({"1": ["a"]}, {"1": {"a": 1}, "2": {"a": 1}}) == 0.5
    with pytest.raises(UsageError, match="empty"):
        mean_ndcg({}, {})


@pytest.mark.parametrize(
    "written",
    [
        "1 0 a 2\n1 0 b 0\n\n2 0 c 1\n",
        "1\ta\t2\n1\tb\t0\n2\tc\t1\n",
        "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\tc\t1\n",
        "\ufeff1 0 a 2\r\n1 0 b 0\r\n2 0 c 1\r\n",
    ],
)
def test_qrels_in_every_accepted_shape(tmp_path, written):
    path = tmp_path / "qrels"
    path.write_text(written, encoding="utf-8", newline="")
    assert read_qrels(path) == {"1": {"a": 2, "b": 0}, "2": {"c": 1}}


@pytest.mark.parametrize(
    ("written", "line", "says"),
    [
        ("1 0 a 2\n1 0\n", 2, "2 columns"),
        ("1 0 a high\n", 1, "'high'"),
        ("1 0 a 2\n1 0 a 1\n", 2, "judged twice"),
    ],
)
def test_a_bad_qrels_line_is_named(tmp_path, written, line, says):
    path = tmp_path / "qrels"
    path.write_text(written, encoding="utf-8")
    with pytest.raises(EvalFileError, match=says) as caught:
        read_qrels(path)
    assert caught.value.line == line
    assert caught.value.path == str(path)


def test_a_qrels_file_that_cannot_be_read(tmp_path):
    with pytest.raises(EvalFileError, match="Cannot read"):
        read_qrels(tmp_path / "none")
    (tmp_path / "gb").write_bytes("问题 0 文档 1".encode("gb18030"))
    with pytest.raises(EvalFileError, match="not UTF-8"):
        read_qrels(tmp_path / "gb")
