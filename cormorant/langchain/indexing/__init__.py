"""How does LangChain's ``index()`` keep a store in step? Record manager and document index.

Names are handed on lazily: asking for one loads that one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cormorant.langchain.indexing.document_index import CormorantDocumentIndex
    from cormorant.langchain.indexing.record_manager import CormorantRecordManager

_HOMES = {
    "CormorantDocumentIndex": "document_index",
    "CormorantRecordManager": "record_manager",
}
__all__ = ["CormorantDocumentIndex", "CormorantRecordManager"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
