"""Into which chunks would a file be cut?"""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cormorant.cli.chunking import add_chunking, chunker_of
from cormorant.cli.verb import Verb, add_json
from cormorant.width import plain, wrap

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings

__all__ = ["VERB"]

_ENDS = tuple("。！？!?….:;：；\"'”’」』）)]}`|>")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="any file that sync reads")
    add_chunking(parser)
    parser.add_argument("--show", action="store_true", help="print the chunks with their borders")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:  # noqa: ARG001 - all verbs'
    from cormorant.ingest.files import SourceFile
    from cormorant.ingest.loaders import load

    documents = list(load(SourceFile.at(args.file)))
    chunks = list(chunker_of(args).chunk(documents))
    told = _statistics(documents, chunks)
    if args.json:
        shown = [{"text": each.page_content, "metadata": each.metadata} for each in chunks]
        console.json({**told, "chunks": shown if args.show else None})
        return 0
    if args.show:
        for line in _shown(chunks, console):
            console.print(line)
    for name, value in told.items():
        console.print(f"{name.replace('_', ' '):<18} {value}")
    return 0


def _statistics(documents: Sequence[Document], chunks: Sequence[Document]) -> dict[str, Any]:
    lengths = [len(each.page_content) for each in chunks] or [0]
    cut = sum(not each.page_content.endswith(_ENDS) for each in chunks)
    texts = Counter(each.page_content for each in chunks)
    return {
        "documents": len(documents),
        "count": len(chunks),
        "shortest": min(lengths),
        "median": statistics.median(lengths),
        "longest": max(lengths),
        "cut_mid_sentence": round(cut / len(chunks), 3) if chunks else 0.0,
        "duplicates": sum(texts.values()) - len(texts),
    }


def _shown(chunks: Sequence[Document], console: Console) -> Iterator[str]:
    """Each chunk under a line that says where it lies and what is known of it."""
    for number, each in enumerate(chunks, start=1):
        start = each.metadata["start_index"]
        places = [f"{start}–{start + len(each.page_content)}"]
        places += [
            f"{name} {plain(str(each.metadata[name]))}"
            for name in ("page", "sheet", "section", "parent")
            if name in each.metadata
        ]
        head = f"── {number} · {len(each.page_content)} characters · {' · '.join(places)} "
        yield console.style(head.ljust(console.width, "─")[: console.width], "cyan")
        yield from wrap(each.page_content, console.width, 10**6)
    if chunks:
        yield console.style("─" * console.width, "cyan")


VERB = Verb(
    name="chunk",
    says="show into which chunks a file would be cut",
    tells=(
        "Reads a file as sync does, cuts it, and prints how many chunks there are, how long, how "
        "many end in the middle of a sentence and how many are the same; with --show the chunks "
        "themselves. Nothing is stored and nothing embedded."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "documents": "pages, sheets or sections that were read",
        "count": "chunks",
        "shortest": "characters of the shortest",
        "median": "of their lengths",
        "longest": "characters of the longest",
        "cut_mid_sentence": "part of the chunks that end in the middle of a sentence",
        "duplicates": "chunks whose text another one has too",
        "chunks[].text": "with --show: each chunk; else null",
        "chunks[].metadata": "what is known of it, start_index among it",
    },
)
