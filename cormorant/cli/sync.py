"""How is a store brought into step with a folder from the shell, once or as long as it runs?"""

from __future__ import annotations

import hashlib
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cormorant import defaults
from cormorant.cli.chunking import add_chunking, chunker_of
from cormorant.cli.sync_screen import Line, fields, print_bill, print_report
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_json,
    add_scope,
    add_settings,
    folder,
    scoped,
)
from cormorant.errors import ConfigError, CormorantError, MissingDependency

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from cormorant.cli.console import Console
    from cormorant.cli.embedding import Choice
    from cormorant.cli.settings import Settings
    from cormorant.ingest import PriceTable, SyncReport
    from cormorant.store import Store

__all__ = ["VERB"]

_NONE: Final = "none"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="the folder whose files are to be kept")
    parser.add_argument("store", metavar="KB", type=folder, help="the store's folder")
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing; print what it would do and cost"
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="go on: sync again whenever the folder changes, until interrupted",
    )
    parser.add_argument(
        "--allow-empty",
        action="store_true",
        help="if the folder has no files any more, delete what the store holds of it",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read every file again and compare the store with it, chunk by chunk; repairs",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="of the collection that is kept in step (default: the folder's absolute path)",
    )
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only files whose path in the folder matches, such as 'guide/*'; may be repeated",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="pass such files over; may be repeated",
    )
    add_chunking(parser)
    parser.add_argument(
        "--cache", metavar="FILE", help="keep vectors in this file too, for other stores to share"
    )
    parser.add_argument(
        "--calls",
        type=int,
        metavar="N",
        help="embedding requests in flight (default: "
        f"{defaults.EMBEDDING_CALLS_AT_ONCE}; 1 for the local model)",
    )
    add_scope(parser)
    add_settings(parser, "embedder", "language", "prices", "lock_timeout")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.ingest import PriceTable

    if args.watch and args.dry_run:
        raise ConfigError("--watch and --dry-run do not go together; leave one of them out.")
    table = PriceTable.load(settings.get("prices"))
    if args.dry_run:
        return _reckon(args, settings, console, table)
    if not Path(args.folder).is_dir():
        # Before anything is made: a slip of the hand must not leave an empty store behind.
        from cormorant.errors import NotFound

        raise NotFound(f"{args.folder} is no folder. Name the folder whose files are to be synced.")
    from cormorant.cli.embedding import for_adding
    from cormorant.store import Store

    with Store.open(
        args.store, language=settings.get("language"), lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        choice = for_adding(store, settings.get("embedder"), trusted=settings.trusted("embedder"))
        for sentence in choice.degraded:
            console.warn(sentence)
        with _cached(choice, args.cache) as embedder:
            once = partial(_once, args, settings, console, table, store, choice, embedder)
            if args.watch:
                return _watch(args, console, once)
            report = once(None)
        store.wait()  # or the next search would pay for what is due now
    return DEGRADED_EXIT if report.failed else 0


def _once(
    args: Namespace,
    settings: Settings,
    console: Console,
    table: PriceTable,
    store: Store,
    choice: Choice,
    embedder: Embeddings | None,
    stop: Callable[[], bool] | None,
) -> SyncReport:
    from cormorant.ingest import sync

    with Line(console) as line:
        report = sync(
            args.folder,
            scoped(store, args),
            embedder,
            allow_empty=args.allow_empty,
            confirm=None if args.watch or args.json else partial(_confirm, line, args.folder),
            work={} if args.calls is None else {"calls_at_once": args.calls},
            lock_timeout_s=settings.get("lock_timeout"),
            stop=stop,
            **_how(args, table, choice.spec, line),
        )
    if args.json:
        console.json(
            fields(report, table, choice.spec, store.count()), indent=None if args.watch else 2
        )
    else:
        print_report(report, console)
    console.out.flush()
    return report


def _how(args: Namespace, table: PriceTable, spec: str | None, line: Line) -> dict[str, Any]:
    """What a sync and its dry run are told alike."""
    return {
        "chunker": chunker_of(args),
        "name": args.name,
        "include": args.include,
        "exclude": args.exclude,
        "verify": args.verify,
        "prices": table,
        "price_as": spec,
        "progress": line.draw,
    }


def _confirm(line: Line, named: str, count: int) -> bool:
    """Ask on a terminal, where somebody is there to answer."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    line.wipe()
    sources = "1 source" if count == 1 else f"{count:,} sources"
    sys.stderr.write(f"{named} is empty. Delete the store's {sources} of it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


@contextmanager
def _cached(choice: Choice, path: str | None) -> Iterator[Embeddings | None]:
    """The embedder, through the cache that was asked for."""
    if path is None or choice.embedder is None:
        yield choice.embedder
        return
    from cormorant.langchain.embeddings import CachedEmbeddings

    inner = choice.embedder.embedding
    with CachedEmbeddings(inner, path) as cached:
        yield cached


def _watch(
    args: Namespace, console: Console, once: Callable[[Callable[[], bool]], SyncReport]
) -> int:
    from cormorant.ingest import watch
    from cormorant.ingest.folders import list_folder

    ending = threading.Event()

    def look() -> str:
        listing = list_folder(Path(args.folder), args.include, args.exclude)
        seen = hashlib.sha256()
        for source in listing.sources:
            seen.update(f"{source.source}\0{source.size_bytes}\0{source.modified}\0".encode())
        seen.update(repr([(each.source, each.error) for each in listing.failed]).encode())
        return seen.hexdigest()

    def work() -> bool:
        try:
            return not once(ending.is_set).failed
        except (CormorantError, OSError) as error:
            console.error(f"{error} The watch goes on.")
            return False

    with _ended_by_signals(ending):
        console.note(f"watching {args.folder}; interrupt to end.")
        watch(look, work, wait=ending.wait)
    console.note("the watch has ended; what was stored stays stored.")
    return 0


@contextmanager
def _ended_by_signals(ending: threading.Event) -> Iterator[None]:
    """The first signal ends the watch after the transaction at hand, a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(_number: int, _frame: Any) -> None:
        ending.set()
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reckon(args: Namespace, settings: Settings, console: Console, table: PriceTable) -> int:
    """What a sync would do and cost; no key, no model and no store is needed."""
    import cormorant
    from cormorant.cli.asking import open_existing
    from cormorant.ingest import sync

    there = Path(args.store).exists()
    with open_existing(args.store) if there else cormorant.open(":memory:") as store:
        spec, embedder = _as_priced(store, settings)
        with Line(console) as line:
            report = sync(
                args.folder,
                scoped(store, args),
                embedder,
                dry_run=True,
                **_how(args, table, spec, line),
            )
        held = store.count()
    if args.json:
        console.json(fields(report, table, spec, held))
    else:
        print_report(report, console)
        print_bill(report, table, spec, held, console)
    return DEGRADED_EXIT if report.failed else 0


def _as_priced(store: Store, settings: Settings) -> tuple[str | None, Embeddings | None]:
    """The embedder to reckon with: the real one for its tokenizer, or one that has but a name."""
    from cormorant.langchain.embeddings import default_spec, resolve

    asked = settings.get("embedder")
    spec = asked or store.embedder or default_spec()
    if spec == _NONE:
        return None, None
    trusted = asked is not None and settings.trusted("embedder")
    try:
        return spec, resolve(spec, trusted=trusted)
    except (ConfigError, MissingDependency):
        from cormorant.ingest.tokens import NamedEmbeddings

        return spec, NamedEmbeddings(spec)


VERB = Verb(
    name="sync",
    says="keep a store in step with a folder of files",
    tells=(
        "Files are read and cut into chunks (docs/loading.md, docs/chunking.md). Only chunks "
        "that are new are embedded; what vanished from the folder goes; a chunk that several files "
        "share is one record and stays until the last of them is gone. Files that did not change "
        "are not read. Interrupted at any point, the next sync goes on from there. A file that "
        "cannot be read keeps what the store has of it, is named on stderr, and makes the exit "
        "code 1. A folder without files deletes nothing unless you say so. --dry-run prints the "
        "chunks and tokens to be embedded and what that costs by the price table. --watch prints "
        "a report (with --json one object, in one line) for every sync, and ends with exit code 0 "
        "on SIGINT or SIGTERM."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "added": "files that are new",
        "updated": "files whose text, metadata or way to be cut changed",
        "moved": "files that have another name now",
        "skipped": "files that did not change",
        "deleted": "files that are gone",
        "failed[].source": "a file, or a folder, that could not be read; its chunks stay",
        "failed[].error": "why",
        "embedded": "distinct texts that were embedded; what --cache knew is not counted",
        "tokens": "tokens of those",
        "tokens_by": "what counted the tokens: a tokenizer, or an estimate",
        "chunks_added": "records that are new; null in a dry run",
        "chunks_updated": "records written again with other metadata; null in a dry run",
        "chunks_deleted": "records that are gone; null in a dry run",
        "chunks": "records in the store (of the scope included), before a dry run and after a sync",
        "seconds": "wall time",
        "usd": "what embedding cost, or would; null if the price table has no such model",
        "dry_run": "whether nothing was changed",
        "notes": "what should be known besides, a sentence each",
        "embedder": "the embedder's specification; null for text only",
        "prices[].provider": "a row of the price table",
        "prices[].model": "its model",
        "prices[].as_of": "when its price held",
        "prices[].build_usd": "what embedding those tokens costs with it, once",
        "prices[].query_usd": f"what embedding a question of {defaults.QUERY_TOKENS} tokens costs, "
        "each time",
        "prices[].vector_bytes": "what the vectors of those chunks take with it",
    },
)
