"""Which scopes does a request carry in its configs, its own and those around it?

LangChain lets an inner config's ``configurable`` replace the outer one as a whole, so a
scope set by an outer chain is gone from the config once an inner chain has one of its own.
What LangChain does hand on, and adds to instead of replacing it, are callback handlers. So
whenever a run is configured, the scopes of the config around it are noted in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import override

from cormorant.errors import ScopeError, UsageError

__all__ = ["carried_scopes", "scope_of"]


def scope_of(config: RunnableConfig | None) -> Mapping[str, Any] | None:
    """The scope that stands in this config.

    Raises:
        ScopeError: If it is not one.
    """
    return _judged(_raw(config))


def carried_scopes(config: RunnableConfig | None) -> list[Mapping[str, Any]]:
    """All scopes a call is under, outermost first: of the chains around it, and its own.

    Raises:
        ScopeError: If one of them is not one.
        UsageError: If the config is not one.
    """
    _check_config(config)
    around = var_child_runnable_config.get()
    own = ensure_config(config)  # a scope beside `configurable` ends up in it
    known = _union(_noted(around), [_raw(around)], _noted(own), [_raw(own)])
    return [scope for scope in map(_judged, known) if scope]


class _Note(BaseCallbackHandler):
    """Carries scopes from a run to the runs inside; hears nothing."""

    run_inline = True  # elsewhere LangChain would take a thread for each event
    ignore_llm = ignore_chain = ignore_agent = ignore_retriever = property(lambda _: True)
    ignore_chat_model = ignore_retry = ignore_custom_event = property(lambda _: True)

    def __init__(self, scopes: list[Any]) -> None:
        self.scopes = scopes

    @override
    def __repr__(self) -> str:
        return "<cormorant scopes of the chain around>"


class _Around:
    """What LangChain asks, at every start of a run, for a handler to add to it.

    It stands where a ContextVar does: the answer depends on LangChain's own.
    """

    name = "cormorant_scopes_around"

    def get(self) -> _Note | None:
        """A note of the scopes around the run that starts; None if there are none."""
        around = var_child_runnable_config.get()
        if not around:
            return None
        notes = _notes(around)
        scopes = _union(*(note.scopes for note in notes), [_raw(around)])
        if not scopes:
            return None
        # One that says all of it already is handed on by LangChain: not one more per level.
        whole = (note for note in notes if len(note.scopes) == len(scopes))
        return next(whole, None) or _Note(scopes)


# At import, since it must stand before the outermost chain starts, and none of ours runs
# there. Without a scope in a config it adds nothing to anyone's run.
register_configure_hook(cast("ContextVar[Any]", _Around()), inheritable=True)


def _notes(config: RunnableConfig | None) -> list[_Note]:
    callbacks = (config or {}).get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = [*callbacks.inheritable_handlers, *callbacks.handlers]
    return [each for each in callbacks or () if isinstance(each, _Note)]


def _noted(config: RunnableConfig | None) -> list[Any]:
    return _union(*(note.scopes for note in _notes(config)))


def _raw(config: RunnableConfig | None) -> Any:
    configurable = (config or {}).get("configurable")
    return configurable.get("scope") if isinstance(configurable, Mapping) else None


def _union(*several: list[Any]) -> list[Any]:
    """All that were set, each object once: LangChain copies a config, not what is in it."""
    known: list[Any] = []
    for scope in (each for scopes in several for each in scopes):
        if scope is not None and not any(scope is one for one in known):
            known.append(scope)
    return known


def _judged(scope: Any) -> Mapping[str, Any] | None:
    if scope is None:
        return None
    if not isinstance(scope, Mapping) or not all(isinstance(name, str) for name in scope):
        raise ScopeError(
            'config["configurable"]["scope"] must be a dict of predicates such as '
            f"{{'tenant': 'acme'}}; got {scope!r}."
        )
    return scope


def _check_config(config: object) -> None:
    """Refuse here what LangChain would stumble over."""
    if config is not None and not isinstance(config, Mapping):
        raise UsageError(
            'config must be a dict such as {"configurable": {…}}; got a '
            f"{type(config).__name__}."
        )
    for name in ("configurable", "metadata"):
        value = (config or {}).get(name)
        if value is not None and not isinstance(value, Mapping):
            raise UsageError(f"config[{name!r}] must be a dict; got {value!r}.")
    callbacks = (config or {}).get("callbacks")
    if callbacks is not None and not isinstance(callbacks, (list, BaseCallbackManager)):
        raise UsageError(
            f"config['callbacks'] must be a list of handlers, or a manager; got {callbacks!r}."
        )
    most = (config or {}).get("max_concurrency")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise UsageError(
            f"config['max_concurrency'] must be a whole number of at least 1; got {most!r}."
        )
    tags = (config or {}).get("tags")
    if tags is not None and not isinstance(tags, list):
        raise UsageError(f"config['tags'] must be a list of strings; got {tags!r}.")
