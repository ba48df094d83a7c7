"""How is another retriever called from inside one of ours, so that nothing gets lost?

Callbacks, tags, metadata and configurable values reach it; its run is a child of ours; an
argument of the call reaches it or is refused; a request's scope reaches it or is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import patch_config, run_in_executor, set_config_context
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.utils import coro_with_context
from langchain_core.vectorstores import VectorStoreRetriever

from cormorant.errors import FilterError, ScopeError, UsageError
from cormorant.filters import parse
from cormorant.langchain.carried import scope_of
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retriever import CormorantRetriever

__all__ = ["Run", "cut", "refuse_dropped", "scope_of", "takes"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """A retriever's own run, from which it calls others.

    Attributes:
        manager: LangChain's, sync or async.
        config: Of the call, with the scope of the chain around it.
    """

    manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun
    config: RunnableConfig

    @property
    def sync(self) -> Run:
        """The same run for code that runs in a thread."""
        if isinstance(self.manager, AsyncCallbackManagerForRetrieverRun):
            return replace(self, manager=self.manager.get_sync())
        return self

    def child_config(self, tag: str | None = None) -> RunnableConfig:
        """The config for a child: a chain, a model, a retriever. Its run becomes ours' child."""
        return patch_config(self.config, callbacks=self.manager.get_child(tag))

    def within(self, work: Callable[[RunnableConfig], T], tag: str | None = None) -> T:
        """Call ``work`` with a child's config, which also holds for what it calls without one."""
        config = self.child_config(tag)
        with set_config_context(config) as context:
            return context.run(work, config)

    def call(
        self, child: RetrieverLike, query: str, *, tag: str | None = None, **arguments: Any
    ) -> Answer:
        """Ask a child.

        Args:
            child: A retriever, or any Runnable from a question to Documents.
            query: The question.
            tag: Tells this child's run from its siblings'.
            **arguments: ``k``, ``filter``, …; one that is None is not passed.

        Returns:
            Copies of its documents, with the scores it gave.

        Raises:
            UsageError: If the child takes no such argument.
            ScopeError: If there is a scope, and the child cannot see it.
            FilterError: If the child took the filter and returned what it excludes.
        """
        passed = _arguments(child, arguments, self.config)
        found = self.within(lambda config: child.invoke(query, config, **passed), tag)
        return _checked(found, child, arguments, scope_of(self.config))

    async def acall(
        self, child: RetrieverLike, query: str, *, tag: str | None = None, **arguments: Any
    ) -> Answer:
        """Like :meth:`call`, awaiting the child's own async method."""
        if _only_sync_takes(child, arguments):
            return await run_in_executor(
                None, lambda: self.sync.call(child, query, tag=tag, **arguments)
            )
        passed = _arguments(child, arguments, self.config)
        config = self.child_config(tag)
        with set_config_context(config) as context:
            coro = context.run(child.ainvoke, query, config, **passed)
            found = await coro_with_context(coro, context, create_task=True)
        return _checked(found, child, arguments, scope_of(self.config))


def takes(child: Runnable[Any, Any], name: str) -> bool:
    """Whether an argument of this name, given to ``child.invoke``, reaches a search.

    LangChain's own retrievers drop what they do not take without a word.
    """
    return _refusal(child, name) is None


def refuse_dropped(child: Runnable[Any, Any], arguments: Mapping[str, Any]) -> None:
    """Refuse an argument that would not reach a search.

    Raises:
        UsageError: Naming who would drop it.
    """
    for name, value in arguments.items():
        refusal = None if value is None else _refusal(child, name)
        if refusal is not None:
            raise UsageError(
                f"{name}={value!r} was given with the call, and {refusal} takes no {name}: "
                "LangChain would drop it without a word. Set it on that retriever, or give one "
                "whose invoke takes it."
            )


def _refusal(child: Runnable[Any, Any], name: str) -> str | None:
    """Who would drop the argument, or None."""
    for inner in _inside(child):
        if inner is not child:
            refusal = _refusal(inner, name)
            if refusal is not None:
                return refusal
        elif not _takes_itself(child, name):
            return child.get_name()
    return None


def _inside(child: Runnable[Any, Any]) -> list[Runnable[Any, Any]]:
    """The runnables that get the arguments given to this one."""
    if isinstance(child, RunnableBindingBase):
        return [child.bound]
    if isinstance(child, RunnableWithFallbacks):
        return list(child.runnables)
    if isinstance(child, RunnableSequence):
        return [child.first]
    if isinstance(child, DynamicRunnable):
        return [child.prepare()[0]]
    return [child]


