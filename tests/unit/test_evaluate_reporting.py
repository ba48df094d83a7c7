"""Tables as text, Markdown and LaTeX; a comparison in words; plots."""

from __future__ import annotations

import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cormorant.errors import MissingDependency, UsageError
from cormorant.evaluate import Evaluation, Run, compare, compare_all, report
from cormorant.evaluate.reporting import comparison_lines, interval_plot, scatter_plot
from cormorant.width import columns

METRICS = ("ndcg@10", "mrr@10", "recall@5")
RNG = np.random.default_rng(8)
BASE = RNG.uniform(0.3, 0.6, (40, 3))


def evaluated(name, shift=0.0):
    values = np.clip(BASE + RNG.normal(shift, 0.05, BASE.shape) * (shift != 0), 0, 1)
    queries = tuple(f"q{i}" for i in range(40))
    return Evaluation(Run(name, dict.fromkeys(queries, (("d", 1.0),))), queries, METRICS, values)


FIRST = evaluated("bm25")
BETTER, SAME = evaluated("混合检索", 0.1), evaluated("same")
WORSE = evaluated("a_b%&$#{}~^\\", -0.1)


def test_marks_say_which_systems_differ():
    table = report(FIRST, [BETTER, WORSE, SAME])
    rows = {row[0]: row[1:] for row in table.rows()}
    assert rows["system"] == list(METRICS)
    assert rows["bm25"] == [f"{m:.4f}" for m in FIRST.means.values()]
    assert all(cell.endswith("+") for cell in rows["混合检索"])
    assert all(cell.endswith("-") for cell in rows[WORSE.run.name])
    assert rows["same"] == rows["bm25"]
    assert "than bm25" in table.legend
    assert "by Holm over 3 systems" in table.legend


def test_one_run_alone_is_a_table_without_marks():
    table = report(FIRST, metrics=["mrr@10"])
    assert table.rows() == [["system", "mrr@10"], ["bm25", f"{FIRST.means['mrr@10']:.4f}"]]
    assert table.legend == "Means over 40 queries."
    assert table.warnings == ()


def test_what_no_table_can_be_made_of_is_refused():
    with pytest.raises(UsageError, match="needs a metric"):
        report(FIRST, metrics=[])
    with pytest.raises(UsageError, match="not judged by 'map'"):
        report(FIRST, metrics=["map"])


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_a_terminal_table_fits_and_aligns_wide_characters(width):
    text = report(FIRST, [BETTER, WORSE]).terminal(width)
    lines = text.splitlines()
    assert all(columns(line) <= width for line in lines)
    first = lines[: lines.index("")]
    dots = {columns(line[: line.index(".")]) for line in first[1:]}
    assert len(dots) == 1, "the decimal points of a column stand below each other"
    joined = " ".join(lines)
    for metric in METRICS:
        assert metric in joined
    assert " ".join(report(FIRST, [BETTER, WORSE]).legend.split()) in " ".join(joined.split())


def test_names_are_clipped_and_figures_are_not():
    long = evaluated("x" * 200, 0.1)
    lines = report(FIRST, [long]).terminal(60).splitlines()
    assert any(line.startswith("xxx") and "…" in line for line in lines)
    assert f"{long.means['ndcg@10']:.4f}+" in " ".join(lines)


def test_a_name_cannot_move_the_terminals_cursor():
    assert "\x1b" not in report(evaluated("red\x1b[31m")).terminal()


def test_markdown_is_escaped():
    text = report(FIRST, [evaluated("a|b*c_d<e", 0.1)], metrics=["mrr@10"]).markdown()
    head, rule, first, second = text.splitlines()[:4]
    assert head == "| system | mrr@10 |"
    assert rule == "| --- | ---: |"
    assert first == f"| bm25 | {FIRST.means['mrr@10']:.4f} |"
    assert second.startswith(r"| a\|b\*c\_d\<e | ")


def test_latex_is_escaped_and_marks_stand_raised():
    text = report(FIRST, [BETTER, WORSE], metrics=["ndcg@10"]).latex()
    escaped = r"a\_b\%\&\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert escaped in text
    assert f"{BETTER.means['ndcg@10']:.4f}$^{{+}}$" in text
    assert f"{WORSE.means['ndcg@10']:.4f}$^{{-}}$" in text
    assert text.count("{") == text.count("}")
    assert r"p \textless{} 0.05" in text


