"""Is what was given a vector store?"""

from __future__ import annotations

from langchain_core.vectorstores import VectorStore

from cormorant.errors import ConfigError

__all__ = ["check_vectorstore"]


def check_vectorstore(store: object) -> VectorStore:
    """The vector store, if it is one.

    Raises:
        ConfigError: If it is something else: a retriever over one, say.
    """
    if isinstance(store, VectorStore):
        return store
    hint = ""
    if isinstance(getattr(store, "vectorstore", None), VectorStore):
        hint = " Give the vector store itself, which is its .vectorstore."
    raise ConfigError(
        f"vectorstore must be a LangChain VectorStore; got a {type(store).__name__}.{hint}"
    )
