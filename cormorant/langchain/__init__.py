"""How does LangChain ask? The vector store and its retriever; beside them the toolkit.

``retrievers``, ``document_transformers``, ``embeddings`` and ``storage`` are folders of public
classes. Of the modules here, ``vectorstore`` is the store: ``searching`` reads, ``writing`` writes,
``request`` and ``filtering`` say it in the engine's words, ``guard`` and ``probed`` know whose
vectors they are, ``dump`` makes one file of it. ``scopes`` holds a request to its scope, ``calls``
runs it in its thread and its time, ``wrappers`` keep both through LangChain's own;
``provenance`` is how a document got here. ``replay`` remembers what a model said.

Names are handed on lazily: a text-only command line imports a neighbour of this module
without loading langchain-core.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cormorant.langchain.retriever import CormorantRetriever
    from cormorant.langchain.scopes.in_force import scoping
    from cormorant.langchain.vectorstore import Cormorant

_HOMES = {
    "Cormorant": "vectorstore",
    "CormorantRetriever": "retriever",
    "scoping": "scopes.in_force",
}
__all__ = ["Cormorant", "CormorantRetriever", "scoping"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
