"""A tree of real documentation, edited at random: the store equals one built from scratch, and as
many texts are embedded as distinct chunks changed."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import sys
from pathlib import Path

import pytest

import cormorant
from cormorant.ingest import sync

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings, contents

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("tree", ROOT / "scripts" / "make_doc_tree.py")
maker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(maker)


def edit(folder: Path, rng: random.Random, edits: int) -> None:
    for n in range(edits):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = rng.choice(files)
        kind = rng.choice(
            ["append", "insert", "cut", "rename", "copy", "remove", "touch", "empty", "swap"]
        )
        if kind in {"append", "insert", "cut"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            at = rng.randrange(len(text) + 1)
            new = {
                "append": f"{text}\n\nAppended {n}: the tide turns.\n",
                "insert": f"{text[:at]} inserted {n} {text[at:]}",
                "cut": text[:at] + text[at + 200 :],
            }[kind]
            path.write_text(new, encoding="utf-8")
        elif kind == "rename":
            path.rename(path.with_name(f"{n}-renamed-{path.name}"))
        elif kind == "copy":
            shutil.copyfile(path, path.with_name(f"{n}-copy-{path.name}"))
        elif kind == "remove":
            path.unlink()
        elif kind == "touch":
            os.utime(path, (n, n))
        elif kind == "empty":
            path.write_bytes(b"")
        else:
            other = rng.choice(files)
            one, two = path.read_bytes(), other.read_bytes()
            path.write_bytes(two)
            other.write_bytes(one)


@pytest.mark.parametrize(
    ("files", "rounds", "edits"),
    [(30, 1, 15), pytest.param(1200, 4, 150, marks=pytest.mark.slow)],
    ids=["sample", "1200 files"],
)
def test_a_tree_that_is_edited_again_and_again(tmp_path, files, rounds, edits):
    folder = tmp_path / "docs"
    assert maker.make(folder, files) == files
    rng, embedder = random.Random(files), CountingEmbeddings()
    with cormorant.open(tmp_path / "kb") as store:
        first = sync(folder, store, embedder)
        assert first.embedded == store.count() == len(embedder.counts)
        for _ in range(rounds):
            edit(folder, rng, edits)
            before = {text for text, _, _ in contents(store).values()}
            already = embedder.embedded
            # What was read just now is read again: its time tells too little.
            report = sync(folder, store, embedder)
            with cormorant.open(":memory:") as fresh:
                scratch = sync(folder, fresh, CountingEmbeddings(), name=str(folder.resolve()))
                wanted, there = contents(fresh), contents(store)
                failed = {each.source for each in scratch.failed}
                assert {each.source for each in report.failed} == failed
                if not failed:  # else the old chunks of what broke are kept, and only here
                    assert there == wanted
                changed = {text for text, _, _ in wanted.values()} - before
                assert embedder.embedded - already == report.embedded == len(changed)
        print(f"{files} files, {store.count()} chunks, {embedder.embedded} embedded")
