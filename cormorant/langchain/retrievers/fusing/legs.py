"""How are several retrievers asked one question at once, and what if one fails?"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import get_executor_for_config
from langchain_core.vectorstores import VectorStoreRetriever

from cormorant.errors import QueryError, ScopeError, UsageError
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retriever import CormorantRetriever
from cormorant.langchain.retrievers.calling import Run, refuse_dropped
from cormorant.langchain.scopes.children import NoDocuments, innermost
from cormorant.model import Stage
from cormorant.ranges import is_whole

__all__ = ["LegCall", "OnError", "aask_all", "ask_all", "named", "own_k", "with_k"]

logger = logging.getLogger(__name__)

OnError: TypeAlias = Literal["raise", "degrade"]
"""What a failing leg does: fail the whole, or be left out and named in ``degraded``."""

_MODES = {"similarity": "vector", "similarity_score_threshold": "vector", "mmr": "vector"}


@dataclass(frozen=True, slots=True)
class LegCall:
    """One retriever, and what it is asked besides the question.

    Attributes:
        name: Unique among its siblings.
        child: The retriever.
        arguments: ``k``, ``filter``, …; None counts as not given.
        query: What this one is asked; None: the question that all are asked.
    """

    name: str
    child: RetrieverLike
    arguments: dict[str, Any] = field(default_factory=dict)
    query: str | None = None

    def question(self, query: str) -> str:
        """What it is asked where all are asked ``query``."""
        return query if self.query is None else self.query


def ask_all(run: Run, legs: Sequence[LegCall], query: str, on_error: OnError) -> list[Answer]:
    """Ask every leg, each in a thread with the caller's context variables.

    Args:
        run: Of the asking retriever.
        legs: At least one.
        query: The question, of those that have none of their own.
        on_error: Whether a failing leg may be left out. Wrong arguments, filters and scopes
            always raise, and so does the last leg standing.

    Returns:
        One Answer per leg, in their order; that of a failed leg is empty and says why.
    """
    _check(run, legs)
    with get_executor_for_config(run.config) as executor:
        futures = [
            executor.submit(_timed, run, leg, query, number)
            for number, leg in enumerate(legs, start=1)
        ]
        outcomes: list[Answer | BaseException] = []
        for future in futures:
            error = future.exception()
            outcomes.append(future.result() if error is None else error)
    return _settled(legs, outcomes, on_error)


async def aask_all(
    run: Run, legs: Sequence[LegCall], query: str, on_error: OnError
) -> list[Answer]:
    """Like :func:`ask_all`, on the event loop; a failure that counts cancels the others."""
    _check(run, legs)
    tasks = [
        asyncio.create_task(_atimed(run, leg, query, number))
        for number, leg in enumerate(legs, start=1)
    ]
    try:
        await asyncio.wait(
            tasks,
            return_when=asyncio.FIRST_EXCEPTION if on_error == "raise" else asyncio.ALL_COMPLETED,
        )
        failed = next(
            (t for t in tasks if t.done() and not t.cancelled() and t.exception() is not None), None
        )
        if failed is not None and on_error == "raise":
            failed.result()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return _settled(legs, outcomes, on_error)


def _check(run: Run, legs: Sequence[LegCall]) -> None:
    """Before any leg is asked: nothing is half done when an argument is wrong."""
    for leg in legs:
        refuse_dropped(leg.child, leg.arguments, run.config)


def _timed(run: Run, leg: LegCall, query: str, number: int) -> Answer:
    began = time.perf_counter()
    answer = run.call(leg.child, leg.question(query), tag=f"retriever_{number}", **leg.arguments)
    return _with_stage(answer, leg, time.perf_counter() - began)


async def _atimed(run: Run, leg: LegCall, query: str, number: int) -> Answer:
    began = time.perf_counter()
    answer = await run.acall(
        leg.child, leg.question(query), tag=f"retriever_{number}", **leg.arguments
    )
    return _with_stage(answer, leg, time.perf_counter() - began)


def _with_stage(answer: Answer, leg: LegCall, seconds: float) -> Answer:
    told = answer.of(answer)
    told.stages = (*answer.stages, Stage(leg.name, seconds, {"documents": len(answer)}))
    return told


def _settled(
    legs: Sequence[LegCall], outcomes: Sequence[Answer | BaseException], on_error: OnError
) -> list[Answer]:
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for failure in failures:
        if on_error == "raise" or len(failures) == len(legs) or not _may_degrade(failure):
            raise failure
    answers = []
    for leg, outcome in zip(legs, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            says = f"{leg.name} failed and was left out: {type(outcome).__name__}: {outcome}"
            logger.warning(says)
            answers.append(Answer(degraded=[says], complete=False))
        else:
            answers.append(outcome)
    return answers


def _may_degrade(error: BaseException) -> bool:
    """Whether it is the leg that failed, and not the call that was wrong."""
    if isinstance(error, ScopeError) or not isinstance(error, Exception):
        return False
    its_own = isinstance(error, (QueryError, NoDocuments))
    return its_own or not isinstance(error, UsageError)


def named(children: Sequence[RetrieverLike]) -> list[str]:
    """A name for each, unique: what it ranks by if that is known, else its own."""
    names: list[str] = []
    for child in children:
        name = _name(child)
        same = sum(1 for other in names if other == name or other.startswith(f"{name} "))
        names.append(f"{name} {same + 1}" if same else name)
    return names


def _name(child: RetrieverLike) -> str:
    child = innermost(child)
    own = getattr(child, "name", None)
    if isinstance(own, str):
        return own
    if isinstance(child, CormorantRetriever):
        return _MODES.get(child.search_type, child.search_type)
    ranks_by = getattr(type(child), "ranks_by", None)
    return ranks_by if isinstance(ranks_by, str) else child.get_name()


def own_k(child: RetrieverLike) -> int | None:
    """How many documents the retriever was told to bring when it was made; None if untold."""
    told = None
    if isinstance(child, RunnableBindingBase):
        told = child.kwargs.get("k")
        return own_k(child.bound) if told is None else told
    if isinstance(child, VectorStoreRetriever):
        told = child.search_kwargs.get("k")
    if told is None and isinstance(child, BaseRetriever) and "k" in child.model_fields_set:
        told = getattr(child, "k", None)
    return told if is_whole(told) else None


def with_k(leg: LegCall, k: int | None) -> LegCall:
    """The leg asked for ``k`` documents, or for as many as it was told if that is more."""
    if k is None:
        return leg
    told = own_k(leg.child)
    return replace(leg, arguments={**leg.arguments, "k": k if told is None else max(k, told)})
