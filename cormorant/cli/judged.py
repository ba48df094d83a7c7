"""Which judged questions were named, and how is this store asked them?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cormorant.errors import UsageError

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate import Qrels
    from cormorant.model import Query
    from cormorant.store import Store
    from cormorant.store.door import Door

__all__ = ["JudgedQueries", "add_judged", "judged_queries"]


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Questions ready to be asked, and what is known of their answers.

    Attributes:
        queries: By id; those that are judged.
        qrels: Their judgements.
        degraded: A sentence for each thing that is left out of the queries.
    """

    queries: dict[str, Query]
    qrels: Qrels
    degraded: tuple[str, ...]


def add_judged(parser: ArgumentParser) -> None:
    """``--queries`` and ``--qrels``."""
    parser.add_argument(
        "--queries",
        metavar="FILE",
        help="questions: .jsonl (_id, text), .csv (query, text) or .tsv "
        "(default: those kept in the store)",
    )
    parser.add_argument(
        "--qrels",
        metavar="FILE",
        help="judgements: TREC's or BEIR's columns, .csv or .jsonl (default: those kept in "
        "the store)",
    )


def judged_queries(
    store: Store, view: Door, args: Namespace, settings: Settings, console: Console
) -> JudgedQueries:
    """Read the questions and their judgements, and embed the questions.

    Args:
        store: Whose embedder makes the vectors.
        view: It, or a scope of it, in which a golden set may be kept.
        args: With ``queries`` and ``qrels``.
        settings: With ``mode`` and ``embedder``.
        console: For progress.

    Raises:
        UsageError: If one file is named without the other, or they do not belong together.
        NotFound: If none is named and the store keeps none.
        EvalFileError: On a file that cannot be read.
        QueryError, MissingDependency: If a mode was asked for whose embedder cannot be had.
    """
    from cormorant.cli.embedding import for_asking
    from cormorant.evaluate import Golden, kept_golden, read_qrels, read_queries
    from cormorant.model import Query

    if (args.queries is None) != (args.qrels is None):
        missing = "--qrels" if args.qrels is None else "--queries"
        raise UsageError(f"--queries and --qrels go together; {missing} is missing.")
    if args.qrels is None:
        golden = kept_golden(view)
    else:
        golden = Golden(read_queries(args.queries), read_qrels(args.qrels))
    mode = settings.get("mode")
    if mode == "text":
        return JudgedQueries(
            {name: Query(text=text, mode="text") for name, text in golden.judged.items()},
            golden.qrels,
            (),
        )
    choice = for_asking(
        store, settings.get("embedder"), trusted=settings.trusted("embedder"), mode=mode
    )
    queries = {}
    with console.progress("embedding questions", len(golden.judged)) as progress:
        for name, text in golden.judged.items():
            vector = choice.embedded_query(text)
            queries[name] = Query(text=text, vector=vector, mode=mode)
            progress.advance(1)
    return JudgedQueries(queries, golden.qrels, choice.degraded)
