"""A second writer process: compacts and checkpoints a store again and again while another adds.

    python -m crashlab.compactor FOLDER

It says ``ready`` once the store is open, then ``compacted`` after each compaction, until its stdin
is closed or it is killed.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from crashlab.plan import open_store

PAUSE_S = 0.002


def main() -> int:
    """Run it."""
    with open_store(Path(sys.argv[1]), create=False) as store:
        os.write(1, b"ready\n")
        while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            store.compact()
            os.write(1, b"compacted\n")
            store.optimize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
