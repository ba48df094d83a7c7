"""Which of these passages answer these questions, says whoever sits at the terminal?"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cormorant import defaults
from cormorant.cli.asking import open_existing
from cormorant.cli.judge_screen import HELP, KEYS, card, key
from cormorant.cli.judged import add_asking, add_questions, questions_of
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_settings,
    add_store,
    parsed_filter,
    scoped,
)
from cormorant.errors import NotFound, UsageError

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate import Run
    from cormorant.evaluate.judgements import JudgementFile, JudgingSession, StoreJudgements
    from cormorant.store import Store
    from cormorant.store.door import Door

__all__ = ["VERB"]

_GRADES: Final = frozenset("01234")


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    add_questions(parser)
    parser.add_argument(
        "--runs",
        metavar="FILE",
        nargs="+",
        default=[],
        help="saved runs whose first documents are judged (default: the store is asked by words, "
        "by vector and by both)",
    )
    parser.add_argument(
        "--depth",
        type=int,
        default=defaults.JUDGED_DEPTH,
        metavar="N",
        help=f"places of each run (default: {defaults.JUDGED_DEPTH})",
    )
    parser.add_argument(
        "--qrels",
        metavar="FILE",
        help="a .jsonl file the judgements are added to (default: the store keeps them)",
    )
    parser.add_argument(
        "--title", metavar="FIELD", default="title", help="metadata field shown above a passage "
        "(default: title)"
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the order (default: 0)"
    )
    add_settings(parser, "mode")
    add_asking(parser)


@dataclass(slots=True)
class _Work:
    """What is judged: filled before anything is asked."""

    queries: dict[str, str]
    pool: dict[str, tuple[str, ...]]
    missing: list[str] = field(default_factory=list)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.evaluate.judgements import JudgementFile, JudgingSession, StoreJudgements

    if args.runs and (args.filter or settings.get("mode")):
        raise UsageError("--mode and --filter are for asking the store; with --runs it is not.")
    if args.depth < 1:
        raise UsageError(f"--depth must be at least 1; got {args.depth}.")
    with ExitStack() as stack:
        store = stack.enter_context(
            open_existing(
                args.store,
                read_only=args.qrels is not None,
                lock_timeout_s=settings.get("lock_timeout"),
            )
        )
        view = scoped(store, args)
        work = _work(args, settings, console, store, view)
        ledger: JudgementFile | StoreJudgements
        if args.qrels is None:
            ledger = StoreJudgements(view, work.queries)
        else:
            ledger = stack.enter_context(JudgementFile(args.qrels))
        session = JudgingSession(work.pool, ledger)
        _judge(session, work, view, args, console)
        pairs = sum(map(len, work.pool.values()))
        summary: dict[str, Any] = {
            "queries": len(work.queries),
            "pairs": pairs,
            "judged_before": pairs - len(session),
            "judged": session.judged,
            "skipped": session.skipped,
            "left": len(session) - session.judged,
            "grades": {str(grade): count for grade, count in session.by_grade.items()},
            "missing": work.missing,
        }
    if args.json:
        console.json(summary)
    else:
        console.print(
            f"judged {summary['judged']}, skipped {summary['skipped']}, left {summary['left']} of "
            f"{pairs} pairs."
        )
    if work.missing:
        console.warn(
            f"{len(work.missing)} documents of the runs are not in the store (in the scope) and "
            f"were not shown, such as {work.missing[0]!r}."
        )
        return DEGRADED_EXIT
    return 0


def _work(args: Namespace, settings: Settings, console: Console, store: Store, view: Door) -> _Work:
    from cormorant.evaluate import read_run
    from cormorant.evaluate.judgements import pool

    queries = questions_of(args, view)
    if not queries:
        raise NotFound("The store keeps no questions. Name a file: --queries FILE")
    runs = [read_run(path) for path in args.runs]
    if not runs:
        runs = _asked(args, settings, console, store, view, queries)
    pooled = pool(runs, queries, depth=args.depth, seed=args.seed)
    ids = list(dict.fromkeys(doc for docs in pooled.values() for doc in docs))
    there: set[str] = set()
    for start in range(0, len(ids), 500):
        there.update(record.id for record in view.get(ids[start : start + 500]))
    return _Work(
        queries,
        {query: tuple(doc for doc in docs if doc in there) for query, docs in pooled.items()},
        sorted(set(ids) - there),
    )


def _asked(
    args: Namespace,
    settings: Settings,
    console: Console,
    store: Store,
    view: Door,
    queries: Mapping[str, str],
) -> list[Run]:
    """The store's answers by each way it can be asked, or by the one that was named."""
    from cormorant.cli.embedding import for_asking
    from cormorant.evaluate import run_system

    mode = settings.get("mode")
    modes = [mode] if mode else ["text", "vector", "hybrid"]
    embed: Callable[[str], Any] | None = None
    if mode != "text":
        choice = for_asking(
            store, settings.get("embedder"), trusted=settings.trusted("embedder"), mode=mode
        )
        for sentence in choice.degraded:
            console.warn(sentence)
        if choice.embedder is None:
            modes = ["text"]
        else:
            vectors = {text: choice.embedded_query(text) for text in set(queries.values())}
            embed = vectors.__getitem__
    filter = parsed_filter(args)
    runs = [
        run_system(
            view,
            queries,
            k=args.depth,
            name=each,
            config={"mode": each, "filter": filter},
            embed=None if each == "text" else embed,
            on_error="record",
        )
        for each in modes
    ]
    for run in runs:
        for query, why in list(run.failed.items())[:1]:
            console.warn(f"{len(run.failed)} queries failed by {run.name}; {query!r}, by: {why}")
    return runs


