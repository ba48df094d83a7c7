"""The command line's parts that need no store: width, paragraphs, reading, settings, console."""

from __future__ import annotations

import io
import json
from argparse import Namespace

import pytest

from cormorant import width
from cormorant.cli import paragraphs, reading
from cormorant.cli.console import Console
from cormorant.cli.reading import Failure, Source, expand
from cormorant.cli.settings import SETTINGS, Settings
from cormorant.errors import ConfigError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def items(path, **kwargs):
    return list(Source(path, **kwargs).items())


# Width


@pytest.mark.parametrize(
    ("text", "wide"), [("abc", 3), ("鸬鹚", 4), ("a鸬b", 4), ("é", 1), ("", 0), ("ｆ", 2)]
)
def test_columns(text, wide):
    assert width.columns(text) == wide


def test_clip_never_exceeds_its_room():
    for text in ("鸬鹚捕鱼的方法", "a cormorant dives", "mixed 鸬鹚 text"):
        for room in range(1, 20):
            cut = width.clip(text, room)
            assert width.columns(cut) <= room
            assert cut == text or cut.endswith("…")


def test_wrap_fits_and_loses_nothing_but_blanks():
    text = "鸬鹚是一种会潜水的鸟。A cormorant is a bird that dives. " * 3
    lines = width.wrap(text, 20, 100)
    assert all(width.columns(line) <= 20 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert len(width.wrap(text, 20, 2)) == 2
    assert width.wrap("", 20, 2) == []
    assert width.wrap("x" * 50, 20, 9) == ["x" * 20, "x" * 20, "x" * 10]


def test_stored_escape_sequences_do_not_reach_the_terminal():
    assert width.plain("a\x1b[31mred\x1b[0m\n b\tc\x07") == "a [31mred [0m b c"


def test_table_aligns_wide_characters():
    lines = width.table([["鸬鹚", "1"], ["bird", "22"], ["x", "333"]], right=[1])
    assert lines == ["鸬鹚    1", "bird   22", "x     333"]
    assert width.table([]) == []


# Paragraphs


def test_short_paragraphs_are_joined_and_lines_counted():
    pieces = list(paragraphs.split("\n\none\n\ntwo\nlines\n \n\nthree"))
    assert [(p.text, p.line) for p in pieces] == [("one\n\ntwo\nlines\n\nthree", 3)]


def test_long_texts_are_cut_at_sentence_ends():
    sentence = "The cormorant dives and brings the fish back. "
    pieces = list(paragraphs.split(sentence * 40))
    assert len(pieces) > 3
    assert all(len(p.text) <= paragraphs.ROOM for p in pieces)
    assert all(p.text.endswith("back.") for p in pieces)
    assert " ".join(p.text for p in pieces) == (sentence * 40).strip()


def test_chinese_is_cut_after_its_own_stops():
    text = "鸬鹚潜入水中，把鱼带回来。" * 100
    pieces = list(paragraphs.split(text))
    assert all(len(p.text) <= paragraphs.ROOM and p.text.endswith("。") for p in pieces)
    assert "".join(p.text for p in pieces) == text


@pytest.mark.parametrize("text", ["x" * 1700, "鸬" * 1700, "word " * 400])
def test_what_has_no_sentences_is_cut_all_the_same(text):
    pieces = list(paragraphs.split(text))
    assert all(0 < len(p.text) <= paragraphs.ROOM for p in pieces)
    assert "".join(p.text for p in pieces).replace(" ", "") == text.replace(" ", "")


def test_a_heading_goes_with_what_follows_it():
    text = "# A\n\n" + "a" * 300 + "\n\n## B\n\n" + "b" * 300
    first, second = paragraphs.split(text)
    assert first.text == "# A\n\n" + "a" * 300
    assert second.text == "## B\n\n" + "b" * 300
    assert (first.line, second.line) == (1, 5)


def test_lines_of_a_cut_paragraph_and_foreign_line_ends():
    text = "\r\n".join(["one line of text that is repeated."] * 30)
    pieces = list(paragraphs.split(text))
    assert [p.line for p in pieces] == [1, 15, 29]
    assert "\r" not in pieces[0].text


def test_nothing_in_nothing_out():
    assert list(paragraphs.split(" \n\n \t\n")) == []


# Reading


def test_text_records_are_named_by_file_and_place(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n\n" + "x" * 499, encoding="utf-8")
    source = Source(path)
    (_, first), (line, second) = source.items()
    assert first.id == f"{path.as_posix()}#0"
    assert second.metadata == {"source": path.as_posix(), "chunk": 1, "line": 3}
    assert line == 3
    assert source.cut == 2


def test_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"id": "a", "text": "sep\u2028arator", "metadata": {"n": 1}},
        {"id": 7, "vector": [1.0, 0.0]},
        {"text": "no id"},
    ]
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n\n" for r in rows), "utf-8")
    source = Source(path)
    records = [record for _, record in source.items()]
    assert [r.id for r in records] == ["a", "7", f"{path.as_posix()}#5"]
    assert records[0].text == "sep\u2028arator"
    assert records[0].metadata == {"n": 1}
    assert records[1].vector == [1.0, 0.0]
    assert source.cut is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not valid JSON"),
        ("[1]", "expected an object"),
        ('{"id": "a"}', "neither text nor vector"),
        ('{"txt": "a"}', "unknown field 'txt'"),
        ('{"text": 1}', "text must be a string"),
        ('{"text": "a", "id": [1]}', "id must be a string"),
        ('{"text": "a", "id": true}', "id must be a string"),
        ('{"text": "a", "metadata": [1]}', "metadata must be an object"),
        ('{"text": "a", "metadata": {"x": NaN}}', "NaN is not JSON"),
        ('{"text": "again", "id": "first"}', "already used in line 1"),
    ],
)
def test_a_bad_line_is_named_and_the_others_go_on(tmp_path, line, says):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "first", "text": "a"}\n' + line + '\n{"id": "last", "text": "b"}\n')
    got = items(path)
    assert [item[1].id for item in got if not isinstance(item, Failure)] == ["first", "last"]
    (failure,) = [item for item in got if isinstance(item, Failure)]
    assert failure.line == 2
    assert says in failure.error
    assert str(failure).startswith(f"{path}, line 2: ")


