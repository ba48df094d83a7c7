"""How does a store of bytes keep other things? Keys and values are encoded on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.runnables.config import run_in_executor
from langchain_core.stores import BaseStore
from typing_extensions import override

from cormorant.langchain.storage._keys import listed_keys

__all__ = ["EncoderBackedStore"]

K = TypeVar("K")
V = TypeVar("V")


class EncoderBackedStore(BaseStore[K, V]):
    """A store whose keys and values another store keeps encoded.

    Args:
        store: Keeps them.
        key_encoder: Key to string.
        value_serializer: Value to what ``store`` keeps, bytes as a rule.
        value_deserializer: The inverse.

    Example:
        >>> from langchain_core.stores import InMemoryByteStore
        >>> squares = EncoderBackedStore(
        ...     InMemoryByteStore(), str, lambda number: str(number).encode(), int
        ... )
        >>> squares.mset([(3, 9)])
        >>> squares.mget([3, 4])
        [9, None]
    """

    def __init__(
        self,
        store: BaseStore[str, Any],
        key_encoder: Callable[[K], str],
        value_serializer: Callable[[V], bytes],
        value_deserializer: Callable[[Any], V],
    ) -> None:
        self.store = store
        self.key_encoder = key_encoder
        self.value_serializer = value_serializer
        self.value_deserializer = value_deserializer

    @override
    def mget(self, keys: Sequence[K]) -> list[V | None]:
        """The values of the keys, None where there is none."""
        return self._decoded(self.store.mget(self._keys(keys)))

    @override
    async def amget(self, keys: Sequence[K]) -> list[V | None]:
        """Like :meth:`mget`, awaiting the store's own async method."""
        values = await self.store.amget(self._keys(keys))
        return await run_in_executor(None, self._decoded, values)  # many take long to decode

    @override
    def mset(self, key_value_pairs: Sequence[tuple[K, V]]) -> None:
        """Keep the values; all are encoded before one is kept."""
        self.store.mset(self._encoded(key_value_pairs))

    @override
    async def amset(self, key_value_pairs: Sequence[tuple[K, V]]) -> None:
        """Like :meth:`mset`, awaiting the store's own async method."""
        await self.store.amset(await run_in_executor(None, self._encoded, key_value_pairs))

    @override
    def mdelete(self, keys: Sequence[K]) -> None:
        """Drop the keys; unknown ones are skipped."""
        self.store.mdelete(self._keys(keys))

    @override
    async def amdelete(self, keys: Sequence[K]) -> None:
        """Like :meth:`mdelete`, awaiting the store's own async method."""
        await self.store.amdelete(self._keys(keys))

    @override
    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys as the store keeps them: encoded, and so with an encoded prefix."""
        yield from self.store.yield_keys(prefix=prefix)

    @override
    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Like :meth:`yield_keys`, awaiting the store's own async method."""
        async for key in self.store.ayield_keys(prefix=prefix):
            yield key

    def _keys(self, keys: Sequence[K]) -> list[str]:
        return [self.key_encoder(key) for key in listed_keys(keys)]

    def _encoded(self, pairs: Sequence[tuple[K, V]]) -> list[tuple[str, bytes]]:
        return [(self.key_encoder(key), self.value_serializer(value)) for key, value in pairs]

    def _decoded(self, values: Sequence[Any]) -> list[V | None]:
        return [None if value is None else self.value_deserializer(value) for value in values]
