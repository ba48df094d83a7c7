"""Which judged questions were named, and how is this store asked them?

The verbs that judge (eval, diff, tune, calibrate, judge) take their arguments from here, so that
one flag means one thing in all of them.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from cormorant.cli.verb import add_filter, add_json, add_scope, add_settings, parsed_filter
from cormorant.errors import NotFound, UsageError

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate import Golden, Groups, Qrels
    from cormorant.model import Query, Record
    from cormorant.store import Store
    from cormorant.store.door import Door

__all__ = [
    "JudgedQueries",
    "add_asking",
    "add_groups",
    "add_questions",
    "add_split",
    "brings_qrels",
    "field_among",
    "golden_of",
    "groups_of",
    "judged_queries",
    "qrels_of",
    "questions_of",
]

_SEEN: Final = 1000
"""So many records are looked at to say what judgements name, if it is none of them."""


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Questions ready to be asked, and what is known of their answers.

    Attributes:
        queries: By id; those that are judged.
        qrels: Their judgements.
        by: The metadata field they name instead of a record's id, if they do.
        degraded: A sentence for each thing that is left out of the queries.
    """

    queries: dict[str, Query]
    qrels: Qrels
    by: str | None
    degraded: tuple[str, ...]


def add_questions(parser: ArgumentParser, *, judged: bool = False) -> None:
    """``--queries``, or ``--beir`` and ``--split``: the questions, and with them judgements.

    Args:
        parser: Gets the arguments.
        judged: Whether ``--qrels`` is one of them.
    """
    parser.add_argument(
        "--queries",
        metavar="FILE",
        help="questions: .jsonl (_id, text), .csv (query, text) or .tsv "
        "(default: those kept in the store)",
    )
    if judged:
        parser.add_argument(
            "--qrels",
            metavar="FILE",
            help="judgements: TREC's or BEIR's columns, .csv or .jsonl (default: those kept in "
            "the store)",
        )
        parser.add_argument(
            "--by",
            metavar="FIELD",
            help="judge a hit by this metadata field, such as source, its file, and not by its "
            "own id (default: as the questions kept in the store are judged)",
        )
    parser.add_argument(
        "--beir",
        metavar="FOLDER",
        help="both, from a BEIR folder: queries.jsonl, qrels/SPLIT.tsv"
        if judged
        else "questions of a BEIR folder: queries.jsonl, those that qrels/SPLIT.tsv names",
    )
    parser.add_argument(
        "--split", metavar="NAME", default="test", help="of the BEIR folder (default: test)"
    )


def add_asking(parser: ArgumentParser, *more: str) -> None:
    """What narrows and serves the asking, then ``--json``; the same in every verb that judges.

    Args:
        parser: Gets the arguments.
        more: Settings that stand between ``--scope`` and ``--embedder``.
    """
    add_filter(parser)
    add_scope(parser)
    add_settings(parser, *more, "embedder", "lock_timeout")
    add_json(parser)


def add_groups(parser: ArgumentParser) -> None:
    """``--groups``: which questions are no independent witnesses."""
    parser.add_argument(
        "--groups",
        metavar="GROUPS",
        help="questions that rise and fall together count as one: 'records' (those with a relevant "
        "record in common), a .csv, .jsonl or .tsv of queries and groups, or a metadata field of "
        "the relevant records (default: each question counts)",
    )


def groups_of(
    args: Namespace, qrels: Qrels, view: Door | None, by: str | None = None
) -> Groups | None:
    """What ``--groups`` says; a field is looked up in the store.

    Args:
        args: With ``--groups``.
        qrels: The judgements.
        view: Where records are looked up; None without a store.
        by: The metadata field that the judgements name instead of records.

    Raises:
        EvalFileError: On a file that cannot be read.
        UsageError: If a field is named where there is no store, or no record has it, or the
            judgements name another.
    """
    from cormorant.evaluate import by_field, read_groups

    written: str | None = args.groups
    if written is None:
        return None
    if written in {"records", by}:
        return "records"
    if written.lower().endswith((".csv", ".jsonl", ".tsv")):
        return read_groups(written)
    if view is None:
        raise UsageError(
            f"--groups {written}: a metadata field is looked up in a store; name one, or give "
            "'records' or a .csv, .jsonl or .tsv file."
        )
    if by is not None:
        raise UsageError(
            f"--groups {written}: the judgements name no records whose {written} could be looked "
            f"up, but their {by}; give {by!r} or a .csv, .jsonl or .tsv file."
        )
    return by_field(view, qrels, written)


def add_split(parser: ArgumentParser) -> None:
    """``--holdout`` and ``--seed``: which questions judge what the others decide."""
    parser.add_argument(
        "--holdout",
        type=float,
        default=0.3,
        metavar="SHARE",
        help="share of the questions that judge the outcome and have no part in it (default: .3)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the split (default: 0)"
    )


