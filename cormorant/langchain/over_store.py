"""What do the read side and the write side of the vector store share?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.vectorstores import VectorStore

from cormorant.langchain.calls.pool import in_pool
from cormorant.langchain.embedder import Embedder
from cormorant.langchain.guard import Guard
from cormorant.langchain.scopes.in_force import narrowed
from cormorant.store.door import Door

__all__ = ["OverStore"]

T = TypeVar("T")


class OverStore(VectorStore):
    """A VectorStore over a store, or over a scope of one.

    The attributes are set by :class:`~cormorant.langchain.Cormorant`.
    """

    _base: Door
    _embedder: Embedder | None
    _guard: Guard

    @property
    def _door(self) -> Door:
        """The store, inside the scopes in force."""
        return narrowed(self._base)

    async def _in_pool(self, work: Callable[..., T], *args: Any) -> T:
        return await in_pool(self._base.executor, work, *args)
