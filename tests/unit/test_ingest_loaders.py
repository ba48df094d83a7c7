"""Every format is read, what cannot be read is reported, and nothing outside the folder is."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from pypdf import PdfWriter

from cormorant.errors import LoadError
from cormorant.ingest.files import SourceFile, walk
from cormorant.ingest.folders import list_folder
from cormorant.ingest.loaders import load

CHINESE = "鸬鹚捕鱼，渔民驾船。翅膀会湿吗？" * 6


def read(path):
    return list(load(SourceFile.at(path)))


def texts(path):
    return [document.page_content for document in read(path)]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", CHINESE),
        ("utf-8-sig", CHINESE),
        ("utf-16", CHINESE),
        ("utf-32", CHINESE),
        ("gb18030", CHINESE),
        ("big5", "臺灣的鸕鶿在河邊捕魚，漁民駕著小船，翅膀會濕嗎？" * 6),
        ("cp1252", "Der Kormoran taucht größer und schöner als über den Wäldern. " * 8),
        ("utf-8", "שלום עולם — مرحبا بالعالم 👩‍👩‍👧 🇨🇳"),
    ],
)
def test_encodings_are_told(tmp_path, encoding, text):
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    assert texts(path) == [text]


def test_line_ends_are_one(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"# Title\r\n\r\none\rtwo\n")
    (found,) = read(path)
    assert found.page_content == "# Title\n\none\ntwo\n"
    assert found.metadata["title"] == "Title"
    assert found.metadata["type"] == "markdown"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.txt", b"", "no text"),
        ("a.txt", b" \n\t ", "no text"),
        ("a.txt", b"text\0text", "null bytes"),
        ("a.pdf", b"", "cannot be read as pdf"),
        ("a.pdf", b"%PDF-1.7 broken", "cannot be read as pdf"),
        ("a.docx", b"no zip", "broken, or encrypted"),
        ("a.xlsx", b"", "broken, or encrypted"),
        ("a.pptx", b"PK\x03\x04", "broken, or encrypted"),
        ("a.json", b"{", "no JSON"),
        ("a.jsonl", b'{"a": 1}\n{', "line 2 is no JSON"),
        ("a.json", b"[" * 100_000, "no JSON"),
        ("a.html", b"<script>alert(1)</script>", "no text"),
    ],
)
def test_what_cannot_be_read_is_reported(tmp_path, name, data, says):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(LoadError, match=says) as error:
        read(path)
    assert error.value.path == str(path)
    assert name in str(error.value)


def test_html_is_read_section_by_section(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(
        "<html><head><title>Birds</title><script>evil()</script></head><body><nav>menu</nav>"
        "<h1>Sea birds</h1><p>They dive.</p><h2>Cormorants</h2><p>They <b>bring</b> fish.</p>"
        "<pre>a  b\n c</pre><!-- hidden --><h1>Others</h1><table><tr><td>1</td><td>2</td></tr>"
        "</table></body></html>",
        encoding="utf-8",
    )
    found = read(path)
    assert [each.metadata["section"] for each in found] == [
        "Sea birds",
        "Sea birds > Cormorants",
        "Others",
    ]
    assert found[1].page_content == "Cormorants\n\nThey bring fish.\n\na  b\nc"
    assert {each.metadata["title"] for each in found} == {"Birds"}
    assert "evil" not in "".join(each.page_content for each in found)
    assert "hidden" not in "".join(each.page_content for each in found)


def test_pages_that_nest_without_end_are_read(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<div>" * 5000 + "deep", encoding="utf-8")
    assert texts(path) == ["deep"]


def pdf_bytes(text):
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() if text else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R >> >> >>"
        ),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = io.BytesIO(b""), []
    out.write(b"%PDF-1.4\n")
    for number, each in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, each))
    at = out.tell()
    out.write(b"xref\n0 6\n0000000000 65535 f \n")
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % at)
    return out.getvalue()


def test_pdf_pages_scans_and_passwords(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_bytes("Cormorants dive"))
    (page,) = read(path)
    assert page.page_content == "Cormorants dive"
    assert page.metadata["page"] == 1
    path.write_bytes(pdf_bytes(""))
    with pytest.raises(LoadError, match="Is it scanned"):
        read(path)
    writer = PdfWriter()
    writer.add_blank_page(72, 72)
    writer.encrypt("secret")
    writer.write(path)
    with pytest.raises(LoadError, match="encrypted"):
        read(path)


def test_word_powerpoint_and_excel(tmp_path):
    word = docx.Document()
    word.add_paragraph("Before.")
    word.add_heading("Birds", 1)
    word.add_heading("Cormorants", 2)
    word.add_paragraph("They dive.")
    table = word.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "depth", "45 m"
    word.save(tmp_path / "a.docx")
    found = read(tmp_path / "a.docx")
    assert [each.metadata.get("section") for each in found] == [
        None,
        "Birds",
        "Birds > Cormorants",
    ]
    assert "depth\t45 m" in found[2].page_content

    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "Diving"
    slide.placeholders[1].text = "Down to 45 m"
    slide.notes_slide.notes_text_frame.text = "say slowly"
    slides.save(tmp_path / "a.pptx")
    (page,) = read(tmp_path / "a.pptx")
    assert page.page_content == "Diving\nDown to 45 m\nsay slowly"
    assert (page.metadata["page"], page.metadata["section"]) == (1, "Diving")

    book = openpyxl.Workbook()
    book.active.title = "Depths"
    book.active.append(["bird", "metres"])
    book.active.append(["cormorant", 45])
    book.save(tmp_path / "a.xlsx")
    (sheet,) = read(tmp_path / "a.xlsx")
    assert sheet.page_content == "bird: cormorant; metres: 45"
    assert sheet.metadata["sheet"] == "Depths"


def test_tables_json_and_mail(tmp_path):
    (tmp_path / "a.csv").write_text('name;says\nAnn;"one; two"\n', encoding="utf-8")
    assert texts(tmp_path / "a.csv") == ["name: Ann; says: one; two"]
    (tmp_path / "a.tsv").write_text("name\tsays\nAnn\tyes\n", encoding="utf-8")
    assert texts(tmp_path / "a.tsv") == ["name: Ann; says: yes"]
    (tmp_path / "a.json").write_text(json.dumps({"a": {"b": [1, "x"]}}), encoding="utf-8")
    assert texts(tmp_path / "a.json") == ["a.b: 1\na.b: x"]
    lines = [{"text": "one", "title": "t"}, {"text": "two"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = read(tmp_path / "a.jsonl")
    assert [each.page_content for each in found] == ["one", "two"]
    assert found[0].metadata["title"] == "t"
    message = EmailMessage()
    message["Subject"], message["From"] = "Größe", "a@example.org"
    message.set_content("the body")
    message.add_attachment(b"secret", maintype="application", subtype="zip", filename="../../x")
    (tmp_path / "a.eml").write_bytes(message.as_bytes())
    (mail,) = read(tmp_path / "a.eml")
    assert mail.page_content.strip() == "the body"
    assert mail.metadata["title"] == "Größe"


def test_an_archive_that_grows_is_refused(tmp_path):
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../evil", b"0" * 2**28)
    with pytest.raises(LoadError, match="unpacks to"):
        read(path)


def test_a_large_text_comes_in_parts_that_are_the_whole(tmp_path):
    path = tmp_path / "a.txt"
    text = "".join(f"Line {n} of the log: 鸬鹚 🐟\n" + "\n" * (n % 7 == 0) for n in range(150_000))
    path.write_text(text, encoding="utf-8")
    parts = list(load(SourceFile.at(path)))
    assert len(parts) > 2
    assert "".join(part.page_content for part in parts) == text
    assert [part.metadata["part"] for part in parts] == list(range(1, len(parts) + 1))


def test_language_is_told_where_words_tell(tmp_path):
    for name, text, language in (
        ("a", "Where does the bird dive, and what is it that it finds there?", "en"),
        ("b", CHINESE, "zh"),
        ("c", "Der Vogel taucht in den See und bringt die Fische, aber nicht alle.", "de"),
        ("d", "x = 3", None),
    ):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        assert read(tmp_path / f"{name}.txt")[0].metadata.get("language") == language


def test_walking_stays_in_the_folder(tmp_path):
    root, outside = tmp_path / "docs", tmp_path / "secret.txt"
    outside.write_text("secret")
    (root / "sub" / ".git").mkdir(parents=True)
    for name in (
        "b.md",
        "a.txt",
        "sub/c.py",
        "sub/.git/x.txt",
        ".hidden.txt",
        "logo.png",
        "LICENSE",
    ):
        (root / name).write_text("x")
    (root / "loop").symlink_to(root)
    (root / "out.txt").symlink_to(outside)
    (root / "in.txt").symlink_to(root / "a.txt")
    (root / "gone.txt").symlink_to(root / "nothing")
    os.mkfifo(root / "pipe.txt")
    told = {}
    found = [each.source for each in walk(root, passed_over=told.__setitem__)]
    assert found == ["LICENSE", "a.txt", "b.md", "in.txt", "sub/c.py"]
    assert set(told) == {"out.txt", "gone.txt", "loop"}
    assert [each.source for each in walk(root, include=["*.md", "sub/*"])] == ["b.md", "sub/c.py"]
    assert [each.source for each in walk(root, include=["*.png"])] == ["logo.png"]
    left = [each.source for each in walk(root, exclude=["sub", "*.txt"])]
    assert left == ["LICENSE", "b.md"]


def test_names_that_are_no_text_are_names(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    Path(os.fsdecode(path)).write_bytes(b"text")
    (found,) = walk(tmp_path)
    assert found.source == "\\xff.txt"
    assert [each.page_content for each in load(found)] == ["text"]


def test_folders_that_nest_without_end_are_walked(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(1200):
            os.mkdir("a", dir_fd=here)
            deeper = os.open("a", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
        os.close(os.open("b.md", os.O_CREAT, dir_fd=here))
        assert [each.source.rsplit("/", 1)[-1] for each in walk(tmp_path)] == ["b.md"]
    finally:
        os.close(here)
        # Level by level: what removes the test's folder recurses, and would fail.
        while (tmp_path / "a" / "a").exists():
            (tmp_path / "a" / "a").rename(tmp_path / "next")
            (tmp_path / "a").rmdir()
            (tmp_path / "next").rename(tmp_path / "a")


def test_two_names_that_are_one_as_text_are_reported(tmp_path):
    for name in (b"/\xff.txt", b"/\\xff.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path) + name)).write_bytes(b"text")
    found = list_folder(tmp_path)
    assert (len(found.sources), [each.source for each in found.failed]) == (1, ["\\xff.txt"])


def test_cells_are_cut_at_line_feeds_alone(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,x\u2028y\n2,p\x0cq\n", encoding="utf-8")
    assert texts(tmp_path / "a.csv") == ["a: 1; b: x\u2028y\na: 2; b: p\x0cq"]


def test_lines_of_json_without_end_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "' + "x" * 2**25, encoding="utf-8")
    with pytest.raises(LoadError, match="line 1 has more than"):
        read(tmp_path / "a.jsonl")


def changed(path, member, *edits):
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    for old, new in edits:
        assert re.search(old, held[member])
        held[member] = re.sub(old, new, held[member])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("row", [b"200000", b"1000000000000"])
def test_a_sheet_is_not_as_large_as_it_says(tmp_path, row):
    book = openpyxl.Workbook()
    book.active.append(["a"])
    book.active.append([1])
    book.active.append([2])
    book.save(tmp_path / "a.xlsx")
    changed(
        tmp_path / "a.xlsx",
        "xl/worksheets/sheet1.xml",
        (b'<dimension ref="[^"]*"', b'<dimension ref="A1:XFD1048576"'),
        (b'<row r="3"', b'<row r="' + row + b'"'),
        (b'"A3"', b'"A' + row + b'"'),
    )
    told = texts(tmp_path / "a.xlsx")
    assert told == (["a: 1\na: 2"] if row == b"200000" else ["a: 1"])


def test_cells_that_span_columns_are_read_once(tmp_path):
    word = docx.Document()
    table = word.add_table(1, 2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    word.save(tmp_path / "a.docx")
    changed(
        tmp_path / "a.docx",
        "word/document.xml",
        (b'gridSpan w:val="2"', b'gridSpan w:val="99999999"'),
    )
    assert texts(tmp_path / "a.docx") == ["wide"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<div>a" * 30_000),
        ("a.csv", ('"' + "x" * 50 + ",") * 4_000 + "\n"),
        ("b.csv", "a,'b\"c," * 20_000 + "\n"),
    ],
)
def test_hostile_texts_are_read_in_time(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert texts(tmp_path / name)
