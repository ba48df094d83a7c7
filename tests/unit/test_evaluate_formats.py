"""Files of queries, judgements and runs: what is read, what is refused and where."""

from __future__ import annotations

import json

import pytest

from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate import (
    Cost,
    Golden,
    Run,
    parse_qrels,
    read_beir,
    read_beir_corpus,
    read_qrels,
    read_queries,
    read_run,
    write_beir,
    write_qrels,
    write_queries,
    write_run,
)
from cormorant.model import Record

QUERIES = {"1": "what is a fish?", "二": "什么是鱼？"}
QRELS = {"1": {"a": 2, "b": 0}, "二": {"c": 1}}


def put(tmp_path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


# Judgements


@pytest.mark.parametrize("name", ["qrels", "qrels.txt", "qrels.tsv", "qrels.csv", "qrels.jsonl"])
def test_judgements_come_back(tmp_path, name):
    write_qrels(QRELS, tmp_path / name)
    assert read_qrels(tmp_path / name) == QRELS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "query,document,grade\r\n1,a,.5\r\n1,b,1.0\r\n"),
        ("a.csv", "\ufeffqid,docno,rel\n1,a,0.5\n\n1,b,1\n"),
        ("a.csv", 'grade,query,document,note\n0.5,1,"a",\n1,1,b,"two\nlines"\n'),
        (
            "a.jsonl",
            (
                '{"query": 1, "document": "a", "grade": 0.5}\n\n'
                '{"query": "1", "document": "b", "grade": 1.0}'
            ),
        ),
        (
            "a.jsonl",
            (
                '{"query-id": "1", "corpus-id": "a", "score": 0.5}\n'
                '{"qid": "1", "doc": "b", "label": 1}'
            ),
        ),
    ],
)
def test_fractions_and_other_column_names(tmp_path, name, text):
    got = read_qrels(put(tmp_path, name, text))
    assert got == {"1": {"a": 0.5, "b": 1}}
    assert isinstance(got["1"]["b"], int), "whole grades stay whole"


@pytest.mark.parametrize("name", ["qrels.trec", "qrels.tsv"])
def test_whole_formats_refuse_fractions_and_write_nothing(tmp_path, name):
    with pytest.raises(UsageError, match=r"0\.5.*\.csv or \.jsonl"):
        write_qrels({"1": {"a": 1, "b": 0.5}}, tmp_path / name)
    assert not (tmp_path / name).exists()
    write_qrels({"1": {"a": 1.0}}, tmp_path / name)
    assert read_qrels(tmp_path / name) == {"1": {"a": 1}}


def test_ids_with_blanks_go_where_they_can(tmp_path):
    qrels = {"q 1": {"doc one": 1}}
    with pytest.raises(UsageError, match="'q 1'"):
        write_qrels(qrels, tmp_path / "qrels")
    with pytest.raises(UsageError, match="'doc one'"):
        write_qrels({"q": {"doc one": 1}}, tmp_path / "qrels")
    for name in ("a.tsv", "a.csv", "a.jsonl"):
        write_qrels(qrels, tmp_path / name)
        assert read_qrels(tmp_path / name) == qrels
    for bad in ("a\tb", "a\nb", " a", "a\r"):
        with pytest.raises(UsageError, match="tab"):
            write_qrels({"q": {bad: 1}}, tmp_path / "b.tsv")


