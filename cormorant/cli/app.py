"""Which verb was meant, and what does the shell learn of how it went?"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from textwrap import fill

import cormorant
from cormorant.cli import (
    add,
    backup,
    calibrate,
    check,
    chunk,
    compact,
    delete,
    demo,
    diff,
    doctor,
    evaluating,
    explain,
    info,
    judge,
    optimize,
    search,
    sync,
    traces,
    tune,
    why_not,
)
from cormorant.cli.console import Console
from cormorant.cli.settings import Settings
from cormorant.cli.verb import Verb
from cormorant.errors import CormorantError, StoreLocked
from cormorant.width import plain

__all__ = ["VERBS", "build_parser", "main"]

VERBS: tuple[Verb, ...] = (
    add.VERB,
    sync.VERB,
    chunk.VERB,
    search.VERB,
    explain.VERB,
    why_not.VERB,
    evaluating.VERB,
    judge.VERB,
    info.VERB,
    check.VERB,
    doctor.VERB,
    compact.VERB,
    optimize.VERB,
    delete.VERB,
    backup.VERB,
    tune.VERB,
    calibrate.VERB,
    diff.VERB,
    traces.VERB,
    demo.VERB,
)

EXIT_CODES = (
    (0, "done; the answer is yes"),
    (1, "a negative verdict: damage found, a record missed, an input left out"),
    (2, "a wrong call, or an error"),
    (3, "another process is writing to the store"),
    (130, "interrupted"),
)

_SAYS = "Search documents by words and by meaning, in one durable folder."


def build_parser() -> ArgumentParser:
    """The whole command line; the reference page is made from it."""
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES)
    parser = ArgumentParser(
        prog="cormorant",
        description=_SAYS,
        formatter_class=RawDescriptionHelpFormatter,
        epilog=f"exit codes:\n{codes}\n\ntry it: cormorant demo",
    )
    parser.add_argument("--version", action="version", version=f"cormorant {cormorant.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        child = verbs.add_parser(
            verb.name,
            help=verb.says,
            description=fill(verb.tells, 90),
            formatter_class=RawDescriptionHelpFormatter,
        )
        verb.arguments(child)
        child.add_argument("-q", "--quiet", action="store_true", help="no notes, no progress")
        child.set_defaults(run=verb.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: parse, do, and turn errors into messages and exit codes.

    Args:
        argv: Arguments without the program's name; None takes the process's own.

    Returns:
        The exit code; see ``cormorant --help``.
    """
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    console = Console(quiet=args.quiet)
    try:
        code: int = args.run(args, Settings.load(args), console)
        console.out.flush()
    except StoreLocked as error:
        console.error(_shown(error))
        return 3
    except BrokenPipeError:
        # The reader has had enough (`| head`). What is still buffered has nowhere to go, and
        # Python would complain about that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        console.error("interrupted; what was stored before stays stored.")
        return 130
    except (CormorantError, OSError) as error:
        console.error(_shown(error))
        return 2
    return code


def _shown(error: Exception) -> str:
    """What it says, line by line, without what a name in it would do to the terminal."""
    return "\n".join(plain(line) for line in str(error).split("\n"))