def test_encodings(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("鸬鹚".encode("gb18030"))
    (failure,) = items(path)
    assert "is not utf-8: byte 0xf0 at offset 0" in failure.error
    assert "--encoding gb18030" in failure.error
    assert items(path, encoding="gb18030")[0][1].text == "鸬鹚"
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        path.write_bytes("鸬鹚".encode(encoding))
        assert items(path)[0][1].text == "鸬鹚", encoding
    path.write_bytes("鸬鹚".encode("utf-16-le"))
    assert items(path, encoding="utf-16-le")[0][1].text == "鸬鹚"


def test_binary_files_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\x7fELF\x00\x00")
    (failure,) = items(path)
    assert "looks binary" in failure.error


def test_folders_files_and_what_is_neither(tmp_path):
    for name in ("b.txt", "a.md", "sub/c.jsonl", ".hidden/d.txt", "e.pdf"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    passed, *found = expand([str(tmp_path / "docs")], "utf-8")
    assert passed.file.endswith("e.pdf")
    assert "accepted are" in passed.why
    assert [s.path.name for s in found] == ["a.md", "b.txt", "c.jsonl"]
    (tmp_path / "empty").mkdir()
    (none,) = expand([str(tmp_path / "empty")], "utf-8")
    assert "without .txt, .md, .jsonl" in none.error
    (pdf,) = expand([str(tmp_path / "docs" / "e.pdf")], "utf-8")
    assert "accepted are .txt, .md, .jsonl; got .pdf" in pdf.error
    (missing,) = expand([str(tmp_path / "missing.txt")], "utf-8")
    (failure,) = missing.items()
    assert "No such file" in failure.error


@pytest.mark.parametrize(
    ("raw", "texts"),
    [
        (b'{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}', ["x", "y"]),
        ("just 鸬鹚".encode(), ["just 鸬鹚"]),
        (b'{"not": "a record"}', ['{"not": "a record"}']),
    ],
)
def test_standard_input_is_told_apart_by_its_first_line(monkeypatch, raw, texts):
    monkeypatch.setattr(reading.sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    source = Source(None)
    assert [record.text for _, record in source.items()] == texts
    assert source.prefix.startswith("stdin-")


# Settings


def settings(tmp_path, environ=None, written=None, **given):
    if written is not None:
        (tmp_path / "cormorant.toml").write_text(written, encoding="utf-8")
    here = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), **(environ or {})}
    return Settings.load(Namespace(**given), here)


@pytest.fixture(autouse=True)
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_flags_beat_variables_beat_the_file_beats_defaults(tmp_path):
    assert settings(tmp_path).get("top_k") == 10
    assert settings(tmp_path, written="top_k = 3").get("top_k") == 3
    env = {"CORMORANT_TOP_K": "4"}
    assert settings(tmp_path, env).get("top_k") == 4
    assert settings(tmp_path, env, top_k=5).get("top_k") == 5


def test_the_file_is_found_in_three_places(tmp_path):
    home = tmp_path / "xdg" / "cormorant"
    home.mkdir(parents=True)
    (home / "cormorant.toml").write_text("top_k = 6")
    assert settings(tmp_path).get("top_k") == 6
    assert settings(tmp_path, written="top_k = 3").get("top_k") == 3
    (tmp_path / "other.toml").write_text("top_k = 7")
    assert settings(tmp_path, {"CORMORANT_CONFIG": "other.toml"}).get("top_k") == 7
    with pytest.raises(ConfigError, match="no such file"):
        settings(tmp_path, {"CORMORANT_CONFIG": "none.toml"})


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("top_k", "not valid TOML"),
        ("topk = 3", "Did you mean 'top_k'"),
        ("[search]\nk = 1", "'search', which is no setting"),
    ],
)
def test_a_bad_settings_file_is_refused(tmp_path, written, says):
    with pytest.raises(ConfigError, match=says):
        settings(tmp_path, written=written)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("top_k", "many", "CORMORANT_TOP_K: expected a whole number; got 'many'"),
        ("min_score", "high", "expected a number"),
        ("mode", "magic", "one of vector, text, hybrid"),
    ],
)
def test_a_bad_variable_is_named(tmp_path, name, value, says):
    with pytest.raises(ConfigError, match=says):
        settings(tmp_path, {SETTINGS[name].variable: value}).get(name)


