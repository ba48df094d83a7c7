"""How is a store with one configuration asked?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from cormorant.errors import UsageError
from cormorant.model import Query, Result, StoreProtocol, VectorLike
from cormorant.store import ScopedStore
from cormorant.store.door import Door

__all__ = ["Embed", "StoreSystem", "store_settings"]

Embed = Callable[[str], VectorLike]
"""A query's text to its vector."""

_FIELDS: Final = frozenset(Query.__dataclass_fields__) - {
    "text",
    "vector",
    "top_k",
    "explain",
    "with_vectors",
}
# Evidence says why it ranks so, not how. A fingerprint is long, and the name of its embedder says
# the same to a reader.
_NOT_RANKING: Final = frozenset({"fingerprint", "evidence"})
_TEXT_ALONE: Final = (
    "searched by text alone: the store has vectors, but embed was not given; to mean it, say "
    "mode='text'"
)


class StoreSystem:
    """A store, asked in one way; a callable from text to Result.

    Args:
        store: A store or a scoped view.
        k: Hits wanted.
        config: Fields of :class:`~cormorant.model.Query` other than text, vector and top_k:
            mode, filter, fusion, weights, rrf_k, fetch_k, min_score, mmr_lambda.
        embed: Makes a query's vector: a function, or an object with ``embed_query``. Without
            it the text leg answers alone, and the answers say so if the store has vectors and
            no mode was named.

    Raises:
        UsageError: On a field that is none, or a mode that needs an embedder and has none.
    """

    def __init__(
        self,
        store: StoreProtocol | Door,
        *,
        k: int,
        config: Mapping[str, Any] | None = None,
        embed: Embed | Any = None,
    ) -> None:
        self._store = store
        self._k = k
        self._asked = dict(config or {})
        unknown = sorted(set(self._asked) - _FIELDS)
        if unknown:
            raise UsageError(
                f"config has {unknown[0]!r}, which is no setting of a query. Accepted: "
                f"{', '.join(sorted(_FIELDS))}; how many hits is said by k."
            )
        self._embed: Embed | None = getattr(embed, "embed_query", embed)
        mode = self._asked.get("mode")
        if mode in {"vector", "hybrid"} and self._embed is None:
            raise UsageError(
                f"A {mode} search needs the queries' vectors: give embed, a function from text "
                "to vector."
            )
        self._degraded: tuple[str, ...] = ()
        if self._embed is None and mode is None:
            self._asked["mode"] = "text"
            if store.dim is not None:
                self._degraded = (_TEXT_ALONE,)

    def __call__(self, text: str) -> Result:
        """The store's answer."""
        found = self._store.search(self.query(text))
        if self._degraded:
            found = replace(found, degraded=(*found.degraded, *self._degraded))
        return found

    def query(self, text: str) -> Query:
        """What the store is asked."""
        vector = None
        if self._embed is not None and self._asked.get("mode") != "text":
            vector = self._embed(text)
        return Query(text=text, vector=vector, top_k=self._k, **self._asked)

    @property
    def config(self) -> dict[str, Any]:
        """All that changes a ranking and is known here, as JSON values."""
        # None says as much as saying nothing.
        said = {name: value for name, value in self._asked.items() if value is not None}
        asked = {name: _named(value) for name, value in said.items()}
        written: dict[str, Any] = {"k": self._k, "query": asked}
        written["store"] = store_settings(self._store)
        if isinstance(self._store, ScopedStore):
            written["scope"] = repr(self._store)
        return written


def store_settings(store: StoreProtocol | Door) -> dict[str, Any]:
    """A store's own settings that change its rankings, as JSON values; empty if it has none."""
    config = getattr(store, "config", None)
    if config is None:
        return {}
    settings: dict[str, Any] = _ranking_alone(config.to_json())
    return settings


def _ranking_alone(value: Any) -> Any:
    """JSON values without what does not change how a store ranks, however deep."""
    if not isinstance(value, Mapping):
        return value
    return {name: _ranking_alone(each) for name, each in value.items() if name not in _NOT_RANKING}


def _named(value: Any) -> Any:
    """A filter that is a function by its name: its address would be another one each time."""
    return getattr(value, "__qualname__", value) if callable(value) else value
