"""Cormorant: a retrieval store and toolkit for RAG.

Names are handed on lazily, so that ``import cormorant`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cormorant.errors import *  # noqa: F403
    from cormorant.model import AddResult, Explanation, Hit, Query, Record, Result
    from cormorant.store import Store, open  # noqa: A004

__version__ = "0.1.0"

_HOMES = {
    "AddResult": "cormorant.model",
    "Explanation": "cormorant.model",
    "Hit": "cormorant.model",
    "Query": "cormorant.model",
    "Record": "cormorant.model",
    "Result": "cormorant.model",
    "Store": "cormorant.store",
    "open": "cormorant.store",
    "CormorantError": "cormorant.errors",
}
__all__ = ["AddResult", "CormorantError", "Explanation", "Hit", "Query", "Record", "Result", "Store", "__version__", "open"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cormorant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
