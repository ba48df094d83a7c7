"""Every Python block of the README files and of docs/ runs, alone, in an empty folder."""

from __future__ import annotations

import ast
import asyncio
import doctest
import gc
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import cormorant

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md")])
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        for match in FENCE.finditer(page):
            if match[1] == "python":
                line = page.count("\n", 0, match.start()) + 1
                name = f"{path.relative_to(ROOT)}:{line}"
                yield pytest.param(match[2], path, line, id=name)


@pytest.mark.parametrize(("code", "path", "line"), list(blocks()))
def test_python_blocks_run(code, path, line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = "\n" * line + code  # so that a traceback names the page's own line
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled = compile(source, str(path), "exec", flags=flags, dont_inherit=True)
    namespace = {"__name__": "__main__"}
    if compiled.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(compiled, namespace))
    else:
        exec(compiled, namespace)
    namespace.clear()
    gc.collect()  # what a block leaves open complains inside this test, not in a later one


def modules():
    for info in pkgutil.walk_packages(cormorant.__path__, "cormorant."):
        if not info.name.endswith("__main__"):
            yield info.name


@pytest.mark.parametrize("name", list(modules()))
def test_docstring_examples_show_what_happens(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(module, optionflags=flags)
    assert not failed
    gc.collect()


def test_the_two_readmes_are_in_step():
    """The same headings by level, and the same code but for comments and quoted text."""
    english, chinese = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")
    )

    def shape(page):
        headings = re.findall(r"^(#+) ", FENCE.sub("", page), re.MULTILINE)
        return headings, [(m[1], statements(m[1], m[2])) for m in FENCE.finditer(page)]

    def statements(language, code):
        if language != "python":
            return re.sub(r"\s*#.*", "", code)
        texts_apart = re.sub(r'"[^"\n]*"', '""', re.sub(r"\s*#.*", "", code))
        return ast.dump(ast.parse(texts_apart))

    assert shape(english) == shape(chinese)
    rows = [page.count("\n|") for page in (english, chinese)]
    assert rows[0] == rows[1], "the tables have different numbers of rows"
