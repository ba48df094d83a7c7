"""Where shall a copy go?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from cormorant.cli.asking import open_existing
from cormorant.cli.verb import Verb, add_json, add_store

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("dest", metavar="DEST", help="a folder that is empty or not there yet")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:  # noqa: ARG001
    with open_existing(args.store) as store:
        store.backup(args.dest)
        records = store.stats().records
    if args.json:
        console.json({"store": args.store, "backup": args.dest, "records": records})
    else:
        console.print(f"{args.store} copied to {args.dest}")
    return 0


VERB = Verb(
    name="backup",
    says="copy a store, while it is in use",
    tells="The copy is one consistent snapshot; reading and writing go on meanwhile.",
    arguments=_arguments,
    run=_run,
    fields={
        "store": "the store's folder",
        "backup": "the copy's folder",
        "records": "records in the store",
    },
)
