"""What did a change do to the answers, and why?"""

from __future__ import annotations

import json
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cormorant.cli.asking import open_existing
from cormorant.cli.diff_screen import FIELDS, json_fields, lines
from cormorant.cli.judged import add_asking, add_questions, questions_of
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_settings,
    folder,
    parsed_filter,
    scoped,
)
from cormorant.errors import ConfigError, UsageError
from cormorant.width import plain

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate.diffing import Asked, Diff, QueryDiff
    from cormorant.evaluate.run import Run
    from cormorant.evaluate.store_system import Embed
    from cormorant.store import ScopedStore, Store

__all__ = ["VERB"]

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Given:
    """One of the two as it was typed: a run, or how to ask the store."""

    name: str
    run: Run | None
    asked: Asked | None


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two as it is compared, and how the store was asked if that is known."""

    run: Run
    asked: Asked | None


def _arguments(parser: ArgumentParser) -> None:
    for name, which in (("A", "before"), ("B", "after")):
        parser.add_argument(
            name.lower(),
            metavar=name,
            help=f"{which}: a run file; or how to ask the store, as a .toml or .json file or "
            """as JSON, e.g. '{"mode": "text"}'""",
        )
    parser.add_argument(
        "--kb",
        metavar="KB",
        type=folder,
        help="the store to ask: with configurations, and for the reasons",
    )
    add_questions(parser)
    add_settings(parser, "top_k")
    parser.add_argument(
        "--most",
        metavar="N",
        type=int,
        default=_SHOWN,
        help=f"show the N queries that changed most; 0 for all (default: {_SHOWN})",
    )
    add_asking(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.evaluate.diffing import diff

    k = settings.get("top_k")
    filter = parsed_filter(args)
    given = [_narrowed(_read(written, k), filter) for written in (args.a, args.b)]
    if args.kb is None:
        texts = questions_of(args, None)
        sides = [_answered(each) for each in given]
        found = diff(sides[0].run, sides[1].run, k=k)
        chosen = found.most(args.most or len(found.changed))
    else:
        with open_existing(args.kb, lock_timeout_s=settings.get("lock_timeout")) as store:
            view = scoped(store, args)
            texts = questions_of(args, view)
            embed = _embed(store, settings, given, console)
            sides = [_asked(each, view, texts, embed, console) for each in given]
            found = diff(sides[0].run, sides[1].run, k=k)
            chosen = found.most(args.most or len(found.changed))
            found, chosen = _explained(found, chosen, view, texts, sides, embed, console)
    _warn(found, sides, console)
    if args.json:
        console.json(json_fields(found, chosen, texts))
    else:
        for line in lines(found, chosen, texts, console):
            console.print(line)
    return 0 if found.same else DEGRADED_EXIT


def _read(written: str, k: int) -> _Given:
    """A configuration, or a run and how it was asked for."""
    from cormorant.evaluate.diffing import Asked, asked_for
    from cormorant.evaluate.files import read_run

    fields = _configuration(written)
    if fields is not None:
        inline = written.lstrip().startswith("{")
        return _Given(plain(written) if inline else Path(written).stem, None, Asked(fields, k))
    run = read_run(written)
    return _Given(run.name, run, asked_for(run))


def _narrowed(given: _Given, filter: dict[str, Any] | None) -> _Given:
    """A configuration with the filter that all of them are confined to.

    Raises:
        UsageError: On a run, whose answers are given.
    """
    if filter is None:
        return given
    if given.run is not None or given.asked is None:
        raise UsageError(f"--filter is for asking the store; {given.name:.80} is a saved run.")
    own = given.asked.fields.get("filter")
    both = filter if own is None else {"$and": [own, filter]}
    return replace(given, asked=replace(given.asked, fields={**given.asked.fields, "filter": both}))


def _configuration(written: str) -> dict[str, Any] | None:
    """What was given as a configuration; None for a run file.

    Raises:
        ConfigError: If it looks like a configuration and is none.
    """
    path = Path(written)
    inline = written.lstrip().startswith("{")
    if not inline and path.suffix.lower() not in {".toml", ".json"}:
        return None
    try:
        text = written if inline else path.read_text(encoding="utf-8")
        value = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{written:.80}: not valid TOML or JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ConfigError(
            f"{written:.80}: a configuration is an object of a query's fields, such as "
            f"""{{"mode": "text"}}; got {type(value).__name__}."""
        )
    return value


def _answered(given: _Given) -> _Side:
    """A run that was read; without a store there is no other.

    Raises:
        UsageError: On a configuration.
    """
    if given.run is None:
        raise UsageError(
            f"{given.name:.80} is a configuration: say which store to ask, with --kb KB."
        )
    return _Side(given.run, given.asked)


def _asked(
    given: _Given,
    view: Store | ScopedStore,
    texts: Mapping[str, str],
    embed: Embed | None,
    console: Console,
) -> _Side:
    """A run that was read, or the store's answers under a configuration."""
    from cormorant.evaluate.running import run_system

    if given.run is not None or given.asked is None:
        return _answered(given)
    if not texts:
        raise UsageError(
            "There are no questions to ask the store: give --queries FILE, or keep some in it "
            "with cormorant eval KB --keep."
        )
    with console.progress(f"{given.name}:", len(texts)) as progress:
        run = run_system(
            view,
            texts,
            k=given.asked.k,
            name=given.name,
            config=given.asked.fields,
            embed=embed,
            on_error="record",
            on_answer=lambda _: progress.advance(1),
        )
    if not run.rankings:
        query, error = next(iter(run.failed.items()))
        raise UsageError(f"{given.name}: all {len(texts)} queries failed, {query!r} by: {error}")
    return _Side(run, given.asked)


