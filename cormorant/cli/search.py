"""What does the store know about this question?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from typing import TYPE_CHECKING

from cormorant import trace
from cormorant.cli.asking import add_query, asking
from cormorant.cli.shape import RESULT_FIELDS, hit_fields, result_fields
from cormorant.cli.show import hit_lines
from cormorant.cli.verb import (
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
    parser.add_argument("question", metavar="QUESTION", help="what to look for, in any language")
    add_query(parser)
    parser.add_argument(
        "--trace", metavar="FILE", help="keep what happened in a trace file: cormorant traces FILE"
    )
    add_json(parser)
    parser.add_argument("--jsonl", action="store_true", help="print one JSON object a hit")


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    traced = nullcontext() if args.trace is None else trace.TraceFile(args.trace)
    with traced, asking(args, settings, console) as (store, asked):
        result = scoped(store, args).search(asked.query)
    if args.json:
        console.json(result_fields(result, args.question, asked.degraded))
    elif args.jsonl:
        for hit in result:
            console.json(hit_fields(hit), indent=None)
    else:
        for hit in result:
            for line in hit_lines(hit, console):
                console.print(line)
        if not result.hits:
            console.note("no hits.")
    for sentence in result.degraded:
        console.warn(sentence)
    return 0


VERB = Verb(
    name="search",
    says="ask a store a question",
    tells=(
        "Prints the hits, best first, with their score, their relevance, which --min-score "
        "compares with, and the rank and score each leg gave them. No hits is an answer too, and "
        "exits 0."
    ),
    arguments=_arguments,
    run=_run,
    fields=RESULT_FIELDS,
)
