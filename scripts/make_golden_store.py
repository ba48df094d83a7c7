"""Make the store that later releases must be able to open: ``make_golden_store.py FOLDER``.

Run once for each format number, with the first release that writes it, and never again:
the test would prove nothing on a store that is written anew.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import cormorant
from cormorant.storage import FORMAT


def records(start: int, stop: int) -> list[dict[str, object]]:
    """Records whose every part can be told from their number."""
    return [
        {
            "id": f"记录-{i}",
            "text": f"Record number {i} of the golden store; 第{i}条记录, err_{i}.",
            "vector": None if i % 5 == 0 else [float(i), float(i % 7), 1.0],
            "metadata": {
                "n": i,
                "even": i % 2 == 0,
                "day": dt.date(2026, 1, 1) + dt.timedelta(days=i),
                "tags": [f"t{i % 3}", "all"],
                "inner": {"deep": i / 4},
            },
        }
        for i in range(start, stop)
    ]


def main() -> None:
    folder = Path(sys.argv[1]) / f"format-{FORMAT}"
    if folder.exists():
        sys.exit(f"{folder} exists; a golden store is never made anew.")
    with cormorant.open(folder, dim=3, metric="dot", embedder="local") as store:
        store.add(
            records(0, 40),
            documents=[
                {"id": f"文档-{i}", "text": f"Document {i}.", "metadata": {"n": i}} for i in (1, 2)
            ],
        )
        store.delete(["记录-3", "记录-4"])
        store.compact()  # a second generation with a base
        store.add(records(40, 50))
        store.optimize()  # a checkpoint
        store.add(records(8, 12))  # replaced, and left in the log
        store.delete(["记录-9"])
    print(folder, sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()), "bytes")


if __name__ == "__main__":
    main()
