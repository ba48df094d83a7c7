"""Is this store ready for production?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from cormorant.cli.asking import open_existing
from cormorant.cli.verb import DEGRADED_EXIT, Verb, add_json, add_scope, add_store, scoped

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.ingest.doctor import Finding

__all__ = ["VERB"]

_COLOURS = {"passed": "green", "failed": "red", "unknown": "yellow"}


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument(
        "--pipeline",
        metavar="FILE",
        help="what is around the store, as TOML or JSON; docs/doctor.md says what it can hold",
    )
    add_scope(parser)
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:  # noqa: ARG001 - every verb's
    from cormorant.ingest.doctor import Pipeline, examine

    described = None if args.pipeline is None else Pipeline.load(args.pipeline)
    with open_existing(args.store) as store:
        diagnosis = examine(scoped(store, args), described)
    if args.json:
        console.json(diagnosis.to_json())
    else:
        console.print(console.style("production checklist", "bold"))
        for finding in diagnosis.findings:
            if finding.checklist:
                _show(finding, console)
        console.print(f"\n{console.style('records', 'bold')}")
        for finding in diagnosis.findings:
            if not finding.checklist:
                _show(finding, console)
        verdict = console.style(diagnosis.verdict, "green" if diagnosis.ok else "red")
        console.print(f"\n{diagnosis.passed}/{diagnosis.of}: {verdict}")
    if diagnosis.sampled is not None:
        console.note(diagnosis.sampled)
    if described is None:
        console.note("describe the pipeline with --pipeline: much of it cannot be seen in a store.")
    return 0 if diagnosis.ok else DEGRADED_EXIT


def _show(finding: Finding, console: Console) -> None:
    state = console.style(f"{finding.state:<7}", _COLOURS[finding.state])
    console.print(f"  {state}  {finding.name}: {finding.evidence}")
    if finding.examples and finding.state == "failed":
        console.print(f"           such as {', '.join(finding.examples)}")
    if finding.remedy:
        console.print(f"           {finding.remedy}")


VERB = Verb(
    name="doctor",
    says="check a store and its pipeline before production",
    tells=(
        "Looks at the records and at the pipeline's description, and says what is wrong, with "
        "evidence and what to do. Twelve checks are the production checklist: ready from 10, "
        "nearly from 7. What is not described is unknown, and does not count as passed. Exits 1 "
        "unless it is ready and no error was found."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "ok": "true if it is ready and no check of severity error failed",
        "verdict": "ready, nearly or not ready",
        "passed": "checks of the checklist that passed",
        "of": "checks on the checklist",
        "records": "records in the store, or in the scope",
        "examined": "records that were looked at, the oldest",
        "findings[].name": "the check",
        "findings[].question": "what it answers",
        "findings[].severity": "error, warning or advice",
        "findings[].checklist": "whether it is on the production checklist",
        "findings[].state": "passed, failed or unknown",
        "findings[].evidence": "why, in numbers",
        "findings[].examples": "ids of records, or values; at most five",
        "findings[].remedy": "what to do; empty if it passed",
    },
)
