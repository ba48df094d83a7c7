"""Which queries are asked: those that are judged, each with its vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cormorant.errors import UsageError
from cormorant.model import Query, VectorLike

__all__ = ["asked_queries"]


def asked_queries(
    queries: Mapping[str, str | Query],
    qrels: Mapping[str, Mapping[str, float]],
    embed: Callable[[str], VectorLike] | Any,
) -> dict[str, Query]:
    """The judged queries, in the judgements' order, texts made Queries.

    Args:
        queries: By id, a text or a whole Query.
        qrels: Judgements.
        embed: Makes the vector of a text: a function, or an object with ``embed_query``; None
            leaves it to be searched by text alone.

    Raises:
        UsageError: If nothing is judged, or a judged query is missing or is no query.
    """
    if not qrels:
        raise UsageError("There are no judgements: qrels is empty. Read some with read_qrels.")
    without = [name for name in qrels if name not in queries]
    if without:
        raise UsageError(
            f"{len(without)} judged queries are not among the queries, such as {without[0]!r}. Do "
            "the queries and the judgements belong together?"
        )
    vector_of = getattr(embed, "embed_query", embed)
    out: dict[str, Query] = {}
    for name in qrels:
        query = queries[name]
        if isinstance(query, str):
            query = Query(text=query, vector=None if vector_of is None else vector_of(query))
        elif not isinstance(query, Query):
            raise UsageError(
                f"Query {name!r} must be a text or a cormorant.Query; got {type(query).__name__}."
            )
        out[name] = query
    return out
