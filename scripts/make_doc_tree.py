"""Make a tree of real documentation files from what Python and its packages carry.

    python scripts/make_doc_tree.py FOLDER [--files 1000]

Licences, READMEs, metadata and .rst files are copied from site-packages; docstrings of the standard
library's and the packages' modules become text files of their own. Prints what it made.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

NAMES = ("readme", "license", "licence", "metadata", "authors", "changes", "notice", "copying")
SUFFIXES = {".md", ".rst", ".txt"}


def documents(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        named = path.name.lower().startswith(NAMES) and path.suffix not in {".py", ".pyc"}
        if (named or path.suffix.lower() in SUFFIXES) and path.is_file():
            yield path


def docstrings(path: Path) -> str:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
        return ""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{getattr(node, 'name', path.stem)}\n\n{text}"
        for node in ast.walk(tree)
        if isinstance(node, kinds) and (text := ast.get_docstring(node))
    ]
    return "\n\n".join(found)


def make(folder: Path, files: int) -> int:
    """Fill the folder; returns how many files it made."""
    made = 0
    packages = Path(sysconfig.get_path("purelib"))
    for path in documents(packages):
        if made >= files // 2:
            break
        text = path.read_bytes()
        if b"\0" in text or len(text) > 200_000:
            continue
        target = folder / "packages" / path.relative_to(packages)
        if target.suffix.lower() not in SUFFIXES:
            target = target.with_name(f"{target.name}.txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        made += 1
    for root in (Path(sysconfig.get_path("stdlib")), packages):
        for path in sorted(root.rglob("*.py")):
            if made >= files:
                return made
            if root != packages and "site-packages" in path.parts:
                continue
            text = docstrings(path)
            if len(text) < 200:
                continue
            target = folder / "docstrings" / path.relative_to(root).with_suffix(".txt")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            made += 1
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1000)
    asked = parser.parse_args()
    count = make(asked.folder, asked.files)
    size = sum(path.stat().st_size for path in asked.folder.rglob("*") if path.is_file())
    print(f"{count} files, {size / 1e6:.1f} MB in {asked.folder}")
