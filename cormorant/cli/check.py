"""Is this store sound?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from cormorant.cli.asking import open_existing
from cormorant.cli.verb import DEGRADED_EXIT, Verb, add_json, add_settings, add_store

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.storage import Problem

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument(
        "--repair", action="store_true", help="rebuild what is derived from the records"
    )
    add_settings(parser, "lock_timeout")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    with open_existing(
        args.store, read_only=not args.repair, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        report = store.check(repair=args.repair)
    if args.json:
        console.json(
            {
                "ok": report.ok,
                "records": report.records,
                "problems": [_problem(problem) for problem in report.problems],
                "repaired": [_problem(problem) for problem in report.repaired],
            }
        )
    else:
        for problem in report.repaired:
            console.print(f"{console.style('repaired', 'yellow')}  {problem.path}: {problem.what}")
        for problem in report.problems:
            console.print(f"{console.style('damaged', 'red')}  {problem.path}: {problem.what}")
        if report.ok:
            console.print(f"{console.style('sound', 'green')}: {report.records:,} records")
    if any(problem.repairable for problem in report.problems) and not args.repair:
        console.note(f"this can be mended: cormorant check {args.store} --repair")
    elif report.problems:
        console.note("what is left cannot be rebuilt; restore a backup.")
    return 0 if report.ok else DEGRADED_EXIT


def _problem(problem: Problem) -> dict[str, Any]:
    return {"what": problem.what, "path": problem.path, "repairable": problem.repairable}


VERB = Verb(
    name="check",
    says="look for damage in a store",
    tells=(
        "Reads everything the store holds and compares it with its checksums and with each other. "
        "Exits 1 if damage is left. --repair rebuilds what is derived (postings, metadata columns) "
        "from the records."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "ok": "true if nothing is damaged (any more)",
        "records": "records looked at",
        "problems[].what": "damage that is still there",
        "problems[].path": "where",
        "problems[].repairable": "whether --repair can mend it",
        "repaired[].what": "damage that was mended",
        "repaired[].path": "where",
        "repaired[].repairable": "true",
    },
)
