"""Which flags say how texts are cut, and which chunker is that?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from cormorant import defaults

if TYPE_CHECKING:
    from cormorant.ingest.chunkers import Chunker

__all__ = ["add_chunking", "chunker_of"]


def add_chunking(parser: ArgumentParser) -> None:
    """``--chunker``, ``--size`` and ``--overlap``."""
    parser.add_argument(
        "--chunker",
        choices=("recursive", "structural", "fixed", "hierarchical"),
        default="recursive",
        help="how texts are cut (default: recursive)",
    )
    parser.add_argument(
        "--size",
        type=int,
        metavar="N",
        default=defaults.CHUNK_SIZE,
        help=f"characters of a chunk, at most (default: {defaults.CHUNK_SIZE})",
    )
    parser.add_argument(
        "--overlap",
        type=int,
        metavar="N",
        help="characters that two neighbours may share (default: "
        f"{defaults.CHUNK_OVERLAP}, or a tenth of a smaller --size)",
    )


def chunker_of(args: Namespace) -> Chunker:
    """The chunker that was asked for.

    Raises:
        ConfigError: On sizes out of their range.
    """
    from cormorant.ingest import chunkers

    overlap = args.overlap
    if overlap is None:
        overlap = min(defaults.CHUNK_OVERLAP, args.size // 10)
    sizes: dict[str, Any] = {"size": args.size, "overlap": overlap}
    if args.chunker == "hierarchical":
        sizes["parent_size"] = 4 * args.size
    made: Chunker = getattr(chunkers, chunkers.CHUNKERS[args.chunker])(**sizes)
    return made
