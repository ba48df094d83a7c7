"""How does a store get faster, and learn of its legs?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from cormorant import defaults
from cormorant.cli.asking import open_existing
from cormorant.cli.info import trust_fields, weights_text
from cormorant.cli.verb import Verb, add_json, add_settings, add_store

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument(
        "--recall",
        type=float,
        metavar="R",
        help="part of the true 10 nearest that a search should find, above 0 and below 1; "
        f"{defaults.RECALL_TARGET:g} until chosen",
    )
    add_settings(parser, "embedder", "lock_timeout")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    # Loads a model where the store has one.
    from cormorant.cli.embedding import for_asking

    with open_existing(
        args.store, read_only=False, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        with console.progress("optimizing", 100) as progress:
            done = 0

            def tell(_what: str, part: float) -> None:
                nonlocal done
                percent = round(100 * part)
                progress.advance(percent - done)
                done = percent

            asked = {} if args.recall is None else {"recall": args.recall}
            choice = for_asking(
                store,
                settings.get("embedder"),
                trusted=settings.trusted("embedder"),
                mode=None,
            )
            embed = None if choice.embedder is None else choice.embedded_query
            report = store.optimize(**asked, embedder=embed, progress=tell)
        stats, ranking = store.stats(), store.ranking
    if args.json:
        console.json(
            {
                "folded": report.folded,
                "built": report.built,
                "index": None if report.index is None else asdict(report.index),
                "trust": trust_fields(stats),
                "seconds": report.seconds,
            }
        )
        return 0
    console.print(f"folded   {report.folded:,} changes")
    if report.index is None:
        console.print("index    none: vectors are scanned as they are")
    else:
        built = report.built or "as it was"
        console.print(
            f"index    {built}: {report.index.rows:,} vectors, recall {report.index.recall:.3f}"
        )
    console.print(f"weights  {weights_text(stats, ranking)}")
    return 0


VERB = Verb(
    name="optimize",
    says="learn of the store, index its vectors and fold its log",
    tells=(
        "Learns how far each leg of a hybrid search is to be trusted, if records came since, and "
        "whether the store's embedder, where it is installed, understands questions; gives "
        "large stores a vector index and measures how much it finds; folds the log. Readers and "
        "writers go on meanwhile."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "folded": "changes that need not be replayed any more when the store is opened",
        "built": "new, grown or dropped: what became of the index; null: nothing was to be done",
        "index": "the vector index: rows, bytes_per_vector, rotated, lists, probes, rescored, "
        "recall as measured, target; null: vectors are scanned",
        "trust": "what was learned of the legs, as in info; null if nothing was",
        "seconds": "wall time",
    },
)
