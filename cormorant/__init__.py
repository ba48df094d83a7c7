"""Cormorant: a retrieval store and toolkit for RAG.

Names are handed on lazily, so that ``import cormorant`` stays cheap. Errors live in
``cormorant.errors``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cormorant.errors import CormorantError
    from cormorant.model import AddResult, Explanation, Hit, Query, Record, Result
    from cormorant.store import Store, open  # noqa: A004 - the public name

__version__ = "0.1.0"

__all__ = [
    "AddResult",
    "CormorantError",
    "Explanation",
    "Hit",
    "Query",
    "Record",
    "Result",
    "Store",
    "__version__",
    "open",
]

_HOMES = {"CormorantError": "errors", "Store": "store", "open": "store"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'model')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
