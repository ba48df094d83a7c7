"""Does a threshold of .8 mean the same with another embedding model? On every judged set.

Run: ``CORMORANT_DATA=FOLDER python benchmarks/calibration.py [SET …]``; the folder is described
in ``fusion_quality.py``. Prints the table of docs/calibrate.md: on held-out questions, the
Brier score beside that of one probability for all, and what a threshold of .8 keeps.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fusion_quality import cases
from tuning import asked, filled

from cormorant.evaluate import calibrate


def shown(value):
    return "–" if value is None else f"{value:.3f}"


def main():
    root = os.environ.get("CORMORANT_DATA")
    if not root:
        print("Set CORMORANT_DATA to a folder of judged sets; skipped.")
        return
    print("| set, model | mode | Brier | one for all | .8 keeps | precision | recall |")
    print("|---|---|---|---|---|---|---|")
    for name, docs, queries, model in cases(Path(root), set(sys.argv[1:])):
        if docs != queries:
            continue
        store, known = filled(docs, model)
        with store:
            questions, qrels = asked(queries, model, known)
            done = calibrate(store, questions, qrels)
        for mode, each in done.quality.items():
            at = each.at(0.8)
            print(
                f"| {name}, {model} | {mode} | {each.brier:.4f} | {each.brier_without:.4f} | "
                f"{at.kept:.2f} | {shown(at.precision)} | {shown(at.recall)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