def test_a_bad_value_in_the_file_is_named(tmp_path):
    bad = settings(tmp_path, written="top_k = true\nmode = 3")
    with pytest.raises(ConfigError, match=r"cormorant.toml, top_k: expected a whole number"):
        bad.get("top_k")
    with pytest.raises(ConfigError, match=r"cormorant.toml, mode: expected text"):
        bad.get("mode")


# Console


def test_colour_follows_the_terminal_and_two_variables():
    red = "\033[31mx\033[0m"
    assert Console(Terminal(), io.StringIO(), {}).style("x", "red") == red
    assert Console(io.StringIO(), io.StringIO(), {}).style("x", "red") == "x"
    assert Console(Terminal(), io.StringIO(), {"NO_COLOR": "1"}).style("x", "red") == "x"
    assert Console(Terminal(), io.StringIO(), {"TERM": "dumb"}).style("x", "red") == "x"
    assert Console(io.StringIO(), io.StringIO(), {"FORCE_COLOR": "1"}).style("x", "red") == red


def test_data_and_messages_never_mix():
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err, {})
    console.print("data")
    console.json({"键": 1}, indent=None)
    console.note("note")
    console.warn("careful")
    console.error("failed")
    assert out.getvalue() == 'data\n{"键": 1}\n'
    assert err.getvalue() == (
        "cormorant: note\ncormorant: warning: careful\ncormorant: error: failed\n"
    )


def test_quiet_drops_notes_alone():
    err = io.StringIO()
    console = Console(io.StringIO(), err, {}, quiet=True)
    console.note("note")
    console.warn("careful")
    assert err.getvalue() == "cormorant: warning: careful\n"


def test_progress_is_for_terminals():
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        with Console(io.StringIO(), stream, {}).progress("records:", 3) as progress:
            progress.advance(3)
        assert bool(stream.getvalue()) is shown
    assert stream.getvalue() == ""


def test_a_stream_that_is_not_unicode_gets_escapes():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    console = Console(out, io.StringIO(), {})
    console.print("鸬")
    console.json("鹚")
    out.flush()
    assert raw.getvalue() == b'\\u9e2c\n"\\u9e5a"\n'
