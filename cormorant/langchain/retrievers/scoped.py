"""What may this request see? One retriever, and a narrower one for each request."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import ConfigurableFieldSpec
from pydantic import Field
from typing_extensions import override

from cormorant.errors import ScopeError
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.asking.chain import check_retriever
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, takes
from cormorant.langchain.scopes.in_force import scope_in_force, scoping
from cormorant.store.scope import Scope

__all__ = ["ScopedRetriever"]


class ScopedRetriever(Retriever):
    """A retriever that finds nothing outside a scope, whatever it is asked.

    Made once with ``required``, it hands out a retriever for each request. The scope narrows every
    Cormorant below, AND-ed with those around the call; a retriever that cannot see it is refused.

    Args:
        retriever: Any retriever or Runnable from a question to Documents.
        scope: Predicates, as of ``store.scope``: ``{"tenant": "acme", "acl": {"$any": […]}}``.
        scope_from: Makes further predicates of a call's config, such as of the user's name in it.
        required: Fields that must be in the scope of a call by then, from wherever they come.
        k: Documents wanted; by default what the retriever brings.

    A call takes what the retriever takes.

    Raises:
        UsageError: On an argument nobody reads.
        ScopeError: On a predicate that is none; in a call, if a required field is missing.

    Example:
        >>> from cormorant.langchain import Cormorant
        >>> metadatas = [{"tenant": "acme"}, {"tenant": "rival"}]
        >>> with Cormorant.from_texts(["a fish", "two fish"], None, metadatas) as vs:
        ...     safe = ScopedRetriever(
        ...         retriever=vs.as_retriever(search_type="text"), required=["tenant"]
        ...     )
        ...     [doc.page_content for doc in safe.for_request(tenant="acme").invoke("fish")]
        ['a fish']
    """

    retriever: RetrieverLike
    scope: Mapping[str, Any] = Field(default_factory=dict)
    scope_from: Callable[[RunnableConfig], Mapping[str, Any]] | None = None
    required: tuple[str, ...] = ()
    k: int | None = None

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")

    def __init__(self, **values: Any) -> None:
        check_retriever(values.get("retriever"))
        values["scope"] = _checked(values.get("scope") or {})
        required = values.get("required") or ()
        if isinstance(required, str) or not isinstance(required, Iterable):
            raise ScopeError(f"required must be a list of field names; got {required!r}.")
        values["required"] = tuple(required)
        if values.get("k") is not None:
            check_k(values["k"])
        super().__init__(**values)

    def for_request(self, **predicates: Any) -> ScopedRetriever:
        """The same retriever in a narrower scope: these predicates and those it has.

        Raises:
            ScopeError: On a predicate that is none: an unset variable is no scope.
        """
        _checked(predicates)
        if not predicates:
            raise ScopeError("for_request needs a predicate, such as tenant='acme'; got none.")
        return ScopedRetriever(
            retriever=self, scope=predicates, with_scores=self.with_scores, name=self.name
        )

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The retriever's configurable fields."""
        return self.retriever.config_specs

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call's argument of this name reaches the retriever."""
        return super().accepts(name) and (name == "with_scores" or takes(self.retriever, name))

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        asked = {"k": self.k, **asked}
        further = self._further(run)
        if not self.scope and not further:
            return self._inside(run).call(self.retriever, query, tag="retriever", **asked)
        with scoping(**(self.scope or further)), scoping(**(further or self.scope)):
            return self._inside(run).call(self.retriever, query, tag="retriever", **asked)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        asked = {"k": self.k, **asked}
        further = self._further(run)
        if not self.scope and not further:
            return await self._inside(run).acall(self.retriever, query, tag="retriever", **asked)
        with scoping(**(self.scope or further)), scoping(**(further or self.scope)):
            return await self._inside(run).acall(self.retriever, query, tag="retriever", **asked)

    def _further(self, run: Run) -> Mapping[str, Any]:
        if self.scope_from is None:
            return {}
        made = self.scope_from(run.config)
        if not isinstance(made, Mapping):
            raise ScopeError(f"scope_from must return a dict of predicates; it returned {made!r}.")
        return _checked(made)

    def _inside(self, run: Run) -> Run:
        """The run with the scope now in force in its config, for children that look there."""
        scope = scope_in_force() or {}
        missing = [field for field in self.required if field not in scope]
        if missing:
            raise ScopeError(
                f"This retriever requires a scope on {', '.join(missing)}; the call has "
                f"{dict(scope) or 'none'}. Use for_request({missing[0]}=…), or "
                'config["configurable"]["scope"].'
            )
        if not scope:
            return run
        config: RunnableConfig = {
            **run.config,
            "configurable": {**run.config.get("configurable", {}), "scope": scope},
        }
        return replace(run, config=config)


def _checked(predicates: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(predicates, Mapping):
        raise ScopeError(
            f"A scope is a dict of predicates, such as {{'tenant': 'acme'}}; got {predicates!r}."
        )
    Scope(predicates)
    # A list in it that grows later must not widen what was checked here.
    return copy.deepcopy(dict(predicates))
