"""How is another retriever called from inside one of ours, so that nothing gets lost?

Callbacks, tags, metadata and configurable values reach it; its run is a child of ours; an
argument of the call reaches it or is refused; a request's scope reaches it or is refused; and
of the time that a deadline leaves, it gets a share.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config, set_config_context

from cormorant import defaults
from cormorant.langchain.calls.blocking import aside, only_sync
from cormorant.langchain.calls.time_limit import (
    Stage,
    alimited,
    limited,
    limited_in_thread,
    time_left,
)
from cormorant.langchain.large_k import mark_inner
from cormorant.langchain.provenance import Answer
from cormorant.langchain.scopes.carried import scope_of
from cormorant.langchain.scopes.children import (
    checked,
    cut,
    innermost,
    passed,
    refuse_dropped,
    takes,
)

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

    def within(
        self,
        work: Callable[[RunnableConfig], T],
        tag: str | None = None,
        *,
        who: Any,
        name: str | None = None,
        share: float | None = None,
    ) -> T:
        """Call ``work`` with a child's config, which also holds for what it calls without one.

        Args:
            work: Calls the child.
            tag: Tells this child's run from its siblings'.
            who: The child.
            name: Of it, where an error names it; its ``get_name()`` by default.
            share: The part it may take of the time left, if a deadline is in force; None:
                ``defaults.STAGE_SHARE``.

        Raises:
            DeadlineExceeded: If it takes longer.
        """
        config = self.child_config(tag)
        with set_config_context(config) as context:
            mark_inner(context)
            return limited(context, lambda: work(config), _stage(who, name, share))

    async def awithin(
        self,
        work: Callable[[RunnableConfig], Awaitable[T]],
        tag: str | None = None,
        *,
        who: Any,
        name: str | None = None,
        share: float | None = None,
    ) -> T:
        """Like :meth:`within`, for what is awaited."""
        config = self.child_config(tag)
        with set_config_context(config) as context:
            mark_inner(context)
            return await alimited(context, lambda: work(config), _stage(who, name, share))

    async def in_thread(
        self,
        work: Callable[[RunnableConfig], T],
        tag: str | None = None,
        *,
        who: Any,
        name: str | None = None,
        share: float | None = None,
    ) -> T:
        """Like :meth:`within`, for sync work that is asked for on the event loop."""
        config = self.sync.child_config(tag)
        with set_config_context(config) as context:
            mark_inner(context)
            return await limited_in_thread(context, lambda: work(config), _stage(who, name, share))

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
            UsageError: If the child takes no such argument, or returned no list of Documents.
            ScopeError: If there is a scope, and the child cannot see it.
            FilterError: If the child took the filter and returned what it excludes.
            DeadlineExceeded: If a deadline is in force, and the child took longer.
        """
        given = passed(child, arguments, self.config)
        found = self.within(lambda config: child.invoke(query, config, **given), tag, who=child)
        return checked(found, child, arguments, scope_of(self.config))

    async def acall(
        self, child: RetrieverLike, query: str, *, tag: str | None = None, **arguments: Any
    ) -> Answer:
        """Like :meth:`call`, awaiting the child's own async method."""
        given = passed(child, arguments, self.config)
        # LangChain's async method of a retriever that has none takes no arguments, and its thread
        # would be one of asyncio's few: one that overruns must not keep it.
        if only_sync(child) and (given or time_left() is not None):
            found = await self.in_thread(
                lambda config: child.invoke(query, config, **given), tag, who=child
            )
        else:
            found = await self.awithin(
                lambda config: child.ainvoke(query, config, **given), tag, who=child
            )
        return await aside(found, checked, found, child, arguments, scope_of(self.config))


def _stage(who: Any, name: str | None = None, share: float | None = None) -> Stage:
    part = defaults.STAGE_SHARE if share is None else share
    return Stage(name or who.get_name(), innermost(who), share=part)
