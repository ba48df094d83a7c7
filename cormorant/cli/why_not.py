"""Why was something not found, and what would have found it?"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cormorant.cli.asking import add_query, asking
from cormorant.cli.shape import WHY_NOT_FIELDS, why_not_fields
from cormorant.cli.show import explanation_lines
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_json,
    add_store,
    scope_of,
)
from cormorant.width import plain

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.model import Change, WhyNot

__all__ = ["VERB"]

_FLAGS = ("top_k", "fetch_k", "min_score", "mmr_lambda", "mode")


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("question", metavar="QUESTION", help="the question as it was asked")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--id", metavar="ID", help="the record asked about")
    which.add_argument("--text", metavar="TEXT", help="its text, or a passage of it")
    add_query(parser)
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    with asking(args, settings, console) as (store, asked):
        # The whole store is looked at: who may run this may open the folder.
        why = store.why_not(asked.query, args.id, text=args.text, scope=scope_of(args))
    if args.json:
        console.json(why_not_fields(why, asked.degraded))
    else:
        for line in _lines(why, console):
            console.print(line)
    return 0 if why.found else DEGRADED_EXIT


def _lines(why: WhyNot, console: Console) -> Iterator[str]:
    """The verdict, what would have kept it, and its journey."""
    yield f"{console.style(why.cause, 'bold')}: {plain(why.says)}"
    for change in why.changes:
        yield f"  {console.style('try', 'green')}   {plain(change.says)}{_flags(change)}"
    if why.explanation is not None:
        yield ""
        yield from list(explanation_lines(why.explanation, console))[1:]


def _flags(change: Change) -> str:
    """The change as flags, where each setting of it has one."""
    if not change.query or set(change.query) - set(_FLAGS):
        return ""
    given = {name: value for name, value in change.query.items() if value is not None}
    if len(given) < len(change.query):
        return ""
    flags = (
        f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in given.items()
    )
    return f" ({' '.join(flags)})"


VERB = Verb(
    name="why-not",
    says="say which stage lost a record, and what would have kept it",
    tells=(
        "Follows a record, given by id or by its text, through the stages of the search, names the "
        "first that lost it, and proposes the nearest change that brings it in: each was tried. "
        "With --scope the search is confined and the record is not, so that a scope that "
        "hides it is told. Exits 0 if it is a hit after all, 1 if it was missed."
    ),
    arguments=_arguments,
    run=_run,
    fields=WHY_NOT_FIELDS,
)
