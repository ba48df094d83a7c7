"""Which records shall go?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from cormorant.cli.asking import open_existing
from cormorant.cli.verb import (
    Verb,
    add_filter,
    add_json,
    add_scope,
    add_settings,
    add_store,
    parsed_filter,
    scoped,
)
from cormorant.errors import UsageError

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("ids", nargs="*", metavar="IDS", help="ids of the records")
    add_filter(parser)
    add_scope(parser)
    add_settings(parser, "lock_timeout")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    filter = parsed_filter(args)
    if not args.ids and filter is None:
        raise UsageError(
            "delete needs ids or a --filter; got neither. To delete everything: --filter '{}'."
        )
    with open_existing(
        args.store, read_only=False, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        view = scoped(store, args)
        known = {record.id for record in view.get(args.ids)}
        deleted = view.delete(args.ids or None, filter=filter)
    unknown = [identity for identity in args.ids if identity not in known]
    for identity in unknown:
        console.warn(f"no record has the id {identity!r}.")
    if args.json:
        console.json({"deleted": deleted, "unknown": unknown})
    else:
        console.print(f"{deleted} deleted")
    if deleted:
        console.note("their bytes go with: cormorant compact " + args.store)
    return 0


VERB = Verb(
    name="delete",
    says="delete records by id, by filter, or both",
    tells=(
        "With ids and a filter, deletes those of the ids that match. An id that is not there is "
        "named on stderr and is no error. Deleted bytes stay in the files until compact."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "deleted": "records that were deleted",
        "unknown": "ids that were asked for and are not in the store",
    },
)