def _takes_itself(child: Runnable[Any, Any], name: str) -> bool:
    accepts = getattr(child, "accepts", None)  # one of ours; it asks its own children
    if callable(accepts):
        return bool(accepts(name))
    if isinstance(child, CormorantRetriever):
        return True  # it refuses by itself, and says what it takes
    if isinstance(child, BaseRetriever):
        asked: Callable[..., Any] = child._get_relevant_documents  # noqa: SLF001 - its signature
    elif isinstance(child, RunnableLambda):
        asked = child.func if hasattr(child, "func") else child.afunc
    else:
        return False
    parameters = inspect.signature(asked).parameters
    return name in parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _only_sync_takes(child: Runnable[Any, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether LangChain's own async method stands before one that takes arguments.

    It takes none, and would fail on them.
    """
    return (
        isinstance(child, BaseRetriever)
        and any(value is not None for value in arguments.values())
        and type(child)._aget_relevant_documents is BaseRetriever._aget_relevant_documents  # noqa: SLF001
    )


def _arguments(
    child: Runnable[Any, Any], arguments: Mapping[str, Any], config: RunnableConfig
) -> dict[str, Any]:
    """What is passed to ``child.invoke``."""
    if scope_of(config):
        _require_scope(child)
    refuse_dropped(child, arguments)
    passed = {name: value for name, value in arguments.items() if value is not None}
    if "filter" in passed:
        passed["filter"] = _narrowed(child, passed["filter"])
    return passed


def _narrowed(child: Runnable[Any, Any], filter: Any) -> Any:
    """LangChain's retriever lets the call's filter replace its own; here both hold."""
    if isinstance(child, RunnableBindingBase):
        own = child.kwargs.get("filter")
        return _narrowed(child.bound, filter if own is None else both(own, filter))
    if isinstance(child, VectorStoreRetriever) and not isinstance(child, CormorantRetriever):
        own = child.search_kwargs.get("filter")
        return filter if own is None else both(own, filter)
    return filter


def _require_scope(child: Runnable[Any, Any]) -> None:
    """A retriever that has LangChain's own invoke never sees the config, so no scope either."""
    for inner in _inside(child):
        if inner is not child:
            _require_scope(inner)
        elif isinstance(child, BaseRetriever) and type(child).invoke is BaseRetriever.invoke:
            raise ScopeError(
                f"The request has a scope, and {child.get_name()} cannot see it, so it would "
                "return documents from outside. Use a retriever over Cormorant, or leave that "
                "one out of scoped requests."
            )


def _checked(
    found: object,
    child: Runnable[Any, Any],
    arguments: Mapping[str, Any],
    scope: Mapping[str, Any] | None,
) -> Answer:
    if isinstance(found, list) and not isinstance(found, Answer):
        # Chains of old end in strings.
        found = [Document(page_content=each) if isinstance(each, str) else each for each in found]
    if not isinstance(found, list) or not all(isinstance(each, Document) for each in found):
        raise UsageError(
            f"{child.get_name()} must return a list of Documents; it returned "
            f"{type(found).__name__}."
        )
    answer = Answer.taken(found)
    if scope and not isinstance(child, CormorantRetriever):
        inside = parse(scope)
        outside = [document for document in answer if not inside.matches(document.metadata)]
        if outside:
            raise ScopeError(
                f"The request's scope is {dict(scope)!r}, and {child.get_name()} returned "
                f"{len(outside)} of {len(answer)} documents from outside. Nothing is returned. "
                "Use a retriever over Cormorant, and keep the scope's fields in the metadata."
            )
    filter = arguments.get("filter")
    admits = None if filter is None else _judge(filter)
    if admits is not None and not isinstance(child, CormorantRetriever):
        outside = [document for document in answer if not admits(document)]
        if outside:
            raise FilterError(
                f"{child.get_name()} took the filter {filter!r} and returned "
                f"{len(outside)} of {len(answer)} documents that it excludes. Nothing is "
                "returned. Give a retriever that applies filters."
            )
    k = arguments.get("k")
    return answer if k is None else cut(answer, k)


def cut(answer: Answer, k: int) -> Answer:
    """The k best of an Answer."""
    return answer.of(answer[:k])


def _judge(filter: Any) -> Callable[[Document], bool] | None:
    """Whether a document satisfies the filter, where that can be told from here."""
    if isinstance(filter, Mapping):
        if any(isinstance(value, (list, tuple)) for value in filter.values()):
            return None  # another dialect: membership, in FAISS
        try:
            parsed = parse(filter)
        except FilterError:
            return None
        return None if parsed.uses_text else (lambda document: parsed.matches(document.metadata))
    return filter if callable(filter) else None
