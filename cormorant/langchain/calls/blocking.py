"""Does awaiting this only wait for a thread?

LangChain's own async methods hand sync work to asyncio's few threads, where work that overruns
its time starves the rest of the program and holds its exit up. What is only sync is better called
in a thread that can be left to itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import Any, Final, Literal, ParamSpec, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import LLM, BaseChatModel, SimpleChatModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.output_parsers import BaseLLMOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.config import get_config_list, get_executor_for_config
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from cormorant import defaults
from cormorant.langchain.calls.time_limit import Stage, limited, time_left, to_thread
from cormorant.langchain.scopes.children import innermost

__all__ = ["aeach", "aside", "awaited", "each", "only_sync"]

P = ParamSpec("P")
T = TypeVar("T")

_SHORT: Final = 50  # documents: to copy and check one takes up to a tenth of a millisecond
_SHORT_TEXT: Final = 5_000  # characters of a model's reply

_QUICK = (BasePromptTemplate, BaseLLMOutputParser, RunnablePassthrough)
_SYNC_MODELS = (BaseChatModel._agenerate, SimpleChatModel._agenerate, BaseLLM._agenerate)  # noqa: SLF001 - which async method a model has


def only_sync(child: Runnable[Any, Any]) -> bool:
    """Whether its async method is LangChain's own, which only waits for a thread.

    Of a chain: whether something in it only waits, and nothing has an async method of its own,
    which might be the only one it has.
    """
    return _ways(child) == {"sync"}


async def aside(given: object, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work of our own: at once, or in a thread where it would hold the event loop.

    Args:
        given: What is worked on, documents or what a model wrote; its length decides.
        work: What is done.
        *args: Of the work.
        **kwargs: Likewise.
    """
    text = given if isinstance(given, str) else getattr(given, "text", None)
    length, short = (len(text), _SHORT_TEXT) if isinstance(text, str) else (_count(given), _SHORT)
    if length <= short:
        return work(*args, **kwargs)
    return await to_thread(work, work, *args, **kwargs)


def _count(given: object) -> int:
    return len(given) if isinstance(given, (list, tuple, dict)) else 0


async def awaited(owner: object, method: str, *args: Any, **kwargs: Any) -> Any:
    """Await a method by its ``a…`` form; within a deadline, one that only waits, in its own thread.

    Args:
        owner: An embedder, a store of vectors or one of documents.
        method: The sync form's name.
        *args: Of the call.
        **kwargs: Likewise.

    Raises:
        DeadlineExceeded: If a deadline is in force, and it takes longer.
    """
    if time_left() is not None and _inherits(owner, f"a{method}"):
        return await to_thread(owner, getattr(owner, method), *args, **kwargs)
    return await getattr(owner, f"a{method}")(*args, **kwargs)


def _inherits(owner: object, method: str) -> bool:
    for base in (Embeddings, BaseStore, VectorStore):
        if isinstance(owner, base):
            return getattr(type(owner), method, None) is getattr(base, method)
    return False


def each(
    chain: Runnable[Any, Any],
    inputs: Sequence[Any],
    config: RunnableConfig,
    *,
    name: str,
    return_exceptions: bool = False,
) -> list[Any]:
    """What a chain makes of each input, all at once: its ``batch``, within the time left.

    Args:
        chain: Asked in threads, no more than the config's ``max_concurrency``.
        inputs: One call each.
        config: Of all calls.
        name: Named where the time is up.
        return_exceptions: Whether a failure stands in the place of an answer.

    Raises:
        DeadlineExceeded: If a deadline is in force, and one of them takes longer.
    """
    if time_left() is None or not inputs:
        return chain.batch(list(inputs), config, return_exceptions=return_exceptions)
    stage = Stage(name, innermost(chain))

    def ask(input: Any, config: RunnableConfig) -> Any:
        # A pool's thread is waited for at the program's end; one that overruns is not.
        try:
            return limited(copy_context(), lambda: chain.invoke(input, config), stage)
        except Exception as error:
            if return_exceptions:
                return error
            raise

    with get_executor_for_config(config) as executor:
        return list(executor.map(ask, inputs, get_config_list(config, len(inputs))))


async def aeach(
    chain: Runnable[Any, Any], inputs: Sequence[Any], config: RunnableConfig
) -> list[Any]:
    """Like :func:`each`, awaiting the chain: so many at once that the event loop is not held.

    A chain that is asked by the thousand answers by the thousand, each answer a fifth of a
    millisecond of LangChain's own work, all in one round of the loop.

    Args:
        chain: Asked by its ``abatch`` if all may be asked at once, else one by one.
        inputs: One call each.
        config: Of all calls. No more than its ``max_concurrency`` are asked at once; without one,
            ``defaults.CALLS_AT_ONCE``. Should one fail, those not done are cancelled.
    """
    most = config.get("max_concurrency") or defaults.CALLS_AT_ONCE
    if len(inputs) <= most:
        return await chain.abatch(list(inputs), config)
    replies: list[Any] = [None] * len(inputs)
    waiting = iter(
        zip(range(len(inputs)), inputs, get_config_list(config, len(inputs)), strict=True)
    )

    async def in_turn() -> None:
        for place, input, own in waiting:
            replies[place] = await chain.ainvoke(input, own)

    tasks = [asyncio.create_task(in_turn()) for _ in range(most)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return replies


Way = Literal["sync", "async"]


def _ways(child: Runnable[Any, Any]) -> set[Way]:
    """How the parts of it that may take long are made to be asked."""
    inner = innermost(child)
    inside = _inside(inner)
    if inside is not None:
        return {way for part in inside for way in _ways(part)}
    return set() if isinstance(inner, _QUICK) else {"sync" if _waits(inner) else "async"}


def _inside(inner: Runnable[Any, Any]) -> Iterable[Runnable[Any, Any]] | None:
    """What it is made of; None if it is one thing."""
    if isinstance(inner, RunnableSequence):
        return inner.steps
    if isinstance(inner, RunnableParallel):
        return inner.steps__.values()
    if isinstance(inner, RunnableWithFallbacks):
        return inner.runnables
    asks = getattr(type(inner), "asks", None)  # of ours, that only ask others
    return None if asks is None else asks(inner)


def _waits(inner: Runnable[Any, Any]) -> bool:
    """Whether it has no async method of its own."""
    kind: Any = type(inner)
    if isinstance(inner, RunnableLambda):
        return not hasattr(inner, "afunc")
    if isinstance(inner, VectorStoreRetriever):
        own = kind._aget_relevant_documents is not VectorStoreRetriever._aget_relevant_documents  # noqa: SLF001 - likewise
        store: Any = type(inner.vectorstore)
        return not own and store.asimilarity_search is VectorStore.asimilarity_search
    if isinstance(inner, BaseRetriever):
        return kind._aget_relevant_documents is BaseRetriever._aget_relevant_documents  # noqa: SLF001
    if isinstance(inner, LLM) and kind._agenerate is LLM._agenerate:  # noqa: SLF001
        return kind._acall is LLM._acall  # noqa: SLF001
    if isinstance(inner, (BaseChatModel, BaseLLM)):
        return kind._agenerate in _SYNC_MODELS  # noqa: SLF001
    return kind.ainvoke is Runnable.ainvoke
