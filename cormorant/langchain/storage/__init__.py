"""Where are documents kept by key? Key-value stores, langchain-classic's and over a Cormorant.

Names are handed on lazily: asking for one loads that one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Name to the module it lives in.
_HOMES = {
    "CormorantByteStore": "cormorant_store",
    "CormorantDocstore": "cormorant_store",
    "EncoderBackedStore": "encoder_backed",
    "InMemoryByteStore": "in_memory",
    "InMemoryStore": "in_memory",
    "InvalidKeyException": "exceptions",
    "LocalFileStore": "file_system",
    "create_kv_docstore": "_lc_store",
    "create_lc_store": "_lc_store",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of names


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
