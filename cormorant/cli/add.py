"""Which files go into the store?"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cormorant.cli.reading import SUFFIXES, Failure, Item, Skipped, Source, expand
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_json,
    add_scope,
    add_settings,
    add_store,
    scoped,
)
from cormorant.errors import UsageError
from cormorant.model import Record

if TYPE_CHECKING:
    from cormorant.cli.console import Console, Progress
    from cormorant.cli.embedding import Choice
    from cormorant.cli.settings import Settings
    from cormorant.store.door import Door

__all__ = ["VERB"]

_BATCH = 256
_SHOWN = 20


@dataclass(slots=True)
class _Tally:
    """What one run of the verb did."""

    files: int = 0
    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    failed: list[Failure] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILES",
        help=f"{', '.join(SUFFIXES)} files, folders of them, or '-' for standard input",
    )
    parser.add_argument(
        "--encoding",
        default="utf-8",
        metavar="NAME",
        help="of the text files (default: utf-8; a byte order mark wins)",
    )
    add_scope(parser)
    add_settings(parser, "embedder", "language", "lock_timeout")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.cli.embedding import for_adding
    from cormorant.store import Store

    _check_encoding(args.encoding)
    started = time.monotonic()
    tally = _Tally()
    sources = _found(args, tally)
    first = next(sources, None)
    if first is None:
        # Nothing that can be read was named: do not leave an empty store behind.
        return _report(args, console, tally, None, started)
    with Store.open(
        args.store, language=settings.get("language"), lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        source, items, peeked = first
        brings_vectors = isinstance(peeked, tuple) and peeked[1].vector is not None
        choice = for_adding(
            store,
            settings.get("embedder"),
            trusted=settings.trusted("embedder"),
            brings_vectors=brings_vectors,
        )
        for sentence in choice.degraded:
            console.warn(sentence)
        with console.progress("records stored:") as progress:
            view = scoped(store, args)
            _store_source(view, choice, source, items, tally, progress)
            for source, items, _ in sources:
                _store_source(view, choice, source, items, tally, progress)
        store.wait()  # or the next search would pay for what is due now
        return _report(args, console, tally, choice, started)


def _found(args: Namespace, tally: _Tally) -> Iterator[tuple[Source, Iterator[Item], Item]]:
    """Sources that hold at least one record, with that record as a peek; failures are tallied."""
    for source in expand(args.files, args.encoding):
        if isinstance(source, Failure):
            tally.failed.append(source)
            continue
        if isinstance(source, Skipped):
            tally.skipped.append(source)
            continue
        items = source.items()
        peeked = next(items, None)
        if peeked is None and source.found:
            tally.skipped.append(Skipped(source.name, "is empty"))
        elif peeked is None:
            tally.failed.append(Failure(source.name, 0, "is empty: nothing to add."))
        elif isinstance(peeked, Failure) and peeked.line == 0:
            tally.failed.append(peeked)
        else:
            tally.files += 1
            yield source, _again(peeked, items), peeked


def _again(first: Item, rest: Iterator[Item]) -> Iterator[Item]:
    yield first
    yield from rest


def _store_source(
    store: Door,
    choice: Choice,
    source: Source,
    items: Iterator[Item],
    tally: _Tally,
    progress: Progress,
) -> None:
    batch: list[tuple[int, Record]] = []
    for item in items:
        if isinstance(item, Failure):
            tally.failed.append(item)
            continue
        batch.append(item)
        if len(batch) >= _BATCH:
            _store_batch(store, choice, source, batch, tally)
            progress.advance(len(batch))
            batch = []
    if batch:
        _store_batch(store, choice, source, batch, tally)
        progress.advance(len(batch))
    if source.cut is not None:
        # A text that became shorter must not leave its old end behind.
        leftover = {"source": source.prefix, "chunk": {"$gte": source.cut}}
        tally.removed += store.delete(filter=leftover)


def _store_batch(
    store: Door, choice: Choice, source: Source, batch: list[tuple[int, Record]], tally: _Tally
) -> None:
    known = _known(store, [record.id for _, record in batch])
    changed = [
        (line, record)
        for line, record in batch
        if not _held(known.get(record.id), record, source, embeds=choice.embedder is not None)
    ]
    tally.unchanged += len(batch) - len(changed)
    batch = changed
    records = choice.embedded([record for _, record in batch])
    tally.embedded += sum(new is not old for new, (_, old) in zip(records, batch, strict=True))
    try:
        result = store.add(records)
    except UsageError:
        # One of them is at fault, and the store took none: find it, and keep the others.
        for (line, _), record in zip(batch, records, strict=True):
            try:
                result = store.add([record])
            except UsageError as error:
                tally.failed.append(Failure(source.name, line, str(error)))
            else:
                tally.added += result.added
                tally.updated += result.updated
        return
    tally.added += result.added
    tally.updated += result.updated


def _known(store: Door, ids: list[str]) -> dict[str, Record]:
    try:
        return {record.id: record for record in store.get(ids, with_vectors=True)}
    except UsageError:
        return {}  # an id no store can hold: adding the batch says which


def _held(known: Record | None, record: Record, source: Source, *, embeds: bool) -> bool:
    """Is the record in the store as it is, so that embedding it again would buy nothing?"""
    if known is None or record.vector is not None or known.text != record.text:
        return False
    if embeds and known.vector is None:
        return False
    if source.lines:
        return known.metadata == record.metadata
    # A text's metadata are ours; what a scope stamped beside them is not.
    return all(known.metadata.get(name) == value for name, value in record.metadata.items())


def _check_encoding(name: str) -> None:
    try:
        "".encode(name)
    except LookupError:
        raise UsageError(
            f"--encoding names no encoding that Python knows: {name!r}. "
            "Accepted are names such as utf-8, utf-16, gb18030, big5, latin-1."
        ) from None


def _report(
    args: Namespace, console: Console, tally: _Tally, choice: Choice | None, started: float
) -> int:
    seconds = time.monotonic() - started
    for failure in tally.failed[:_SHOWN]:
        console.error(str(failure))
    if len(tally.failed) > _SHOWN:
        console.error(f"… and {len(tally.failed) - _SHOWN} more like these; --json lists them all.")
    if tally.skipped and not args.json:
        named = ", ".join(f"{skipped.file} ({skipped.why})" for skipped in tally.skipped[:3])
        more = f" and {len(tally.skipped) - 3} more" if len(tally.skipped) > 3 else ""
        console.note(f"passed over: {named}{more}.")
    if args.json:
        fields: dict[str, Any] = {
            "files": tally.files,
            "added": tally.added,
            "updated": tally.updated,
            "removed": tally.removed,
            "unchanged": tally.unchanged,
            "embedded": tally.embedded,
            "embedder": choice.spec if choice else None,
            "degraded": list(choice.degraded) if choice else [],
            "failed": [
                {"file": failure.file, "line": failure.line, "error": failure.error}
                for failure in tally.failed
            ],
            "skipped": [{"file": skipped.file, "why": skipped.why} for skipped in tally.skipped],
            "seconds": seconds,
        }
        console.json(fields)
    else:
        parts = [f"{tally.added} added", f"{tally.updated} updated"]
        if tally.unchanged:
            parts.append(f"{tally.unchanged} unchanged")
        if tally.removed:
            parts.append(f"{tally.removed} removed")
        if tally.embedded:
            parts.append(f"{tally.embedded} embedded")
        files = "1 file" if tally.files == 1 else f"{tally.files} files"
        console.print(f"{', '.join(parts)} from {files} in {seconds:.1f} s")
    return DEGRADED_EXIT if tally.failed else 0


VERB = Verb(
    name="add",
    says="add files to a store, or update what they hold",
    tells=(
        "Text and Markdown are cut at paragraphs into records of up to about 500 characters, with "
        "the ids FILE#0, FILE#1, … (FILE as it was typed: one file by two paths is two sources); "
        "adding a file again replaces what changed and removes what it no longer has. Text from "
        "standard input is named by its content, stdin-HASH#0. A line of a .jsonl file is one "
        "record: an object with id, text, metadata and vector, where text or vector must be "
        "there. What cannot be read is named on stderr, the rest is stored, and the exit code is "
        "1. Each batch of 256 records is one transaction."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "files": "files that held something",
        "added": "records that are new",
        "updated": "records that replaced one of the same id",
        "removed": "records a text file no longer has",
        "unchanged": "records that were there already, and were not embedded again",
        "embedded": "records that were given a vector",
        "embedder": "the embedder's specification; null for text only",
        "degraded": "what was left out, a sentence each",
        "failed[].file": "a file that could not be read, or holds a line that could not be stored",
        "failed[].line": "that line, from 1; 0 for the whole file",
        "failed[].error": "why",
        "skipped[].file": "a file of a folder that was passed over; no failure",
        "skipped[].why": "why",
        "seconds": "wall time",
    },
)
