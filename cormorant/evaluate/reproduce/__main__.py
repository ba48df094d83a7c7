"""``python -m cormorant.evaluate.reproduce``: run, check, and write the page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cormorant import defaults
from cormorant.errors import CormorantError
from cormorant.evaluate.reproduce.checking import page_with, reproduce
from cormorant.evaluate.reproduce.expected import read_expected, write_expected

_EXPECTED = Path(__file__).with_name("expected.yaml")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every set and compare with what is expected.

    Returns:
        0 if all scores came out, 1 if one did not, 2 if it could not be asked.
    """
    args = _parser().parse_args(argv)
    if not args.data:
        sys.stderr.write("Name the folder of judged sets: --data FOLDER, or CORMORANT_DATA.\n")
        return 2
    try:
        expected = read_expected(args.expected)
        found, bad = [], 0
        for outcome in reproduce(expected, args.data):
            row = outcome.measured
            bad += not outcome.same
            found.append(row)
            scores = "  ".join(
                f"{mode} {row.scores[mode]:.4f}"
                + (f" (not {outcome.expected.scores[mode]:.4f})" if mode in outcome.off else "")
                for mode in defaults.MODES
            )
            sizes = f"{row.documents} documents, {row.queries} queries"
            if not outcome.same and not outcome.off:
                sizes += f" (not {outcome.expected.documents}, {outcome.expected.queries})"
            says = "ok" if outcome.same else "NOT AS EXPECTED"
            sys.stdout.write(f"{row.set}, {row.embedding}: {scores}; {sizes}: {says}\n")
            sys.stdout.flush()
        if args.accept:
            expected = replace(expected, rows=tuple(found))
            write_expected(expected, args.expected)
            bad = 0
        if args.page and not bad:
            page = args.page.read_text(encoding="utf-8")
            args.page.write_text(page_with(page, expected), encoding="utf-8")
    except (CormorantError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return int(bool(bad))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cormorant.evaluate.reproduce",
        description="Measure, compare, write the page.",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=os.environ.get("CORMORANT_DATA"),
        help="the judged sets (default: the variable CORMORANT_DATA)",
    )
    parser.add_argument(
        "--expected", metavar="FILE", type=Path, default=_EXPECTED, help="expected scores, YAML"
    )
    parser.add_argument(
        "--accept", action="store_true", help="write what was measured into the expected scores"
    )
    parser.add_argument(
        "--page", metavar="FILE", type=Path, help="write the table into this page if all came out"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
