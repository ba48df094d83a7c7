"""How do documents get into a Cormorant vector store, and out of it for good?

One path, sync and async: checked records, the embedding, one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from cormorant.errors import RecordError
from cormorant.langchain.documents import from_documents, from_texts, with_vectors
from cormorant.langchain.filtering import LangChainFilter, engine_filter
from cormorant.langchain.over_store import OverStore
from cormorant.langchain.request import refuse_unknown
from cormorant.model import Record
from cormorant.store import Family

__all__ = ["Writing"]


class Writing(OverStore):
    """The write side of :class:`~cormorant.langchain.Cormorant`."""

    @override
    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those whose id exists, in one transaction.

        Args:
            texts: Any iterable, read once.
            metadatas: One per text.
            ids: One per text; None among them becomes a random UUID.
            **kwargs: None is accepted.

        Returns:
            The ids, in input order.

        Raises:
            RecordError: On anything that cannot be stored; nothing is.
            EmbeddingError: If the embedder does not return one vector per text.
            EmbeddingMismatch: If the store was built with another embedder.
        """
        refuse_unknown(kwargs, ("texts", "metadatas", "ids"), "add_texts")
        return self._add(from_texts(texts, metadatas, ids))

    @override
    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Like :meth:`add_texts`, awaiting the embedder's own async method."""
        refuse_unknown(kwargs, ("texts", "metadatas", "ids"), "aadd_texts")
        return await self._aadd(await self._in_pool(from_texts, texts, metadatas, ids))

    @override
    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, or replace those whose id exists, in one transaction.

        Args:
            documents: Any iterable, read once; copied, not changed.
            ids: One per document; beats ``Document.id``.
            batch_size: Ignored; LangChain's ``index()`` passes it.
            **kwargs: None is accepted.

        Returns:
            The ids, in input order.

        Raises:
            RecordError: On anything that cannot be stored; nothing is.
            EmbeddingError: If the embedder does not return one vector per document.
            EmbeddingMismatch: If the store was built with another embedder.
        """
        del batch_size
        refuse_unknown(kwargs, ("documents", "ids", "batch_size"), "add_documents")
        return self._add(from_documents(documents, ids))

    @override
    async def aadd_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Like :meth:`add_documents`, awaiting the embedder's own async method."""
        del batch_size
        refuse_unknown(kwargs, ("documents", "ids", "batch_size"), "aadd_documents")
        return await self._aadd(await self._in_pool(from_documents, documents, ids))

    def add_family(
        self, documents: Iterable[Document], parents: Iterable[Record], family: Family
    ) -> list[str]:
        """Add documents and what they were cut from in place of a family, in one transaction.

        Args:
            documents: As in :meth:`add_documents`.
            parents: Kept beside them; :meth:`cormorant.Store.documents` finds them, by id.
            family: What makes way, as far as it is in the scope.

        Returns:
            The documents' ids, in input order.
        """
        return self._add(from_documents(documents), documents=list(parents), family=family)

    async def aadd_family(
        self, documents: Iterable[Document], parents: Iterable[Record], family: Family
    ) -> list[str]:
        """Like :meth:`add_family`, awaiting the embedder's own async method."""
        records = await self._in_pool(from_documents, documents)
        return await self._aadd(records, documents=list(parents), family=family)

    def delete_family(self, family: Family) -> None:
        """Delete a family, in one transaction."""
        self._door.delete(family=family)

    async def adelete_family(self, family: Family) -> None:
        """Like :meth:`delete_family`, without holding the event loop."""
        await self._in_pool(self.delete_family, family)

    def _add(self, records: list[Record], **beside: Any) -> list[str]:
        """Embed, then store: the embedder works before the transaction begins."""
        embedder = self._embedder
        if not records or embedder is None:
            return self._put(records, **beside)
        self._guard.register()
        returned = embedder.embed_documents([record.text for record in records])
        return self._put(with_vectors(records, embedder.matrix(returned, len(records))), **beside)

    async def _aadd(self, records: list[Record], **beside: Any) -> list[str]:
        embedder = self._embedder
        if not records or embedder is None:
            return await self._in_pool(lambda: self._put(records, **beside))
        await self._guard.aregister(self._in_pool)
        texts = [record.text for record in records]
        # Handed over in a list that the thread empties: to let go of millions of floats takes
        # time too, and would be done by whoever holds them last.
        returned = [await embedder.aembed_documents(texts)]

        def put() -> list[str]:
            vectors = embedder.matrix(returned.pop(), len(records))
            return self._put(with_vectors(records, vectors), **beside)

        return await self._in_pool(put)

    def _put(self, records: list[Record], **beside: Any) -> list[str]:
        return list(self._door.add(records, **beside).ids)

    @override
    def delete(
        self,
        ids: Iterable[str] | None = None,
        *,
        filter: LangChainFilter | None = None,
        **kwargs: Any,
    ) -> bool:
        """Delete documents by ids, by filter, or those of the ids that satisfy the filter.

        Args:
            ids: Unknown ids are skipped.
            filter: As in searches. ``filter={}`` deletes every document.
            **kwargs: None is accepted.

        Returns:
            True; what did not exist counts as deleted.

        Raises:
            UsageError: If neither is given. Nothing is deleted.
        """
        refuse_unknown(kwargs, ("ids", "filter"), "delete")
        if ids is None and filter is None:
            raise RecordError(
                "delete needs ids or a filter; got neither, and deleted nothing. "
                "To delete every document say delete(filter={})."
            )
        self._door.delete(ids, filter=None if filter is None else engine_filter(filter))
        return True

    @override
    async def adelete(
        self,
        ids: Iterable[str] | None = None,
        *,
        filter: LangChainFilter | None = None,
        **kwargs: Any,
    ) -> bool:
        """Like :meth:`delete`, without holding the event loop."""
        refuse_unknown(kwargs, ("ids", "filter"), "adelete")
        return await self._in_pool(lambda: self.delete(ids, filter=filter))
