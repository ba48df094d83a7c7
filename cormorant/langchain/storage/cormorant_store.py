"""How does a Cormorant store keep Documents and bytes by key, beside what is searched?

They live in the store's one file, in its transactions, backups and scopes; no search, count
or filter sees them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Self, TypeVar

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from typing_extensions import override

from cormorant.errors import CorruptionError, RecordError, UsageError
from cormorant.langchain.calls.pool import in_pool
from cormorant.langchain.scopes.in_force import narrowed
from cormorant.langchain.vectorstore import Cormorant
from cormorant.model import Record
from cormorant.store import Family
from cormorant.store.door import Door

__all__ = ["CormorantByteStore", "CormorantDocstore", "kept", "told"]

V = TypeVar("V")
T = TypeVar("T")

_ID: Final = "_id"  # a Document's own id, where it is another than its key
_BYTES: Final = "_bytes"


class _OverDoor(BaseStore[str, V], Generic[V]):
    """What both stores do alike.

    Args:
        store: An open store, a scope of one, or a Cormorant vector store. It stays open.
    """

    def __init__(self, store: Door | Cormorant) -> None:
        door = store.store if isinstance(store, Cormorant) else store
        if not isinstance(door, Door):
            raise UsageError(
                f"{type(self).__name__} takes an open cormorant.Store, a scope of one, or a "
                f"Cormorant; got a {type(store).__name__}."
            )
        self._base = door

    @property
    def _door(self) -> Door:
        """The store, inside the scopes in force."""
        return narrowed(self._base)

    @property
    def store(self) -> Door:
        """The store, or the scope of it."""
        return self._door

    def scope(self, /, **predicates: Any) -> Self:
        """A view that keeps and gives only what satisfies the predicates."""
        return type(self)(self._door.scope(**predicates))

    def _to_record(self, key: str, value: V) -> Record:
        raise NotImplementedError

    def _from_record(self, record: Record) -> V:
        raise NotImplementedError

    @override
    def mget(self, keys: Sequence[str]) -> list[V | None]:
        """The values of the keys, None where there is none (inside the scope)."""
        found = {record.id: record for record in self._door.documents(keys)}
        return [self._from_record(found[key]) if key in found else None for key in keys]

    @override
    async def amget(self, keys: Sequence[str]) -> list[V | None]:
        """Like :meth:`mget`, without holding the event loop."""
        return await self._in_pool(self.mget, keys)

    @override
    def mset(self, key_value_pairs: Sequence[tuple[str, V]]) -> None:
        """Keep the values, all in one transaction; the last of a key given twice.

        Raises:
            RecordError: On a value that cannot be stored; nothing is.
            ScopeError: On a value outside the scope, or a key taken outside it.
        """
        pairs = dict(key_value_pairs)
        self._door.add([], documents=[self._to_record(*pair) for pair in pairs.items()])

    @override
    async def amset(self, key_value_pairs: Sequence[tuple[str, V]]) -> None:
        """Like :meth:`mset`, without holding the event loop."""
        await self._in_pool(self.mset, key_value_pairs)

    @override
    def mdelete(self, keys: Sequence[str]) -> None:
        """Drop the keys, all in one transaction; unknown ones are skipped."""
        self._door.delete(family=Family(keys, None))

    @override
    async def amdelete(self, keys: Sequence[str]) -> None:
        """Like :meth:`mdelete`, without holding the event loop."""
        await self._in_pool(self.mdelete, keys)

    @override
    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys, or those that begin with ``prefix``, sorted, as of this call."""
        # Read now: an iterator used later must not see more than this caller may.
        return (key for key in self._door.document_ids(prefix or ""))

    @override
    def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Like :meth:`yield_keys`, without holding the event loop; as of this call too."""
        return self._keys_of(self._door, prefix or "")

    async def _keys_of(self, door: Door, prefix: str) -> AsyncIterator[str]:
        for key in await self._in_pool(door.document_ids, prefix):
            yield key

    async def _in_pool(self, work: Callable[..., T], *args: Any) -> T:
        return await in_pool(self._base.executor, work, *args)

    def __repr__(self) -> str:
        return f"<cormorant.langchain.storage.{type(self).__name__} {self._door!r}>"


class CormorantDocstore(_OverDoor[Document]):
    """Documents by key, in a Cormorant store; what is given and taken is copied.

    Args:
        store: An open store, a scope of one, or a Cormorant vector store. It stays open.

    Example:
        >>> import cormorant
        >>> docstore = CormorantDocstore(cormorant.open(":memory:"))
        >>> docstore.mset([("p", Document("a fish", metadata={"page": 1}))])
        >>> docstore.mget(["p", "q"])
        [Document(metadata={'page': 1}, page_content='a fish'), None]
    """

    @override
    def _to_record(self, key: str, value: Document) -> Record:
        return kept(key, value)

    @override
    def _from_record(self, record: Record) -> Document:
        return told(record)


class CormorantByteStore(_OverDoor[bytes]):
    """Bytes by key, in a Cormorant store.

    Args:
        store: An open store, a scope of one, or a Cormorant vector store. It stays open.
    """

    @override
    def _to_record(self, key: str, value: bytes) -> Record:
        if not isinstance(value, bytes):
            raise RecordError(f"The value of {key!r} must be bytes; got a {type(value).__name__}.")
        return Record(key, base64.b64encode(value).decode("ascii"), metadata={_BYTES: True})

    @override
    def _from_record(self, record: Record) -> bytes:
        if record.metadata.get(_BYTES) is not True:
            raise UsageError(
                f"What is kept under {record.id!r} is a document, not bytes. Read it with a "
                "CormorantDocstore."
            )
        try:
            return base64.b64decode(record.text, validate=True)
        except binascii.Error as error:
            raise CorruptionError(f"The bytes of {record.id!r} are damaged: {error}.") from error


def kept(key: str, document: Document) -> Record:
    """A Document as the store keeps it."""
    if not isinstance(document, Document):
        raise RecordError(f"The value of {key!r} must be a Document; got {type(document)}.")
    metadata: Mapping[str, Any] = document.metadata
    if document.id != key:
        metadata = {**metadata, _ID: document.id}
    return Record(key, document.page_content, metadata=metadata)


def told(record: Record) -> Document:
    """The Document again."""
    metadata = dict(record.metadata)
    return Document(id=metadata.pop(_ID, record.id), page_content=record.text, metadata=metadata)
