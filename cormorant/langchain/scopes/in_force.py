"""Which scopes are in force for the code that runs now?

They are kept in a context variable: it reaches what is awaited, tasks, the store's threads
and those of LangChain's executors, which all take their caller's context along.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, cast

from langchain_core.runnables import RunnableConfig, ensure_config

from cormorant.errors import ScopeError, UsageError
from cormorant.langchain.scopes.carried import carried_scopes
from cormorant.store.door import Door
from cormorant.store.scope import Scope

__all__ = ["complete_config", "narrowed", "of_call", "scope_in_force", "scoping"]


def scoping(**predicates: Any) -> AbstractContextManager[None]:
    """Inside the block, every Cormorant reads and writes only what satisfies the predicates.

    Vector stores, docstores and retrievers, in chains or called directly; also in threads
    of LangChain's executors and in tasks begun inside. It narrows whatever scope there is
    already, and no config can undo it. Enter and leave it in one function; in a generator
    that yields from inside, its caller would have it too.

    Args:
        **predicates: As of :meth:`cormorant.Store.scope`; at least one.

    Raises:
        ScopeError: On a predicate that is not one, or none at all; on leaving it elsewhere
            than it was entered.

    Example:
        >>> from cormorant.langchain import Cormorant, scoping
        >>> with Cormorant(None) as vs:
        ...     for tenant in ("acme", "rival"):
        ...         with scoping(tenant=tenant):
        ...             _ = vs.add_texts([f"fish of {tenant}"])
        ...     with scoping(tenant="acme"):
        ...         [doc.page_content for doc in vs.search("fish", "text")]
        ['fish of acme']
    """
    if not predicates:
        raise ScopeError("scoping needs a predicate, such as scoping(tenant='acme'); got none.")
    Scope(predicates)  # refuses what is none, before the block
    # A list in it that grows later must not widen what was checked here.
    return _InForce([copy.deepcopy(predicates)])


def of_call(config: RunnableConfig | None) -> AbstractContextManager[None]:
    """Inside the block, the scopes of a retriever's call are in force: all those around it."""
    return _InForce(carried_scopes(config))


def complete_config(config: RunnableConfig | None) -> RunnableConfig:
    """The config with LangChain's defaults, and all scopes in force as one."""
    complete = ensure_config(config)
    scope = scope_in_force()
    if scope:
        complete["configurable"] = {**complete.get("configurable", {}), "scope": scope}
    return complete


def narrowed(door: Door) -> Door:
    """The store as the code that runs now may see it; the same object while that is the same."""
    held = _in_force.get()
    return door if held is None else held.over(door)


def scope_in_force() -> Mapping[str, Any] | None:
    """One scope that admits what all those in force admit, for others to read.

    Raises:
        ScopeError: If they cannot be written as one.
    """
    held = _in_force.get()
    return None if held is None else held.joined


class _Held:
    """Scopes in force together."""

    def __init__(self, scopes: tuple[Mapping[str, Any], ...]) -> None:
        self.scopes = scopes
        self._joined: Mapping[str, Any] | None = None
        # By identity, and holding the store, so that no other can come to have its id.
        self._views: dict[int, tuple[Door, Door]] = {}

    @property
    def joined(self) -> Mapping[str, Any]:
        if self._joined is None:
            joined = self.scopes[0]
            for scope in self.scopes[1:]:
                joined = _joined(joined, scope)
            self._joined = joined
        return self._joined

    def holds(self, scope: Mapping[str, Any]) -> bool:
        return scope is self._joined or any(scope is one for one in self.scopes)

    def over(self, door: Door) -> Door:
        known = self._views.get(id(door))
        if known is None:
            view = door
            for scope in self.scopes:
                view = view.scope(**scope)
            known = self._views.setdefault(id(door), (door, view))
            self._views[id(known[1])] = (known[1], known[1])  # is narrowed already
        return known[1]


_in_force: ContextVar[_Held | None] = ContextVar("cormorant_scopes", default=None)


class _InForce(AbstractContextManager[None]):
    """Puts scopes in force.

    No contextlib.contextmanager: that could decorate an async function, and would be left
    before the function runs.
    """

    def __init__(self, scopes: list[Mapping[str, Any]]) -> None:
        self._scopes = scopes
        self._token: Token[_Held | None] | None = None

    def __enter__(self) -> None:
        if self._token is not None:
            raise UsageError("This scoping has been entered already; make one for each block.")
        held = _in_force.get()
        fresh = [scope for scope in self._scopes if held is None or not held.holds(scope)]
        if fresh:
            for scope in fresh:
                Scope(scope)  # refuses what is none
            held = _Held((*(held.scopes if held is not None else ()), *fresh))
        self._token = _in_force.set(held)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        token, self._token = cast("Token[_Held | None]", self._token), None
        try:
            _in_force.reset(token)
        except ValueError as foreign:
            if kind is None:
                raise ScopeError(
                    "A scoping was left in another context than it was entered in, as by a "
                    "generator that yields from inside it; what ran there was not scoped. Enter "
                    "and leave it in one function."
                ) from foreign


def _joined(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scope that admits what both admit."""
    joined = dict(outer)
    for field, predicate in inner.items():
        if field not in joined or _same(joined[field], predicate):
            joined[field] = predicate
            continue
        joined[field] = _both(field, _operators(joined[field]), _operators(predicate))
    return joined


def _both(field: str, outer: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """Operators that admit what both admit."""
    clash = {op: outer[op] for op in outer if op in inner and not _same(outer[op], inner[op])}
    if not clash:
        return {**outer, **inner}
    if "$not" in inner:
        raise ScopeError(
            f"The scopes {outer!r} and {inner!r} on {field} cannot be written as one. Give {field} "
            "one predicate that says both."
        )
    # An operator stands once in a dict; what is denied twice stands beside it.
    if "$not" in outer:
        clash["$not"] = outer["$not"]
    beside = {op: value for op, value in outer.items() if op not in clash}
    return {**beside, **inner, "$not": {"$not": clash}}


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # to == True is 1


def _operators(predicate: Any) -> dict[str, Any]:
    return dict(predicate) if isinstance(predicate, Mapping) else {"$eq": predicate}
