"""A reader process: looks at a store again and again while another process writes.

    python -m crashlab.reader FOLDER

It says ``ready`` once the store is open, reads until its stdin is closed, looks once more and then
writes one JSON object: how many snapshots it saw, how many different ones, what was wrong, and
the records of the last one.
"""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

from cormorant.model import Query, Record
from cormorant.store import Store
from crashlab.judge import contents, half_batches
from crashlab.plan import DIM, EVERYWHERE, open_store

PAUSE_S = 0.002  # leave the processor to the writer now and then


def versions(records: list[Record]) -> dict[str, int]:
    """Id → version: what tells one snapshot from another."""
    return {record.id: record.metadata["version"] for record in records}


def look(store: Store, turn: int) -> tuple[dict[str, int], list[str]]:
    """One snapshot, seen through one of three doors."""
    if turn % 3 == 0:
        records = list(contents(store).values())
        return versions(records), half_batches(records)
    if turn % 3 == 1:
        query = Query(text=EVERYWHERE, top_k=10_000, with_vectors=True)
    else:
        query = Query(text=EVERYWHERE, vector=[1.0] * DIM, top_k=10_000, with_vectors=True)
    hits = store.search(query).hits
    records = [Record(hit.id, hit.text, hit.vector, hit.metadata) for hit in hits]
    return versions(records), half_batches(records)


def main() -> int:
    """Run it."""
    problems: list[str] = []
    seen: set[str] = set()
    turn = 0
    with open_store(Path(sys.argv[1]), create=False, read_only=True) as store:
        os.write(1, b"ready\n")
        last = False
        while True:
            now, wrong = look(store, turn)
            problems += [f"turn {turn}: {says}" for says in wrong]
            seen.add(json.dumps(now, sort_keys=True))
            turn += 1
            if last:
                break
            last = bool(select.select([sys.stdin], [], [], PAUSE_S)[0])
    figures = {"snapshots": turn, "different": len(seen), "problems": problems[:20], "last": now}
    os.write(1, json.dumps(figures).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