def test_an_ideographic_space_is_no_blank_to_trec(tmp_path):
    qrels = {"1": {"文\u3000档": 1, "b\u00a0c": 1, "d\u2028e": 1}}
    write_qrels(qrels, tmp_path / "qrels")
    assert read_qrels(tmp_path / "qrels") == qrels


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        ("a.csv", "", 1, "empty"),
        ("a.csv", "query,doc\n1,a\n", 2, "no 'grade'"),
        ("a.csv", "query,doc,grade\n1,a,1\n1,b\n", 3, "3 cells"),
        ("a.csv", "query,doc,grade\n1,a,1\n1,b,high\n", 3, "'high'"),
        ("a.csv", "query,doc,grade\n1,a,nan\n", 2, "'nan'"),
        ("a.csv", "query,doc,grade\n1,,1\n", 2, "document id"),
        ("a.csv", 'query,doc,grade\n1,"a,1\n', 2, "CSV"),
        ("a.csv", "query,doc,grade\n1,a,1\n1,a,.5\n", 3, "judged twice, as 1 and as 0.5"),
        ("a.jsonl", '{"query": 1, "doc": "a", "grade": 1}\n{"query": 1', 2, "JSON"),
        ("a.jsonl", "[1]", 1, "list"),
        ("a.jsonl", '{"query": 1, "doc": "a", "grade": NaN}', 1, "NaN"),
        ("a.jsonl", '{"query": 1, "doc": "a", "grade": true}', 1, "True"),
        ("a.jsonl", '{"query": 1.5, "doc": "a", "grade": 1}', 1, "1.5"),
        ("a.jsonl", '{"doc": "a", "grade": 1}', 1, "no 'query'"),
        ("a.tsv", "1\ta\t1\n1\tb\t.5\n", 2, "jsonl"),
        ("a", "1 0 a 1 2\n", 1, "5 columns"),
    ],
)
def test_a_bad_judgement_is_named_with_its_line(tmp_path, name, text, line, says):
    path = put(tmp_path, name, text)
    with pytest.raises(EvalFileError, match=says) as caught:
        read_qrels(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


# Queries


@pytest.mark.parametrize("name", ["q.jsonl", "q.csv", "q.tsv"])
def test_queries_come_back(tmp_path, name):
    write_queries(QUERIES, tmp_path / name)
    assert read_queries(tmp_path / name) == QUERIES


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        ("q.jsonl", '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}', 2, "twice"),
        ("q.jsonl", '{"_id": "1", "text": " "}', 1, "blank"),
        ("q.jsonl", '{"_id": "1"}', 1, "no 'text'"),
        ("q.csv", "query,text\n1,a\n2\n", 3, "2 cells"),
        ("q.tsv", "1\ta\n2 b\n", 2, "no tab"),
        ("q.txt", "1 a\n", 0, "jsonl"),
    ],
)
def test_a_bad_query_is_named_with_its_line(tmp_path, name, text, line, says):
    path = put(tmp_path, name, text)
    with pytest.raises(EvalFileError, match=says) as caught:
        read_queries(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_queries_a_line_cannot_hold(tmp_path):
    with pytest.raises(UsageError, match="line break"):
        write_queries({"1": "a\nb"}, tmp_path / "q.tsv")
    with pytest.raises(EvalFileError, match="jsonl"):
        write_queries({"1": "a"}, tmp_path / "q.xml")
    for name in ("q.csv", "q.jsonl"):
        write_queries({"1": 'a\n"b", c\r'}, tmp_path / name)
        assert read_queries(tmp_path / name) == {"1": 'a\n"b", c\r'}


# Runs


FULL = Run(
    "bm25 × e5",
    {"1": (("a", 2.5), ("b c", 2.5), ("c", float("-inf"))), "2": (), "3": (("a", 1e-300),)},
    {"k": 10, "query": {"mode": "text"}},
    {"1": Cost(0.25, 12, 0.001), "2": Cost(0.5)},
    {"1": ("searched by text alone",)},
    {"4": "ValueError: no"},
)


def test_json_lines_keep_all_of_a_run(tmp_path):
    write_run(FULL, tmp_path / "run.jsonl")
    back = read_run(tmp_path / "run.jsonl")
    assert back == FULL
    assert back.config_hash == FULL.config_hash
    for line in (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line, parse_constant=pytest.fail)  # valid JSON has no Infinity


@pytest.mark.parametrize("name", ["run.trec", "run.csv"])
def test_what_a_table_cannot_say_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match=r"failed.*jsonl"):
        write_run(FULL, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_trec_file_of_a_run(tmp_path):
    run = Run("my run", {"1": (("a", 2.0), ("b", 2.0), ("c", 1.0)), "2": ()})
    write_run(run, tmp_path / "run")
    lines = (tmp_path / "run").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "1 Q0 a 1 2.0 my_run"
    assert lines[1].startswith("1 Q0 b 2 1.99999988")
    assert lines[2] == "1 Q0 c 3 1.0 my_run"
    assert read_run(tmp_path / "run").ids("1") == ("a", "b", "c")


def test_ids_with_blanks_cannot_be_written_in_trec(tmp_path):
    for rankings in ({"1": (("a b", 1.0),)}, {"1 2": (("a", 1.0),)}, {"1": (("", 1.0),)}):
        with pytest.raises(UsageError, match="blanks"):
            write_run(Run("a", rankings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_csv_run_is_named_by_its_file(tmp_path):
    path = put(tmp_path, "mine.csv", "qid,docno,score\n1,a,2\n2,x,1\n1,b,2\n")
    run = read_run(path)
    assert run.name == "mine"
    assert run.rankings == {"1": (("a", 2.0), ("b", 2.0)), "2": (("x", 1.0),)}


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        ("a", "1 Q0 a 1 2.0\n", 1, "5 columns"),
        ("a", "1 Q0 a 1 2.0 t\n1 Q0 a 2 1.0 t\n", 2, "ranked twice"),
        ("a", "1 Q0 a 1 high t\n", 1, "'high'"),
        ("a", "1 Q0 a 1 nan t\n", 1, "'nan'"),
        ("a.csv", "query,document,score\n1,a,1\n1,b,2\n", 3, "best hit comes first"),
        ("a.csv", "query,document,score\n1,a,1\n1,a,1\n", 3, "ranked twice"),
        ("a.csv", "query,document\n1,a\n", 2, "no 'score'"),
        ("a.jsonl", '{"query": "1", "hits": [["a", 1], ["b", 2]]}', 1, "fall"),
        ("a.jsonl", '{"query": "1", "hits": [["a", 1], ["a", 1]]}', 1, "once"),
        ("a.jsonl", '{"query": "1", "hits": [["a"]]}', 1, "hits is a list"),
        ("a.jsonl", '{"query": "1"}', 1, "hits is a list"),
        ("a.jsonl", '{"query": "1", "hits": []}\n{"query": "1", "hits": []}', 2, "twice"),
        ("a.jsonl", '{"query": "1", "hits": [], "seconds": -1}', 1, "at least 0"),
        ("a.jsonl", '{"run": "a", "config": 1}', 1, "object"),
    ],
)
def test_a_bad_hit_is_named_with_its_line(tmp_path, name, text, line, says):
    path = put(tmp_path, name, text)
    with pytest.raises(EvalFileError, match=says) as caught:
        read_run(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_a_file_that_cannot_be_had(tmp_path):
    for read in (read_run, read_qrels, read_queries):
        with pytest.raises(EvalFileError, match="Cannot read"):
            read(tmp_path / "none.jsonl")
    (tmp_path / "gb.csv").write_bytes("query,document,score\n1,文档,1\n".encode("gb18030"))
    with pytest.raises(EvalFileError, match="not UTF-8"):
        read_run(tmp_path / "gb.csv")
    with pytest.raises(EvalFileError, match="Cannot write"):
        write_qrels(QRELS, tmp_path / "no" / "folder.csv")
    with pytest.raises(EvalFileError, match="surrogate"):
        write_qrels({"1": {"\ud800": 1}}, tmp_path / "a.csv")


# BEIR


def test_a_beir_folder_comes_back(tmp_path):
    golden = Golden(QUERIES, QRELS)
    records = [
        Record("a", "Fish\n\nA fish swims.", metadata={"title": "Fish"}),
        Record("b", "A bird flies."),
    ]
    write_beir(tmp_path / "set", golden, records)
    assert read_beir(tmp_path / "set") == golden
    assert list(read_beir_corpus(tmp_path / "set")) == records
    first = json.loads(
        (tmp_path / "set" / "corpus.jsonl").read_text(encoding="utf-8").split("\n")[0]
    )
    assert first == {"_id": "a", "title": "Fish", "text": "A fish swims."}
    tsv = (tmp_path / "set" / "qrels" / "test.tsv").read_text(encoding="utf-8")
    assert tsv.startswith("query-id\tcorpus-id\tscore\n1\ta\t2\n")


def test_a_split_asks_its_own_queries(tmp_path):
    write_beir(tmp_path, Golden(QUERIES, QRELS))
    write_qrels({"1": {"a": 1}}, tmp_path / "qrels" / "dev.tsv")
    assert read_beir(tmp_path, split="dev") == Golden({"1": QUERIES["1"]}, {"1": {"a": 1}})
    with pytest.raises(EvalFileError, match="dev, test"):
        read_beir(tmp_path, split="train")


def test_a_beir_folder_whose_parts_do_not_fit(tmp_path):
    write_beir(tmp_path, Golden(QUERIES, QRELS))
    write_qrels({"9": {"a": 1}}, tmp_path / "qrels" / "test.tsv")
    with pytest.raises(EvalFileError, match="'9'"):
        read_beir(tmp_path)
    put(tmp_path, "qrels/test.tsv", "query-id\tcorpus-id\tscore\n")
    with pytest.raises(EvalFileError, match="no judgements"):
        read_beir(tmp_path)
    put(tmp_path, "corpus.jsonl", '{"_id": "a", "text": 1}\n')
    with pytest.raises(EvalFileError, match="line 1"):
        list(read_beir_corpus(tmp_path))


def test_a_golden_set_needs_the_text_of_every_judged_query():
    assert Golden({"1": "a", "2": "b"}, {"2": {"x": 1}}).judged == {"2": "b"}
    with pytest.raises(UsageError, match="'2'"):
        Golden({"1": "a"}, {"2": {"x": 1}})
    with pytest.raises(UsageError, match="no judgements"):
        Golden({"1": "a"}, {})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"query": "1", "hits": [], "degraded": 5}', "degraded"),
        ('{"query": "1", "hits": [], "degraded": "by words alone"}', "degraded"),
        ('{"query": "1", "hits": [], "degraded": {"a": 1}}', "degraded"),
        ('{"query": "1", "failed": null}', "failed"),
        ('{"query": "1", "failed": ["x"]}', "failed"),
        ('{"query": "1", "hits": [["a", 1]], "failed": "late"}', "both failed and has"),
    ],
)
def test_what_a_run_says_of_a_query_has_its_form(tmp_path, line, says):
    path = tmp_path / "run.jsonl"
    path.write_text('{"run": "a"}\n' + line + "\n")
    with pytest.raises(EvalFileError, match=f"line 2.*{says}"):
        read_run(path)


