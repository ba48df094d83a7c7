"""Every verb, option, setting, operator, error and default has its place in docs/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cormorant import defaults, errors
from cormorant.cli import reference
from cormorant.cli.app import VERBS, build_parser
from cormorant.cli.settings import SETTINGS
from cormorant.filters import OPERATORS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


def table_row(page, name):
    """The row whose first cell is the name, as cells."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0].strip("`") == name:
            return cells
    return None


def test_the_command_line_page_is_what_make_docs_writes():
    assert read("cli.md") == reference.page(), "run: make docs"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_in_the_readme(verb):
    assert f"cormorant {verb.name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_option_has_help():
    for name, parser in reference._verb_parsers().items():
        for action in parser._actions:
            assert action.help, f"{name}: {action.option_strings or action.dest}"
    assert set(reference._verb_parsers()) == {verb.name for verb in VERBS}
    assert build_parser().format_help()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_says_its_default(name):
    assert "default" in SETTINGS[name].help


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_documented(name):
    row = table_row(read("errors.md"), name)
    assert row is not None
    assert all(row)


@pytest.mark.parametrize("name", [name for name in defaults.__all__ if name.isupper()])
def test_every_default_is_documented_with_its_value(name):
    row = table_row(read("defaults.md"), name)
    assert row is not None
    value = getattr(defaults, name)
    written = row[1].strip("`")
    if isinstance(value, tuple):
        assert written.split(", ") == list(value)
    elif isinstance(value, str):
        assert written == value
    else:
        assert float(written.replace(",", "")) == value
    assert row[2], "what it is used as"


def test_the_defaults_page_documents_nothing_that_is_gone():
    names = {
        line.split("|")[1].strip().strip("`")
        for line in read("defaults.md").splitlines()
        if line.startswith("| `") and line.split("|")[1].strip().strip("`").isupper()
    }
    assert names <= set(defaults.__all__)


PAGES = sorted(path for path in ROOT.glob("**/*.md") if ".venv" not in path.parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_documented(name):
    row = table_row(read("filters.md"), name)
    assert row is not None
    assert all(row[1:])


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_the_readme_leads_to_every_page(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert f"](docs/{page.name})" in text, page.name
