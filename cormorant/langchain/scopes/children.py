"""Do a call's arguments and a request's scope reach a search, and did it keep to them?

Asked of whatever runnable is called for documents: retrievers, LangChain's wrappers around them,
sequences, functions. What LangChain would drop without a word is refused, before and after.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.structured_query import FilterDirective, StructuredQuery
from langchain_core.vectorstores import VectorStoreRetriever

from cormorant.errors import FilterError, ScopeError, UsageError
from cormorant.filters import parse
from cormorant.langchain.filtering import both, engine_filter
from cormorant.langchain.provenance import Answer
from cormorant.langchain.scopes.carried import scope_of

__all__ = [
    "NoDocuments",
    "checked",
    "cut",
    "innermost",
    "judge",
    "passed",
    "refuse_dropped",
    "takes",
]


class NoDocuments(UsageError):
    """What was called for documents returned something else."""


def takes(child: Runnable[Any, Any], name: str, config: RunnableConfig | None = None) -> bool:
    """Whether an argument of this name, given to ``child.invoke``, reaches a search.

    LangChain's own retrievers drop what they do not take without a word.
    """
    return _refusal(child, name, config) is None


def refuse_dropped(
    child: Runnable[Any, Any], arguments: Mapping[str, Any], config: RunnableConfig | None = None
) -> None:
    """Refuse an argument that would not reach a search.

    Args:
        child: What is called.
        arguments: Of the call; one that is None counts as not given.
        config: Of the call; it may choose among alternatives.

    Raises:
        UsageError: Naming who would drop it.
    """
    for name, value in arguments.items():
        refusal = None if value is None else _refusal(child, name, config)
        if refusal is not None:
            raise UsageError(
                f"{name}={value!r} was given with the call, and {refusal} takes no {name}: "
                "LangChain would drop it without a word. Set it on that retriever, or give one "
                "whose invoke takes it."
            )


def passed(
    child: Runnable[Any, Any], arguments: Mapping[str, Any], config: RunnableConfig
) -> dict[str, Any]:
    """What is passed to ``child.invoke``: the arguments given, the filter beside its own.

    Raises:
        UsageError: If one would be dropped.
        ScopeError: If there is a scope, and the child cannot see it.
        FilterError: If the filter would take the place of one the child was made with.
    """
    if scope_of(config):
        _require_scope(child, config)
    refuse_dropped(child, arguments, config)
    given = {name: value for name, value in arguments.items() if value is not None}
    if "filter" in given:
        given["filter"] = _narrowed(child, given["filter"], config)
    return given


def checked(
    found: object,
    child: Runnable[Any, Any],
    arguments: Mapping[str, Any],
    scope: Mapping[str, Any] | None,
) -> Answer:
    """Copies of what a child returned, if it kept to the call's scope, filter and ``k``.

    Raises:
        NoDocuments: If it is no list of Documents.
        ScopeError: If a document is from outside the scope.
        FilterError: If the filter excludes one.
    """
    if isinstance(found, list) and not isinstance(found, Answer):
        # Chains of old end in strings.
        found = [Document(page_content=each) if isinstance(each, str) else each for each in found]
    if not isinstance(found, list):
        raise _no_documents(child, f"a {type(found).__name__}")
    for place, each in enumerate(found, start=1):
        if not isinstance(each, Document):
            raise _no_documents(child, f"a list whose number {place} is a {type(each).__name__}")
    answer = Answer.taken(found)
    if not getattr(type(child), "filters_itself", False):
        if scope:
            inside = parse(scope)
            outside = [document for document in answer if not inside.matches(document.metadata)]
            if outside:
                raise ScopeError(
                    f"The request's scope is {dict(scope)!r}, and {child.get_name()} returned "
                    f"{len(outside)} of {len(answer)} documents from outside. Nothing is returned. "
                    "Use a retriever over Cormorant, and keep the scope's fields in the metadata."
                )
        admits = judge(arguments.get("filter"))
        outside = [] if admits is None else [each for each in answer if not admits(each)]
        if outside:
            raise FilterError(
                f"{child.get_name()} took the filter {arguments['filter']!r} and returned "
                f"{len(outside)} of {len(answer)} documents that it excludes. Nothing is "
                "returned. Give a retriever that applies filters."
            )
    k = arguments.get("k")
    return answer if k is None else cut(answer, k)


def cut(answer: Answer, k: int) -> Answer:
    """The k best of an Answer."""
    return answer.of(answer[:k])


def innermost(child: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """What stands inside LangChain's wrappers: of ``with_retry``, ``bind``, ``with_config``."""
    while isinstance(child, RunnableBindingBase):
        child = child.bound
    return child


