"""How much memory and CPU does a sync of much text take? With an embedder that only counts.

    python scripts/sync_memory.py [--megabytes 1000] [--files 100] [--folder DIR]

Prints peak resident memory, how much of it is in no file (mapped files can be given back by the
system at any time), CPU seconds and what was embedded. Exits 1 if the latter is above 500 MB.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

import cormorant
from cormorant.ingest import sync

LIMIT = 500 * 2**20


class Counting(Embeddings):
    model_name = "counting"
    count = 0

    def embed_documents(self, texts):
        self.count += len(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        digest = hashlib.sha256(text.encode()).digest()
        return (np.frombuffer(digest[:8], np.uint8).astype(np.float32) + 1).tolist()


class Peak(threading.Thread):
    """The most anonymous memory: what cannot be read from files again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes, self.done = 0, threading.Event()

    def run(self):
        while not self.done.wait(0.05):
            status = Path("/proc/self/status").read_text()
            self.bytes = max(self.bytes, int(status.split("RssAnon:")[1].split()[0]) * 1024)


def write(folder: Path, megabytes: int, files: int) -> None:
    rng = random.Random(0)
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))
        for _ in range(20_000)
    ]
    each = megabytes * 1_000_000 // files
    for n in range(files):
        with (folder / f"{n:06d}.txt").open("w") as file:
            written = 0
            while written < each:
                text = " ".join(rng.choices(words, k=80)) + ".\n\n"
                file.write(text)
                written += len(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as made:
        docs = Path(made) / "docs"
        docs.mkdir()
        write(docs, asked.megabytes, asked.files)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        own = Peak()
        own.start()
        embedder, started, cpu = Counting(), time.monotonic(), time.process_time()
        with cormorant.open(Path(made) / "kb") as store:
            report = sync(docs, store, embedder)
            records = store.count()
        own.done.set()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(
            f"{asked.megabytes} MB in {asked.files} files: peak {peak / 2**20:.0f} MiB (before: "
            f"{before / 2**20:.0f}), of which {own.bytes / 2**20:.0f} in no file, "
            f"{time.process_time() - cpu:.0f} s of CPU, "
            f"{time.monotonic() - started:.0f} s, {records:,} records, "
            f"{embedder.count:,} embedded, {len(report.failed)} failed"
        )
        sys.exit(own.bytes > LIMIT)
