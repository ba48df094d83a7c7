"""How do command line arguments become a Query?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cormorant import defaults
from cormorant.cli.verb import add_filter, add_scope, add_settings, parsed_filter
from cormorant.errors import NotFound
from cormorant.model import Query, VectorLike

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.store import Store

__all__ = ["Asked", "Way", "add_query", "asking", "open_existing", "way_of"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query ready to run, and what had to be left out of it."""

    query: Query
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How a store is asked, whatever the question.

    Attributes:
        config: Fields of a Query.
        embed: A question's vector; None where the text leg answers alone.
        degraded: What had to be left out.
    """

    config: dict[str, Any]
    embed: Callable[[str], VectorLike | None] | None
    degraded: tuple[str, ...]


def open_existing(
    path: str, *, read_only: bool = True, lock_timeout_s: float = defaults.LOCK_TIMEOUT_S
) -> Store:
    """The store at ``path``.

    Raises:
        NotFound: If there is nothing.
    """
    from cormorant.store import Store

    if not Path(path).exists():
        raise NotFound(f"There is no store at {path}. To make one: cormorant add {path} FILES")
    return Store.open(path, create=False, read_only=read_only, lock_timeout_s=lock_timeout_s)


def way_of(store: Store, args: Namespace, settings: Settings) -> Way:
    """How questions are to be asked; loads the embedder if a vector leg is wanted and can be had.

    Raises:
        QueryError: If a mode was asked for that needs vectors, and they cannot be had.
        MissingDependency: If a mode was asked for whose embedder is not installed.
    """
    mode = settings.get("mode")
    degraded: tuple[str, ...] = ()
    embed = None
    # Before the model is loaded, which takes a while.
    filter = parsed_filter(args)
    if mode != "text":
        # Loads a model: kept away from text searches.
        from cormorant.cli.embedding import for_asking

        choice = for_asking(
            store, settings.get("embedder"), trusted=settings.trusted("embedder"), mode=mode
        )
        degraded = choice.degraded
        if choice.embedder is not None:
            embed = choice.embedded_query
        if mode is None:
            mode = "text" if embed is None else "hybrid"
    names = ("fetch_k", "min_score", "fusion", "rrf_k", "mmr_lambda")
    config = {name: settings.get(name) for name in names}
    return Way({"mode": mode, "filter": filter, **config}, embed, degraded)


def add_query(parser: ArgumentParser) -> None:
    """The flags that say how a question is asked; the same in every verb that asks one."""
    add_settings(parser, "top_k", "mode")
    add_filter(parser)
    add_scope(parser)
    add_settings(parser, "min_score", "fusion", "rrf_k", "fetch_k", "mmr_lambda", "embedder")
    parser.add_argument(
        "--exact", action="store_true", help="compare with every vector, whatever index there is"
    )


@contextmanager
def asking(args: Namespace, settings: Settings, console: Console) -> Iterator[tuple[Store, Asked]]:
    """The store that was named, open for the block, and the query; what it lacks is warned of.

    Embeds the question if a vector leg is wanted and can be had.

    Raises:
        NotFound: If there is no such store.
        QueryError: On a value out of range.
        MissingDependency: If a mode was asked for whose embedder is not installed.
    """
    with open_existing(args.store) as store:
        way = way_of(store, args, settings)
        query = Query(
            text=args.question,
            vector=None if way.embed is None else way.embed(args.question),
            top_k=settings.get("top_k"),
            exact=args.exact,
            explain=True,
            **way.config,
        )
        for sentence in way.degraded:
            console.warn(sentence)
        yield store, Asked(query, way.degraded)