def _judge(
    session: JudgingSession, work: _Work, view: Door, args: Namespace, console: Console
) -> None:
    """Show one passage after another until all are judged, or it is enough."""
    out = console.err if args.json else console.out

    def say(line: str) -> None:
        out.write(line + "\n")

    if len(session):
        say(console.style(KEYS, "dim"))
    while True:
        item = session.current
        if item is None:
            if len(session) and _undone(session, say, out.flush):
                continue
            return
        found = view.get([item.doc])
        text = found[0].text if found else "(gone from the store since)"
        title = found[0].metadata.get(args.title) if found else None
        title = title if isinstance(title, str) else None
        for line in card(item, len(session), work.queries[item.query], text, title, console):
            say(line)
        if not _answer(session, say, out.flush):
            return


def _undone(session: JudgingSession, say: Callable[[str], None], flush: Callable[[], None]) -> bool:
    """Whether the last answer of all is taken back."""
    say("")
    say("that was the last one. u undo, any other key ends")
    flush()
    return key(sys.stdin) == "u" and session.undo() is not None


def _answer(session: JudgingSession, say: Callable[[str], None], flush: Callable[[], None]) -> bool:
    """Take keys until one answers; False to stop."""
    while True:
        flush()
        pressed = key(sys.stdin)
        if pressed in {"", "q"}:
            return False
        if pressed in _GRADES:
            session.grade(int(pressed))
            return True
        if pressed == "s":
            session.skip()
            return True
        if pressed == "u":
            if session.undo() is not None:
                return True
            say("nothing to undo in this session.")
        else:
            for line in HELP:
                say(line)


_FIELDS: Final[Mapping[str, str]] = {
    "queries": "how many questions there are",
    "pairs": "pairs of question and passage in the pool",
    "judged_before": "of them, judged before this session",
    "judged": "judged in this session",
    "skipped": "passed over in this session",
    "left": "still to be judged, with those skipped",
    "grades": "by grade, how often it was given in this session",
    "missing": "documents of the runs that are not in the store",
}

VERB = Verb(
    name="judge",
    says="judge passages by hand, key by key",
    tells=(
        "Pools the first documents of several runs, or of the store asked by words, by vector and "
        "by both, and shows each with its question, in an order that tells neither rank nor "
        f"system. Keys: {KEYS}. Each answer is written down before the next passage is shown; what "
        "is judged already is not asked again. Without a terminal keys are read from standard "
        "input, a line each. Exits 1 if documents of the runs are not in the store."
    ),
    arguments=_arguments,
    run=_run,
    fields=_FIELDS,
)
