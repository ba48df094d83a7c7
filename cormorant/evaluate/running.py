"""What does this system answer to these queries, and at what cost?"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.answers import Duplicates, Reply, ranking_of
from cormorant.evaluate.run import Cost, Ranking, Run
from cormorant.evaluate.store_system import Embed, StoreSystem
from cormorant.model import Result, StoreProtocol
from cormorant.store.door import Door

__all__ = ["System", "run_system"]

System: TypeAlias = StoreProtocol | Door | Callable[[str], Any]
"""A store, or a function from a query's text to hits, best first."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """One query's, or its failure."""

    ranking: Ranking = ()
    cost: Cost | None = None
    degraded: tuple[str, ...] = ()
    error: Exception | None = None


def run_system(
    system: System,
    queries: Mapping[str, str],
    *,
    k: int = defaults.TOP_K,
    name: str | None = None,
    config: Mapping[str, Any] | None = None,
    embed: Embed | Any = None,
    by: str | Callable[[Any], str] | None = None,
    duplicates: Duplicates | None = None,
    on_error: Literal["raise", "record"] = "raise",
    workers: int = 1,
    on_answer: Callable[[str], None] | None = None,
) -> Run:
    """Ask a system every query.

    Args:
        system: A store (or a scoped view), asked as ``config`` says; or a function from text to
            hits, best first: ids, pairs of id and score, hits, a Result, a dict of scores, or
            a :class:`~cormorant.evaluate.Reply` of these.
        queries: Query id to text.
        k: Hits wanted of a store and counted of a function. For a store it changes how many
            candidates each leg gives, so ask for as many as your application does.
        name: Of the run; by default ``store`` or the function's name.
        config: For a store, fields of its Query, such as ``{"mode": "text"}``. For a function,
            what is known to change its rankings, kept with the run; by default its attribute
            ``config``, if it has one.
        embed: For a store: makes a query's vector; a function, or an object with
            ``embed_query``.
        by: What is judged instead of a hit's id: a field of its metadata, such as that of its
            document's id, or a function of the hit.
        duplicates: An id that comes twice: ``refuse`` it, or count its ``first`` place. By
            default ``first`` where ``by`` is given, else ``refuse``.
        on_error: What a failing query does: ``raise`` ends the run with its error; ``record``
            notes it in ``Run.failed`` and goes on.
        workers: Threads that ask at once. More make the measured seconds longer, not the rankings
            different.
        on_answer: Called with each query's id once it is answered, for progress.

    Returns:
        Rankings in the queries' order, what each query cost, and what failed.

    Raises:
        UsageError: On arguments that do not fit; and, if ``on_error`` is ``raise``, on an answer
            that is no ranking.

    Example:
        >>> run = run_system(lambda text: text.split(), {"1": "a b"}, name="words")
        >>> run.ids("1")
        ('a', 'b')
    """
    _check(queries, k, on_error, workers)
    if duplicates is None:
        duplicates = "refuse" if by is None else "first"
    if duplicates not in {"refuse", "first"}:
        raise UsageError(f"duplicates is 'refuse' or 'first'; got {duplicates!r}.")
    ask: Callable[[str], Any]
    written: Mapping[str, Any]
    own_name: str
    if isinstance(system, (StoreProtocol, Door)):
        ask = StoreSystem(system, k=k, config=config, embed=embed)
        own_name, written = "store", ask.config
    elif callable(system):
        if embed is not None:
            raise UsageError("embed goes with a store; a function embeds its queries itself.")
        ask = system
        own_name = getattr(system, "__name__", type(system).__name__)
        written = getattr(system, "config", {}) if config is None else config
    else:
        raise UsageError(
            f"A system is a store or a function from text to hits; got {type(system).__name__}. "
            "For a LangChain retriever or chain: cormorant.langchain.evaluation.as_system."
        )
    if by is not None:
        told = by if isinstance(by, str) else {"function": getattr(by, "__qualname__", repr(by))}
        written = {**written, "judged_by": told}

    def answer(item: tuple[str, str]) -> _Answer:
        done = _answered(ask, item[1], k, by, duplicates)
        if on_answer is not None:
            on_answer(item[0])
        return done

    rankings: dict[str, Ranking] = {}
    costs: dict[str, Cost] = {}
    degraded: dict[str, tuple[str, ...]] = {}
    failed: dict[str, str] = {}
    for query, done in zip(queries, _in_order(answer, queries, workers), strict=True):
        if done.error is not None:
            if on_error == "raise":
                done.error.add_note(
                    f"The system failed at query {query!r}: {queries[query]!r:.200}"
                )
                raise done.error
            failed[query] = f"{type(done.error).__name__}: {done.error}"
            continue
        rankings[query] = done.ranking
        if done.cost is not None:
            costs[query] = done.cost
        if done.degraded:
            degraded[query] = done.degraded
    return Run(name or own_name, rankings, written, costs, degraded, failed)


def _answered(
    ask: Callable[[str], Any],
    text: str,
    k: int,
    by: str | Callable[[Any], str] | None,
    duplicates: Duplicates,
) -> _Answer:
    start = time.perf_counter()
    try:
        returned = ask(text)
        seconds = time.perf_counter() - start
        if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                returned.close()
            raise UsageError(
                "The system is asynchronous; give a function that returns the hits, such as "
                "lambda text: asyncio.run(system(text))."
            )
        reply = returned if isinstance(returned, Reply) else Reply(returned)
        degraded = reply.degraded
        if isinstance(reply.hits, Result):
            degraded = (*degraded, *reply.hits.degraded)
        ranking = ranking_of(reply.hits, k, by=by, duplicates=duplicates)
    except Exception as error:  # noqa: BLE001 - whatever a system raises is its answer to this query
        return _Answer(error=error)
    return _Answer(ranking, Cost(seconds, reply.tokens, reply.usd), degraded)


def _in_order(
    answer: Callable[[tuple[str, str]], _Answer], queries: Mapping[str, str], workers: int
) -> Iterator[_Answer]:
    if workers == 1:
        yield from map(answer, queries.items())
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="cormorant-run") as pool:
        pending = [pool.submit(answer, item) for item in queries.items()]
        try:
            for future in pending:
                yield future.result()
        finally:
            for future in pending:
                future.cancel()


def _check(queries: object, k: object, on_error: object, workers: object) -> None:
    if not isinstance(queries, Mapping) or not queries:
        raise UsageError(
            "queries is a dict of query ids and texts that is not empty; got "
            f"{queries!r:.80}. Read one with read_queries."
        )
    for query, text in queries.items():
        if not isinstance(query, str) or not isinstance(text, str):
            raise UsageError(f"Query ids and texts are strings; got {query!r}: {text!r:.80}.")
    for what, value in (("k", k), ("workers", workers)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(f"{what} must be a whole number of at least 1; got {value!r}.")
    if on_error not in {"raise", "record"}:
        raise UsageError(f"on_error is 'raise' or 'record'; got {on_error!r}.")
