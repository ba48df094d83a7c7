"""How do command line arguments become a Query?"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cormorant import defaults
from cormorant.cli.verb import parsed_filter
from cormorant.errors import NotFound
from cormorant.model import Query

if TYPE_CHECKING:
    from cormorant.cli.settings import Settings
    from cormorant.store import Store

__all__ = ["Asked", "ask", "open_existing"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query ready to run, and what had to be left out of it."""

    query: Query
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


def ask(store: Store, args: Namespace, settings: Settings, *, explain: bool) -> Asked:
    """Build the query; embeds the question if a vector leg is wanted and can be had.

    Raises:
        QueryError: On a value out of range.
        MissingDependency: If a mode was asked for whose embedder is not installed.
    """
    filter = parsed_filter(args)
    mode = settings.get("mode")
    degraded: tuple[str, ...] = ()
    vector = None
    if mode != "text":
        # Loads a model: kept away from text searches.
        from cormorant.cli.embedding import for_asking

        choice = for_asking(
            store, settings.get("embedder"), trusted=settings.trusted("embedder"), mode=mode
        )
        degraded = choice.degraded
        vector = choice.embedded_query(args.question)
        if mode is None:
            mode = "text" if vector is None else "hybrid"
    query = Query(
        text=args.question,
        vector=vector,
        mode=mode,
        filter=filter,
        top_k=settings.get("top_k"),
        fetch_k=settings.get("fetch_k"),
        min_score=settings.get("min_score"),
        fusion=settings.get("fusion"),
        rrf_k=settings.get("rrf_k"),
        mmr_lambda=settings.get("mmr_lambda"),
        explain=explain,
    )
    return Asked(query, degraded)
