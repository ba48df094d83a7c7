"""How do Documents become bytes, in the form langchain-classic gives them?

Stores that it filled can be read, and it can read these, but for dates, which it cannot keep.
Nothing but the classes that were allowed is made of what is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.load import Serializable, dumps, loads
from langchain_core.stores import BaseStore, ByteStore

from cormorant.errors import CorruptionError, RecordError
from cormorant.langchain.storage.encoder_backed import EncoderBackedStore
from cormorant.storage import decode_metadata, encode_metadata

__all__ = ["create_kv_docstore", "create_lc_store"]


def create_kv_docstore(
    store: ByteStore, *, key_encoder: Callable[[str], str] | None = None
) -> BaseStore[str, Document]:
    """A store of Documents that a store of bytes keeps.

    Args:
        store: Keeps the bytes.
        key_encoder: Key to the key that ``store`` gets; None takes it as it is.

    Example:
        >>> from langchain_core.stores import InMemoryByteStore
        >>> docstore = create_kv_docstore(InMemoryByteStore())
        >>> docstore.mset([("a", Document("a fish"))])
        >>> docstore.mget(["a"])[0].page_content
        'a fish'
    """
    return EncoderBackedStore(store, key_encoder or _same, _dump_document, _load_document)


def create_lc_store(
    store: ByteStore,
    *,
    key_encoder: Callable[[str], str] | None = None,
    allowed_objects: Sequence[type[Serializable]] = (Document,),
) -> BaseStore[str, Serializable]:
    """A store of LangChain's serialisable objects that a store of bytes keeps.

    Args:
        store: Keeps the bytes.
        key_encoder: Key to the key that ``store`` gets; None takes it as it is.
        allowed_objects: The classes that may be made of what is read. Whoever can write to
            ``store`` chooses their arguments, so allow data alone, no models or clients.
    """
    allowed = tuple(allowed_objects)

    def dump(value: Serializable) -> bytes:
        if not isinstance(value, allowed):
            names = ", ".join(each.__name__ for each in allowed)
            raise RecordError(
                f"This store keeps {names}; got a {type(value).__name__}, which could not be "
                "read again. Name its class in allowed_objects."
            )
        return _dump_document(value) if isinstance(value, Document) else dumps(value).encode()

    def load(data: bytes) -> Serializable:
        return _loaded(data, allowed)

    return EncoderBackedStore(store, key_encoder or _same, dump, load)


_ESCAPED = "__lc_escaped__"


def _same(key: str) -> str:
    return key


def _dump_document(document: Document) -> bytes:
    if not isinstance(document, Document):
        raise RecordError(f"This store keeps Documents; got a {type(document).__name__}.")
    # LangChain writes what JSON has no word for as "not implemented", which reads as nothing.
    metadata = json.loads(encode_metadata(document.metadata))
    return dumps(document.model_copy(update={"metadata": metadata})).encode()


def _load_document(data: bytes) -> Document:
    """The Document, read here: LangChain's ``loads`` is beta, and made for whole programs."""
    try:
        value = json.loads(data)
        if value["type"] != "constructor" or value["id"][-1] != "Document":
            raise ValueError(f"it is of type {value['type']!r}, {value['id']!r}")
        given = value["kwargs"]
        metadata = _unescaped(given.get("metadata", {}))
        return Document(
            id=given.get("id"),
            page_content=given["page_content"],
            metadata=decode_metadata(json.dumps(metadata)),
        )
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _damaged(data, str(error)) from error


def _unescaped(value: Any) -> Any:
    """LangChain wraps a user's dict with the key ``lc``, lest it pass for one of its objects."""
    if isinstance(value, dict):
        if set(value) == {_ESCAPED}:
            return value[_ESCAPED]
        return {name: _unescaped(inner) for name, inner in value.items()}
    return [_unescaped(inner) for inner in value] if isinstance(value, list) else value


def _loaded(data: bytes, allowed: Sequence[type[Serializable]]) -> Serializable:
    try:
        name = json.loads(data)["id"][-1]
        if name not in {each.__name__ for each in allowed}:
            raise ValueError(f"it is a {name}, which is not among allowed_objects")
        if name == Document.__name__:
            return _load_document(data)
        value: Serializable = loads(data.decode(), allowed_objects=list(allowed))
        return value
    except (ValueError, TypeError, LookupError, NotImplementedError, RecursionError) as error:
        raise _damaged(data, str(error)) from error


def _damaged(data: bytes, why: str) -> CorruptionError:
    return CorruptionError(
        f"A stored value is not what this store writes ({why}); it begins with {data[:40]!r}. Put "
        "it there again."
    )
