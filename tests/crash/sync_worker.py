"""A process that syncs a made-up tree, to be killed: ``sync_worker.py STORE TREE.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings, Paragraphs, Tree

import cormorant
from cormorant import defaults
from cormorant.ingest.syncing import sync

folder, written = sys.argv[1:]
defaults.SYNC_CHUNKS = 3  # many transactions, of which some are parts of a source
tree = Tree(**json.loads(Path(written).read_text(encoding="utf-8")))
with cormorant.open(folder) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    sync(
        tree.sources(),
        store,
        CountingEmbeddings(),
        chunker=Paragraphs(),
        name="tree",
        allow_empty=True,
        work={"batch_texts": 2},
    )
    print("done", flush=True)
