"""Into which chunks is a document cut? One module a family; ``base`` is what they share."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cormorant.ingest.chunkers.base import Chunker, ChunkingWarning
from cormorant.ingest.chunkers.recursive import RecursiveChunker

if TYPE_CHECKING:
    from cormorant.ingest.chunkers.fixed import FixedChunker
    from cormorant.ingest.chunkers.hierarchical import HierarchicalChunker
    from cormorant.ingest.chunkers.semantic import SemanticChunker
    from cormorant.ingest.chunkers.structural import StructuralChunker

__all__ = [
    "CHUNKERS",
    "Chunker",
    "ChunkingWarning",
    "FixedChunker",
    "HierarchicalChunker",
    "RecursiveChunker",
    "SemanticChunker",
    "StructuralChunker",
]

CHUNKERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "recursive": "RecursiveChunker",
        "structural": "StructuralChunker",
        "fixed": "FixedChunker",
        "hierarchical": "HierarchicalChunker",
    }
)
"""By the name the command line has for it; those that need no embedder."""

_HOMES = {
    "FixedChunker": ".fixed",
    "HierarchicalChunker": ".hierarchical",
    "SemanticChunker": ".semantic",
    "StructuralChunker": ".structural",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