def test_warnings_come_with_the_table_once():
    table = report(FIRST, [BETTER, WORSE])
    assert table.warnings == (
        "The judgements are not known here: unjudged documents were not looked for.",
    )
    assert table.markdown().count("were not looked for") == 1


def test_a_comparison_in_words():
    found = compare(FIRST, BETTER, "ndcg@10")
    text = "\n".join(comparison_lines(found, 70, most=3))
    assert all(columns(line) <= 70 for line in text.splitlines())
    assert text.startswith("混合检索 is better than bm25: ndcg@10")
    assert f"Moved most of {found.wins + found.losses}:" in text
    assert [m.query for m in found.moved(3)] == [line.split()[0] for line in text.splitlines()[-3:]]


# Plots


@pytest.fixture
def drawing():
    pytest.importorskip("matplotlib", reason="the extra 'plots' is not installed")


@pytest.mark.usefixtures("drawing")
def test_plots_are_written_as_png_and_svg(tmp_path):
    same, other = evaluated("$x_1$ same"), evaluated("better", 0.1)
    found = compare_all(FIRST, [same, other], "ndcg@10")
    for path in (
        scatter_plot(found[1], tmp_path / "scatter.png"),
        interval_plot(found, str(tmp_path / "intervals.png")),
    ):
        assert path.read_bytes().startswith(b"\x89PNG\r\n")
    for path in (
        scatter_plot(found[1], tmp_path / "scatter.SVG"),
        interval_plot(found, tmp_path / "intervals.svg"),
    ):
        assert ET.parse(path).getroot().tag.endswith("svg")


@pytest.mark.usefixtures("drawing")
def test_plotting_leaves_matplotlibs_global_state_alone(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    sys.modules.pop("matplotlib.pyplot", None)
    scatter_plot(compare(FIRST, SAME, "ndcg@10"), tmp_path / "a.svg")
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.usefixtures("drawing")
def test_what_cannot_be_plotted_is_refused(tmp_path):
    found = compare(FIRST, BETTER, "ndcg@10")
    with pytest.raises(UsageError, match=r"\.png or \.svg; got .*a\.jpeg"):
        scatter_plot(found, tmp_path / "a.jpeg")
    with pytest.raises(UsageError, match="got 0 comparisons"):
        interval_plot([], tmp_path / "a.svg")
    with pytest.raises(UsageError, match="not such"):
        interval_plot([found, compare(FIRST, BETTER, "mrr@10")], tmp_path / "a.svg")


def test_without_matplotlib_the_pip_line_is_printed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependency, match=r"cormorant\[plots\]"):
        scatter_plot(compare(FIRST, BETTER, "ndcg@10"), tmp_path / "a.svg")


def test_costs_stand_beside_quality_as_far_as_they_were_measured():
    from cormorant.evaluate import Cost, judge

    qrels = {str(q): {"a": 1} for q in range(4)}
    hits = dict.fromkeys(qrels, (("a", 1.0),))
    chain = Run("chain", hits, costs=dict.fromkeys(qrels, Cost(0.25, tokens=120, usd=0.0004)))
    store = Run("store", hits, costs=dict.fromkeys(qrels, Cost(0.002)))
    judged = [judge(each, qrels, "mrr") for each in (chain, store, Run("file", hits))]
    assert report(judged[0], judged[1:], costs=True).rows() == [
        ["system", "mrr", "ms", "tokens", "USD"],
        ["chain", "1.0000", "250.0", "120", "0.000400"],
        ["store", "1.0000", "2.0", "0", "0.000000"],
        ["file", "1.0000", "", "", ""],
    ]
    assert report(judged[1], costs=True).rows()[0] == ["system", "mrr", "ms"]
    assert report(judged[2], costs=True).rows()[0] == ["system", "mrr"]
    assert report(judged[0], judged[1:]).rows()[0] == ["system", "mrr"]
    for text in (
        report(judged[0], judged[1:], costs=True).terminal(),
        report(judged[0], judged[1:], costs=True).latex(),
        report(judged[0], judged[1:], costs=True).markdown(),
    ):
        assert "0.000400" in text
