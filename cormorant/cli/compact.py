"""How do the bytes of deleted records go?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from cormorant.cli.asking import open_existing
from cormorant.cli.info import size_text
from cormorant.cli.verb import Verb, add_json, add_settings, add_store

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    add_settings(parser, "lock_timeout")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    with open_existing(
        args.store, read_only=False, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        report = store.compact()
    if args.json:
        console.json(
            {
                "removed": report.removed,
                "before_bytes": report.before_bytes,
                "after_bytes": report.after_bytes,
                "pending_readers": report.pending_readers,
                "left": list(report.left),
            }
        )
    else:
        sizes = f"{size_text(report.before_bytes)} → {size_text(report.after_bytes)}"
        console.print(f"{report.removed:,} dead records removed, {sizes}")
    if report.pending_readers:
        console.warn("another process still reads old bytes; compact again once it is done.")
    for path in report.left:
        console.warn(f"{path} could not be removed.")
    return 0


VERB = Verb(
    name="compact",
    says="make the bytes of deleted records go",
    tells="Rewrites the store without what was deleted or replaced; it can be used meanwhile.",
    arguments=_arguments,
    run=_run,
    fields={
        "removed": "dead records whose bytes went",
        "before_bytes": "size of all files before",
        "after_bytes": "size of all files after",
        "pending_readers": "true while another process's open snapshot keeps old bytes alive",
        "left": "old files that could not be removed",
    },
)
