"""How do files become records, and how do the records stay in step with them?

Names are handed on lazily: a reader of one format loads no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cormorant.ingest.batching import batches
    from cormorant.ingest.documents import async_sync_documents, sync_documents
    from cormorant.ingest.embedding import EmbeddingWork
    from cormorant.ingest.pricing import Price, PriceTable
    from cormorant.ingest.report import Failed, Progress, SyncReport
    from cormorant.ingest.sources import Source
    from cormorant.ingest.syncing import async_sync, sync
    from cormorant.ingest.watching import watch

_HOMES = {
    "EmbeddingWork": ".embedding",
    "Failed": ".report",
    "Price": ".pricing",
    "PriceTable": ".pricing",
    "Progress": ".report",
    "Source": ".sources",
    "SyncReport": ".report",
    "async_sync": ".syncing",
    "async_sync_documents": ".documents",
    "batches": ".batching",
    "sync": ".syncing",
    "sync_documents": ".documents",
    "watch": ".watching",
}
__all__ = [
    "EmbeddingWork",
    "Failed",
    "Price",
    "PriceTable",
    "Progress",
    "Source",
    "SyncReport",
    "async_sync",
    "async_sync_documents",
    "batches",
    "sync",
    "sync_documents",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
