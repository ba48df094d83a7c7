"""How does text become vectors?

A local model, wrappers for any LangChain ``Embeddings``, and the specification by which a
store and the command line name an embedder. Names are handed on lazily,
so that a text-only program loads neither langchain-core nor a model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cormorant.langchain.embeddings.cache import CacheBackedEmbeddings
    from cormorant.langchain.embeddings.cached import CachedEmbeddings
    from cormorant.langchain.embeddings.local import LocalEmbeddings
    from cormorant.langchain.embeddings.naming import identity, model_name
    from cormorant.langchain.embeddings.prefix import PrefixEmbeddings
    from cormorant.langchain.embeddings.probing import afingerprint, fingerprint
    from cormorant.langchain.embeddings.spec import default_spec, resolve
    from cormorant.langchain.embeddings.vectors import as_matrix, as_vector
    from cormorant.langchain.retrievers.hyde import HypotheticalDocumentEmbedder

_HOMES = {
    "CacheBackedEmbeddings": ".cache",
    "CachedEmbeddings": ".cached",
    "HypotheticalDocumentEmbedder": "cormorant.langchain.retrievers.hyde",
    "LocalEmbeddings": ".local",
    "PrefixEmbeddings": ".prefix",
    "afingerprint": ".probing",
    "as_matrix": ".vectors",
    "as_vector": ".vectors",
    "default_spec": ".spec",
    "fingerprint": ".probing",
    "identity": ".naming",
    "model_name": ".naming",
    "resolve": ".spec",
}
__all__ = [
    "CacheBackedEmbeddings",
    "CachedEmbeddings",
    "HypotheticalDocumentEmbedder",
    "LocalEmbeddings",
    "PrefixEmbeddings",
    "afingerprint",
    "as_matrix",
    "as_vector",
    "default_spec",
    "fingerprint",
    "identity",
    "model_name",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