def test_a_column_that_comes_twice_is_refused(tmp_path):
    path = tmp_path / "qrels.csv"
    path.write_text("query,query,document,grade\na,b,d,1\n")
    with pytest.raises(EvalFileError, match=r"line 1.*'query' twice"):
        read_qrels(path)


@pytest.mark.parametrize("grade", ["1" + "0" * 400, "1_0", "１", "9" * 5000])
def test_grades_are_plain_numbers_that_a_float_holds(tmp_path, grade):
    path = tmp_path / "qrels.trec"
    path.write_text(f"1 0 a {grade}\n")
    with pytest.raises(EvalFileError, match="line 1: a grade is a whole number") as caught:
        read_qrels(path)
    assert len(str(caught.value)) < 400
    path = tmp_path / "qrels.csv"
    path.write_text(f"query,document,grade\n1,a,{grade}\n")
    with pytest.raises(EvalFileError, match="line 2: a grade is a number") as caught:
        read_qrels(path)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("score", ["1_0", "１"])
def test_scores_are_plain_numbers(tmp_path, score):
    path = tmp_path / "run.trec"
    path.write_text(f"1 Q0 a 1 {score} t\n")
    with pytest.raises(EvalFileError, match="line 1: a score is a number"):
        read_run(path)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("q1 0\td1\t2", {"q1": {"d1": 2}}),
        ("q1\t0\td1 2", {"q1": {"d1": 2}}),
        ("q1\t0 d1\t2", {"q1": {"d1": 2}}),
        ("q1\tQ0\td1\t2", {"q1": {"d1": 2}}),
        ("q1\td 1\t2", {"q1": {"d 1": 2}}),
        ("q 1\td1\t2", {"q 1": {"d1": 2}}),
    ],
)
def test_trec_judgements_may_mix_blanks_and_tabs(line, read):
    assert parse_qrels([line + "\n"], name="x") == read


def test_below_beirs_header_a_tab_parts_columns_whatever_they_hold():
    lines = ["query-id\tcorpus-id\tscore\n", "q1 0\td1\t2\n"]
    assert parse_qrels(lines, name="x") == {"q1 0": {"d1": 2}}