def brings_qrels(args: Namespace) -> bool:
    """Whether the judgements come from files.

    Raises:
        UsageError: If they come from two places.
    """
    if args.beir and (args.qrels or args.queries):
        raise UsageError("--beir brings queries and judgements; leave --queries and --qrels out.")
    return bool(args.qrels or args.beir)


def qrels_of(args: Namespace, view: Door | None) -> Qrels:
    """The judgements alone, from the files, else those kept in the store.

    Raises:
        NotFound: If no file is named and the store keeps none.
        EvalFileError: On a file that cannot be read.
    """
    from cormorant.evaluate import kept_golden, read_beir, read_qrels

    if brings_qrels(args) or view is None:
        return read_beir(args.beir, split=args.split).qrels if args.beir else read_qrels(args.qrels)
    return kept_golden(view).qrels


def questions_of(args: Namespace, view: Door | None) -> dict[str, str]:
    """The questions alone, from the files, else those kept in the store; none if it keeps none.

    Raises:
        UsageError: If they come from two places.
        EvalFileError: On a file that cannot be read.
    """
    from cormorant.evaluate import kept_golden, read_beir, read_queries

    if args.beir and args.queries:
        raise UsageError("--beir brings the queries; leave --queries out.")
    if args.beir:
        return dict(read_beir(args.beir, split=args.split).judged)
    if args.queries is not None:
        return read_queries(args.queries)
    try:
        return {} if view is None else dict(kept_golden(view).queries)
    except NotFound:
        return {}


def golden_of(args: Namespace, view: Door) -> Golden:
    """Questions and judgements from the files, else those kept in the store.

    Raises:
        UsageError: If one file is named without the other, or they do not belong together.
        NotFound: If none is named and the store keeps none.
        EvalFileError: On a file that cannot be read.
    """
    from cormorant.evaluate import Golden, kept_golden, read_beir, read_qrels, read_queries

    if brings_qrels(args) and args.beir:
        return replace(read_beir(args.beir, split=args.split), by=args.by)
    if (args.queries is None) != (args.qrels is None):
        missing = "--qrels" if args.qrels is None else "--queries"
        raise UsageError(f"--queries and --qrels go together; {missing} is missing.")
    if args.qrels is None:
        kept = kept_golden(view)
        return kept if args.by is None else replace(kept, by=args.by)
    qrels = read_qrels(args.qrels)
    if not qrels:
        raise UsageError(
            f"{args.qrels} holds no judgements. The first line of a .csv names its columns: "
            "query,document,grade."
        )
    return Golden(read_queries(args.queries), qrels, args.by)


def _field_named(golden: Golden, view: Door) -> str | None:
    """The metadata field that the judgements name, if it is plain that they name no records."""
    if golden.by is not None:
        return None
    named = dict.fromkeys(doc for grades in golden.qrels.values() for doc in grades)
    documents = list(named)
    if any(view.get(documents[at : at + _SEEN]) for at in range(0, len(documents), _SEEN)):
        return None
    return field_among(islice(view.records(), _SEEN), named)


def field_among(records: Iterable[Record], named: Container[str]) -> str | None:
    """The first metadata field of a record that holds one of the names."""
    for record in records:
        for field, value in record.metadata.items():
            if isinstance(value, str) and value in named:
                return field
    return None


def judged_queries(
    store: Store, view: Door, args: Namespace, settings: Settings, console: Console
) -> JudgedQueries:
    """Read the questions and their judgements, and embed the questions.

    Args:
        store: Whose embedder makes the vectors.
        view: It, or a scope of it, in which a golden set may be kept.
        args: What :func:`add_questions` and :func:`add_asking` added.
        settings: With ``mode`` and ``embedder``.
        console: For progress.

    Raises:
        UsageError: If one file is named without the other, or they do not belong together.
        NotFound: If none is named and the store keeps none.
        EvalFileError: On a file that cannot be read.
        QueryError, MissingDependency: If a mode was asked for whose embedder cannot be had.
    """
    from cormorant.cli.embedding import for_asking
    from cormorant.model import Query

    golden = golden_of(args, view)
    named = _field_named(golden, view)
    if named is not None:
        raise UsageError(
            f"The judgements name no records of the store (in the scope), but values of their "
            f"{named}: judge with --by {named}."
        )
    filter = parsed_filter(args)
    mode = settings.get("mode")
    if mode == "text":
        return JudgedQueries(
            {
                name: Query(text=text, mode="text", filter=filter)
                for name, text in golden.judged.items()
            },
            golden.qrels,
            golden.by,
            (),
        )
    choice = for_asking(
        store, settings.get("embedder"), trusted=settings.trusted("embedder"), mode=mode
    )
    queries = {}
    with console.progress("embedding questions", len(golden.judged)) as progress:
        for name, text in golden.judged.items():
            vector = choice.embedded_query(text)
            queries[name] = Query(text=text, vector=vector, mode=mode, filter=filter)
            progress.advance(1)
    return JudgedQueries(queries, golden.qrels, golden.by, choice.degraded)
