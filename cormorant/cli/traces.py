"""What happened in the searches that were traced?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cormorant.cli.verb import Verb, add_json
from cormorant.trace import read_trace, read_traces
from cormorant.width import clip, plain

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]

_BAR = 30


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a trace file, from this machine or another")
    parser.add_argument("id", metavar="ID", nargs="?", help="show one trace; its id's beginning")
    parser.add_argument("--scope", metavar="TEXT", help="those whose scope has this text in it")
    parser.add_argument("--slow", metavar="MS", type=float, default=0.0, help="so slow at least")
    parser.add_argument("--failed", action="store_true", help="those alone that failed")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="most (default: 20)")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:  # noqa: ARG001 - all verbs'
    if args.id is not None:
        spans = read_trace(args.file, args.id)
        if args.json:
            console.json({"spans": spans})
        else:
            for line in _waterfall(spans, console):
                console.print(line)
        return 0
    found = read_traces(
        args.file,
        scope=args.scope,
        slower_s=args.slow / 1e3,
        failed=args.failed,
        limit=args.limit,
    )
    if args.json:
        console.json({"traces": found})
        return 0
    for each in found:
        console.print(_line(each, console))
    if not found:
        console.note("no traces.")
    return 0


def _line(told: dict[str, Any], console: Console) -> str:
    began = datetime.fromtimestamp(told["started_s"], UTC).astimezone()
    parts = [
        str(told["id"])[:8],
        f"{began:%Y-%m-%d %H:%M:%S}",
        f"{1e3 * told['seconds']:9.2f} ms",
        plain(str(told["name"])),
    ]
    if told["scope"]:
        parts.append(plain(str(told["scope"])))
    if told["error"]:
        parts.append(console.style(plain(str(told["error"])), "red"))
    return "  ".join(parts)


def _waterfall(spans: list[dict[str, Any]], console: Console) -> Iterator[str]:
    """Each span with where it lies in the whole, its milliseconds and its counters."""
    whole, began = max(float(spans[0]["seconds"]), 1e-9), float(spans[0]["started_s"])
    depth: dict[Any, int] = {None: -1}
    for span in spans:
        depth[span["id"]] = deep = depth.get(span["parent"], -1) + 1
        start = min(max((float(span["started_s"]) - began) / whole, 0.0), 1.0)
        at = min(round(start * _BAR), _BAR - 1)
        wide = max(1, min(round(float(span["seconds"]) / whole * _BAR), _BAR - at))
        bar = " " * at + "█" * wide + " " * (_BAR - at - wide)
        name = clip("  " * deep + plain(str(span["name"])), 28)
        counters = " ".join(f"{key}={value}" for key, value in dict(span["counters"]).items())
        failed = console.style(f" {plain(str(span['error']))}", "red") if span["error"] else ""
        took = f"{1e3 * float(span['seconds']):9.3f} ms"
        yield f"{name:<28} {bar} {took}{failed} {console.style(plain(counters), 'dim')}".rstrip()
    for hit in spans[0].get("hits", []):
        yield f"{hit['rank']:>4}  {plain(str(hit['id']))}  {hit['score']}"


VERB = Verb(
    name="traces",
    says="list what was traced, or show one trace",
    tells=(
        "Lists the traces of a file, the newest first; with an id shows that one as a waterfall: "
        "each stage, when it ran in the whole, and what it did. A trace file is made with "
        "search --trace FILE, or in Python with cormorant.trace.TraceFile."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "traces[].id": "the trace's",
        "traces[].started_s": "seconds since 1970",
        "traces[].seconds": "wall time of the whole",
        "traces[].name": "what was done",
        "traces[].scope": "what it was confined to, as a sentence; null: nothing",
        "traces[].error": "the first error in it, by its class; null: none",
        "spans[]": "with an ID, instead: its spans, each after its parent",
        "spans[].name": "what was done",
        "spans[].parent": "the id of the span it happened inside of; null for the whole",
        "spans[].seconds": "wall time",
        "spans[].counters": "work done",
        "spans[].attributes": "what it was done with",
        "spans[].hits[]": "what was found: id, rank and score",
        "spans[].content": "texts, if they were asked to be kept",
    },
)
