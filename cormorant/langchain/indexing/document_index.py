"""How is a store written, read and asked as one thing? LangChain's DocumentIndex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from typing_extensions import override

from cormorant.errors import UsageError
from cormorant.langchain.calls.pool import in_pool
from cormorant.langchain.request import refuse_unknown
from cormorant.langchain.retriever import CormorantRetriever
from cormorant.store.door import Door

__all__ = ["CormorantDocumentIndex"]


class CormorantDocumentIndex(CormorantRetriever, DocumentIndex):
    """A retriever that can be written to: what ``index()`` takes for a vector store.

    As a Runnable it takes a question and returns documents, with every argument of
    :class:`~cormorant.langchain.CormorantRetriever`. Each call is one transaction: it is done
    for all its documents or for none, so ``failed`` is always empty.

    Args:
        vectorstore: The Cormorant to write to and to ask.
        **values: As of the retriever.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from cormorant.langchain import Cormorant
        >>> with Cormorant(DeterministicFakeEmbedding(size=8)) as vs:
        ...     fish = CormorantDocumentIndex(vectorstore=vs, search_type="text")
        ...     _ = fish.upsert([Document("a fish", id="f"), Document("a boat", id="b")])
        ...     [doc.id for doc in fish.invoke("fish")]
        ['f']
    """

    @override
    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Add documents, or replace those whose id exists; without an id, one is made.

        Raises:
            RecordError: On a document that cannot be stored; nothing is.
            EmbeddingError: If the embedder fails; nothing is stored.
        """
        refuse_unknown(kwargs, ("batch_size",), "upsert")
        return UpsertResponse(succeeded=self._cormorant.add_documents(items), failed=[])

    @override
    async def aupsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Like :meth:`upsert`, awaiting the embedder's own async method."""
        refuse_unknown(kwargs, ("batch_size",), "aupsert")
        return UpsertResponse(succeeded=await self._cormorant.aadd_documents(items), failed=[])

    @override
    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Delete by ids; an id that is not there is no failure.

        Raises:
            UsageError: Without ids. Nothing is deleted.
        """
        refuse_unknown(kwargs, (), "delete")
        return self._deleted(self._cormorant.store, ids)

    @override
    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Like :meth:`delete`, without holding the event loop."""
        refuse_unknown(kwargs, (), "adelete")
        door = self._cormorant.store
        return await in_pool(door.executor, self._deleted, door, ids)

    @override
    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """The documents with these ids, in the order asked; unknown ids are skipped."""
        refuse_unknown(kwargs, (), "get")
        return self._cormorant.get_by_ids(ids)

    @override
    async def aget(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Like :meth:`get`, without holding the event loop."""
        refuse_unknown(kwargs, (), "aget")
        return await self._cormorant.aget_by_ids(ids)

    @staticmethod
    def _deleted(door: Door, ids: list[str] | None) -> DeleteResponse:
        if ids is None:
            raise UsageError("delete needs ids; got none, and deleted nothing.")
        known = [record.id for record in door.get(ids)]
        if known:
            door.delete(known)
        return DeleteResponse(succeeded=known, num_deleted=len(known), failed=[], num_failed=0)
