"""How is something kept by key for as long as the process lives? As langchain-core does."""

from __future__ import annotations

from langchain_core.stores import InMemoryBaseStore, InMemoryByteStore, InMemoryStore

__all__ = ["InMemoryBaseStore", "InMemoryByteStore", "InMemoryStore"]
