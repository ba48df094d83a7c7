"""What is made of a list of documents without asking a model about the question?

Names are handed on lazily: asking for one loads that one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Name to the module it lives in. One line per name, in alphabetical order.
_HOMES: dict[str, str] = {
    "EmbeddingsRedundantFilter": "embeddings_redundant_filter",
    "LongContextReorder": "long_context_reorder",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of names


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
