"""Why is this record among the hits of a question, or why not?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from cormorant.cli.asking import add_query, asking
from cormorant.cli.shape import EXPLANATION_FIELDS, explanation_fields
from cormorant.cli.show import explanation_lines
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_json,
    add_store,
    scoped,
)

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("question", metavar="QUESTION", help="the question as it was asked")
    parser.add_argument("--id", required=True, metavar="ID", help="the record asked about")
    add_query(parser)
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    with asking(args, settings, console) as (store, asked):
        explanation = scoped(store, args).explain(asked.query, args.id)
    if args.json:
        console.json(explanation_fields(explanation, asked.degraded))
    else:
        for line in explanation_lines(explanation, console):
            console.print(line)
    return 0 if explanation.found else DEGRADED_EXIT


VERB = Verb(
    name="explain",
    says="say why a record is, or is not, among the hits",
    tells=(
        "Follows one record through the stages of the search and names the one that lost it, with "
        "the numbers. Exits 0 if it is a hit, 1 if it was missed."
    ),
    arguments=_arguments,
    run=_run,
    fields=EXPLANATION_FIELDS,
)
