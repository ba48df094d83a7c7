"""Killed at any instant, does the next sync end where one that was not killed would have?"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from crashlab.runs import numbered

import cormorant
from cormorant import defaults
from cormorant.ingest.syncing import sync

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings, Paragraphs, Tree, contents

WORKER = Path(__file__).with_name("sync_worker.py")
LONGEST_S = 0.6  # a run takes about as long


def shaken(tree: Tree, rng: random.Random) -> None:
    """A dozen edits: new files, long ones, copies, renames, changes, removals."""
    for _ in range(12):
        name = f"{rng.randrange(8)}"
        kind = rng.choice(["write", "write", "long", "copy", "rename", "remove", "touch"])
        if kind == "write":
            tree.write(name, "\n\n".join(f"text {rng.randrange(60)}" for _ in range(5)))
        elif kind == "long":
            tree.write(name, "\n\n".join(f"text {rng.randrange(200)}" for _ in range(30)))
        elif name in tree.files:
            other = f"{rng.randrange(8)}"
            if kind == "copy":
                tree.write(other, tree.files[name])
            elif kind == "rename" and other != name:
                tree.rename(name, other)
            elif kind == "remove":
                tree.remove(name)
            else:
                tree.touch(name)


def killed(store: Path, tree: Tree, written: Path, after_s: float) -> bool:
    """Sync in a process of its own, and kill that; False if it was done before."""
    kept = {"files": tree.files, "times": tree.times}
    written.write_text(json.dumps(kept), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, WORKER, store, written], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.stdin.write(b"go\n")
        child.stdin.flush()
        time.sleep(after_s)
        child.kill()
    return child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("run", numbered(40, fast=1))
def test_kill_at_a_random_instant(run: int, tmp_path: Path, tally, monkeypatch) -> None:
    monkeypatch.setattr(defaults, "SYNC_CHUNKS", 3)
    rng = random.Random(run)
    tree, folder = Tree(), tmp_path / "kb"
    for _ in range(4 if run else 2):  # the fast one is a sample
        shaken(tree, rng)
        hit = killed(folder, tree, tmp_path / "tree.json", rng.uniform(0, LONGEST_S))
        tally.update({"syncs killed": hit})
        # And now and then a killed sync is followed by one of the same tree.
        if rng.random() < 0.5:
            killed(folder, tree, tmp_path / "tree.json", rng.uniform(0, LONGEST_S))
    embedder = CountingEmbeddings()
    with cormorant.open(folder) as store, cormorant.open(":memory:") as fresh:
        committed = {text for text, _, _ in contents(store).values()}
        arguments = {"chunker": Paragraphs(), "name": "tree", "allow_empty": True}
        sync(tree.sources(), store, embedder, **arguments)
        assert not committed & set(embedder.counts), "embedded again, though it was committed"
        assert max(embedder.counts.values(), default=1) == 1
        sync(tree.sources(), fresh, CountingEmbeddings(), **arguments)
        assert contents(store) == contents(fresh)
        assert len(store.document_ids("$cormorant/")) == len(fresh.document_ids("$cormorant/"))
        assert store.check().ok
        tally.update({"texts known after kills": len(committed)})