def _refusal(
    child: Runnable[Any, Any], name: str, config: RunnableConfig | None = None
) -> str | None:
    """Who would drop the argument, or None."""
    for inner in _inside(child, config):
        if inner is not child:
            refusal = _refusal(inner, name, config)
            if refusal is not None:
                return refusal
        elif not _takes_itself(child, name):
            return child.get_name()
    return None


def _inside(
    child: Runnable[Any, Any], config: RunnableConfig | None = None
) -> list[Runnable[Any, Any]]:
    """The runnables that get the arguments given to this one."""
    if hasattr(type(child), "accepts"):
        return [child]
    if isinstance(child, RunnableBindingBase):
        return [child.bound]
    if isinstance(child, RunnableWithFallbacks):
        return list(child.runnables)
    if isinstance(child, RunnableSequence):
        return [child.first]
    if isinstance(child, DynamicRunnable):
        return [child.prepare(config)[0]]
    return [child]


def _takes_itself(child: Runnable[Any, Any], name: str) -> bool:
    # Of the type: LangChain's wrappers hand on attributes of what they are around.
    if hasattr(type(child), "accepts"):  # one of ours; it asks its own children
        accepts: Callable[[str], bool] = child.accepts  # type: ignore[attr-defined]
        return bool(accepts(name))
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


def _narrowed(child: Runnable[Any, Any], filter: Any, config: RunnableConfig) -> Any:
    """LangChain lets the call's filter replace a retriever's own; here both hold."""
    if isinstance(child, RunnableBindingBase) and not hasattr(type(child), "accepts"):
        keeps = getattr(type(child), "keeps_its_filter", False)
        own = None if keeps else child.kwargs.get("filter")
        return _narrowed(child.bound, filter if own is None else both(own, filter), config)
    inside = _inside(child, config)
    if inside != [child]:
        narrowed = [_narrowed(inner, filter, config) for inner in inside]
        if len(narrowed) > 1 and any(each is not filter for each in narrowed):
            raise FilterError(
                f"{child.get_name()} falls back to another retriever, and one of them was made "
                "with a filter, which LangChain would replace by the call's. Use with_fallbacks "
                "of a retriever of this package, which keeps both."
            )
        return narrowed[0]
    if isinstance(child, VectorStoreRetriever) and not hasattr(type(child), "accepts"):
        own = child.search_kwargs.get("filter")
        return filter if own is None else both(own, filter)
    return filter


def _require_scope(child: Runnable[Any, Any], config: RunnableConfig) -> None:
    """A retriever that has LangChain's own invoke never sees the config, so no scope either."""
    for inner in _inside(child, config):
        if inner is not child:
            _require_scope(inner, config)
        elif isinstance(child, BaseRetriever) and type(child).invoke is BaseRetriever.invoke:
            raise ScopeError(
                f"The request has a scope, and {child.get_name()} cannot see it, so it would "
                "return documents from outside. Use a retriever over Cormorant, or leave that "
                "one out of scoped requests."
            )


def _no_documents(child: Runnable[Any, Any], got: str) -> NoDocuments:
    return NoDocuments(f"{child.get_name()} must return a list of Documents; it returned {got}.")


def judge(filter: Any) -> Callable[[Document], bool] | None:
    """Whether a document satisfies the filter, where that can be told from here."""
    if isinstance(filter, (StructuredQuery, FilterDirective)):
        filter = engine_filter(filter)
    if isinstance(filter, Mapping):
        if any(isinstance(value, (list, tuple)) for value in filter.values()):
            return None  # another dialect: membership, in FAISS
        try:
            parsed = parse(filter)
        except FilterError:
            return None
        return None if parsed.uses_text else (lambda document: parsed.matches(document.metadata))
    return filter if callable(filter) else None