def _embed(store: Store, settings: Settings, given: list[_Given], console: Console) -> Embed | None:
    """The store's embedder, each text embedded once; None if there is none, or no need."""
    if all(each.asked is None or each.asked.fields.get("mode") == "text" for each in given):
        return None
    from cormorant.cli.embedding import for_asking

    choice = for_asking(
        store, settings.get("embedder"), trusted=settings.trusted("embedder"), mode=None
    )
    for sentence in choice.degraded:
        console.warn(sentence)
    embedder = choice.embedder
    return None if embedder is None else cache(lambda t: embedder.vector(embedder.embed_query(t)))


def _warn(found: Diff, sides: list[_Side], console: Console) -> None:
    """Say which queries could not be compared."""
    for name, only in ((found.before, found.only_before), (found.after, found.only_after)):
        if only:
            console.warn(f"{len(only)} queries were answered by {name} alone, such as {only[0]!r}.")
    for side in sides:
        if side.run.failed:
            query, error = next(iter(side.run.failed.items()))
            console.warn(
                f"{side.run.name} failed at {len(side.run.failed)} queries; {query!r}: {error}"
            )


def _explained(
    found: Diff,
    chosen: list[QueryDiff],
    view: Store | ScopedStore,
    queries: Mapping[str, str],
    sides: list[_Side],
    embed: Embed | None,
    console: Console,
) -> tuple[Diff, list[QueryDiff]]:
    """The same with reasons, as far as they can be had; what cannot is said."""
    from cormorant.evaluate.diffing import with_reasons

    before, after = (side.asked for side in sides)
    if before is None or after is None:
        nameless = sides[0].run.name if before is None else sides[1].run.name
        console.warn(
            f"no reasons: the run {nameless} does not say how the store was asked. Runs written "
            "as .jsonl do."
        )
        return found, chosen
    without = [each.query for each in chosen if each.query not in queries]
    if without:
        console.warn(
            f"no reasons for {len(without)} queries without a text, such as {without[0]!r}: "
            "give --queries FILE."
        )
    askable = [each for each in chosen if each.query in queries]
    found = with_reasons(found, view, queries, before, after, embed=embed, only=askable)
    by_query = {each.query: each for each in found.changed}
    return found, [by_query[each.query] for each in chosen]


VERB = Verb(
    name="diff",
    says="show what a change did to the answers, and why",
    tells=(
        "Compares two runs, or two ways to ask one store, query by query: which documents entered "
        "the first -k places (+), which left (-), which moved (~), with their rank before and "
        "after. With --kb the store says why. Exits 0 if nothing changed, 1 if something did."
    ),
    arguments=_arguments,
    run=_run,
    fields=FIELDS,
)
