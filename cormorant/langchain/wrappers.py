"""What do LangChain's wrappers around a retriever of ours keep? Scores, filters, scopes.

LangChain's own forward ``retrieve`` past themselves, let a call's filter replace a bound one, and
do not tell that a fallback answered. Those made by our retrievers are subclasses that do not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar, cast

from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry
from typing_extensions import override

from cormorant.langchain import provenance
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer
from cormorant.langchain.scopes.carried import scope_of
from cormorant.langchain.scopes.children import checked, passed, takes
from cormorant.langchain.scopes.in_force import complete_config, of_call
from cormorant.model import Result

__all__ = ["Bound", "Fallback", "Retrieving", "Retrying", "WithFallbacks", "Wrapper"]

logger = logging.getLogger(__name__)

W = TypeVar("W", bound="Retrieving")


class Retrieving(Runnable[Any, Any]):
    """From a question to documents, and to a Result, through whatever wrappers."""

    def retrieve(self, query: str, config: RunnableConfig | None = None, **kwargs: Any) -> Result:
        """Find documents, and return hits: scores, legs, each one's journey.

        Args:
            query: The question.
            config: LangChain's.
            **kwargs: What ``invoke`` takes.
        """
        return provenance.result(checked(self.invoke(query, config, **kwargs), self, {}, None))

    async def aretrieve(
        self, query: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Result:
        """Like :meth:`retrieve`, without holding the event loop."""
        found = await self.ainvoke(query, config, **kwargs)
        return await aside(found, lambda: provenance.result(checked(found, self, {}, None)))

    @override
    def bind(self, **kwargs: Any) -> Bound:
        """The same with arguments for every call; a call's filter is AND-ed with a bound one."""
        return _as(Bound, super().bind(**kwargs))

    @override
    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Bound:
        """The same with a config for every call."""
        return _as(Bound, super().with_config(config, **kwargs))

    @override
    def with_types(self, input_type: Any = None, output_type: Any = None) -> Bound:
        """The same with types told; the arguments are LangChain's."""
        made = super().with_types(input_type=input_type, output_type=output_type)
        return _as(Bound, made)

    @override
    def with_listeners(self, **kwargs: Any) -> Bound:
        """The same with listeners to its runs; the arguments are LangChain's."""
        return _as(Bound, super().with_listeners(**kwargs))

    @override
    def with_alisteners(self, **kwargs: Any) -> Bound:
        """The same with async listeners to its runs; the arguments are LangChain's."""
        return _as(Bound, super().with_alisteners(**kwargs))

    @override
    def with_retry(self, **kwargs: Any) -> Retrying | Bound:
        """The same, asked again when it fails; the arguments are LangChain's."""
        return cast("Retrying | Bound", _as(Retrying, super().with_retry(**kwargs)))

    @override
    def with_fallbacks(
        self,
        fallbacks: Sequence[Runnable[Any, Any]],
        *,
        exceptions_to_handle: tuple[type[BaseException], ...] = (Exception,),
        exception_key: str | None = None,
    ) -> WithFallbacks:
        """The same, with others that answer when it fails, in the same scope.

        That another answered stands in ``degraded``. One that cannot see the request's scope, or
        does not take an argument of the call, is refused when its turn comes.

        Args:
            fallbacks: Retrievers, or Runnables from a question to Documents.
            exceptions_to_handle: Those on which the next is asked.
            exception_key: LangChain's.
        """
        shown = getattr(self, "with_scores", None) is True
        return WithFallbacks(
            runnable=self,
            fallbacks=[
                Fallback(bound=each, instead_of=self.get_name(), with_scores=shown)
                for each in fallbacks
            ],
            exceptions_to_handle=exceptions_to_handle,
            exception_key=exception_key,
        )


class Wrapper(Retrieving):
    """Around one runnable, and never past: all ways of calling it lead through ``invoke``."""

    bound: Runnable[Any, Any]

    batch = Runnable.batch
    abatch = Runnable.abatch
    batch_as_completed = Runnable.batch_as_completed
    abatch_as_completed = Runnable.abatch_as_completed
    stream = Runnable.stream
    astream = Runnable.astream
    astream_events = Runnable.astream_events
    astream_log = Runnable.astream_log
    transform = Runnable.transform
    atransform = Runnable.atransform

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """No: LangChain would look for it among its own."""
        return False


class Bound(Wrapper, RunnableBinding[Any, Any]):
    """A retriever with arguments and a config for every call."""

    keeps_its_filter: ClassVar[bool] = True
    """A filter of the call does not take the place of its own."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As the retriever's; a scope bound to it holds beside the call's."""
        with of_call(self.config):
            return RunnableBinding.invoke(self, input, config, **self._narrowed(kwargs))

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Like :meth:`invoke`, without holding the event loop."""
        with of_call(self.config):
            return await RunnableBinding.ainvoke(self, input, config, **self._narrowed(kwargs))

    def _narrowed(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("filter") is None or self.kwargs.get("filter") is None:
            return given
        return {**given, "filter": both(self.kwargs["filter"], given["filter"])}


class Retrying(Retrieving, RunnableRetry[Any, Any]):
    """A retriever that is asked again when it fails."""


class Fallback(Wrapper, RunnableBindingBase[Any, Any]):
    """One that answers in the place of a retriever that failed.

    Args:
        bound: The one that answers.
        instead_of: The name of the one that failed.
        with_scores: Whether that one puts scores into metadata.
    """

    instead_of: str
    with_scores: bool = False

    def accepts(self, name: str) -> bool:
        """Whether a call's argument of this name reaches a search."""
        return name == "with_scores" or takes(self.bound, name)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Answer:
        """Answer in the scope and with the arguments of the call, or refuse to."""
        with of_call(config):
            config = complete_config(config)
            given, shown = self._given(kwargs, config)
            found = self.bound.invoke(input, self._merge_configs(config), **given)
            return self._told(found, kwargs, config, shown=shown)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answer:
        """Like :meth:`invoke`, without holding the event loop."""
        with of_call(config):
            config = complete_config(config)
            given, shown = self._given(kwargs, config)
            found = await self.bound.ainvoke(input, self._merge_configs(config), **given)
            return await aside(found, self._told, found, kwargs, config, shown=shown)

    def _given(self, kwargs: dict[str, Any], config: RunnableConfig) -> tuple[dict[str, Any], bool]:
        kwargs = dict(kwargs)
        shown = kwargs.pop("with_scores", None)
        return passed(self.bound, kwargs, config), self.with_scores if shown is None else bool(
            shown
        )

    def _told(
        self, found: Any, kwargs: dict[str, Any], config: RunnableConfig, *, shown: bool
    ) -> Answer:
        says = f"{self.instead_of} failed, and {self.bound.get_name()} answered in its place."
        logger.warning(says)
        answer = checked(found, self.bound, kwargs, scope_of(config)).degrading(says)
        return provenance.with_scores(answer) if shown else answer


class WithFallbacks(Retrieving, RunnableWithFallbacks[Any, Any]):
    """A retriever, and others that answer when it fails."""

    @classmethod
    @override
    def is_lc_serializable(cls) -> bool:
        """No: LangChain would look for it among its own."""
        return False


def _as(kind: type[W], made: Any) -> W:
    """What LangChain made, as ours of that kind; as it is, if it is ours."""
    if isinstance(made, Retrieving):
        return cast("W", made)
    fields = {name: getattr(made, name) for name in type(made).model_fields if name != "name"}
    return kind(**fields)
