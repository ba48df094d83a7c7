"""How does LangChain's ``index()`` fill a parent retriever? As a vector store of parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.langchain.calls import steps as stepping
from cormorant.langchain.calls.steps import Steps, on
from cormorant.langchain.retrievers.parents.kin import plain
from cormorant.store.intake import check_ids

__all__ = ["ParentStore", "Parents"]


class Parents(Protocol):
    """What keeps and finds parents: a :class:`ParentDocumentRetriever`."""

    docstore: BaseStore[str, Document]

    def add_documents(
        self, documents: Sequence[Document], ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add documents, in place of what was there under their ids."""

    async def aadd_documents(
        self, documents: Sequence[Document], ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """The same, awaited."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents with their children."""

    async def adelete(self, ids: Sequence[str]) -> None:
        """The same, awaited."""

    def invoke(self, input: str, config: None = None, **kwargs: Any) -> list[Document]:
        """Find parents."""

    async def ainvoke(self, input: str, config: None = None, **kwargs: Any) -> list[Document]:
        """The same, awaited."""


class ParentStore(VectorStore):
    """The parents of a retriever, as LangChain's VectorStore.

    Args:
        retriever: Cuts what is added, and searches.
    """

    def __init__(self, retriever: Parents) -> None:
        self.retriever = retriever

    @override
    def add_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, cut, in place of what was there; ``batch_size`` has no effect."""
        return self.retriever.add_documents(documents, ids, **kwargs)

    @override
    async def aadd_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Like :meth:`add_documents`, without holding the event loop."""
        return await self.retriever.aadd_documents(documents, ids, **kwargs)

    @override
    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents with their children; unknown ids are skipped."""
        self.retriever.delete(_given(ids))
        return True

    @override
    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Like :meth:`delete`, without holding the event loop."""
        await self.retriever.adelete(_given(ids))
        return True

    @override
    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The parents with these keys, in the order asked, without repeats."""
        return stepping.run(self._got(ids))

    @override
    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Like :meth:`get_by_ids`, without holding the event loop."""
        return await stepping.arun(self._got(ids))

    def _got(self, ids: Sequence[str]) -> Steps[list[Document]]:
        keys = check_ids(ids)
        found = yield on(self.retriever.docstore, "mget", keys)
        return [plain(key, each) for key, each in zip(keys, found, strict=True) if each is not None]

    @override
    def similarity_search(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> list[Document]:
        """The ``k`` best parents, as the retriever finds them."""
        return self.retriever.invoke(query, k=k, **kwargs)

    @override
    async def asimilarity_search(
        self, query: str, k: int = defaults.LANGCHAIN_K, **kwargs: Any
    ) -> list[Document]:
        """Like :meth:`similarity_search`, without holding the event loop."""
        return await self.retriever.ainvoke(query, k=k, **kwargs)

    @classmethod
    @override
    def from_texts(cls, *args: Any, **kwargs: Any) -> Self:
        """Refused: it is made from a retriever.

        Raises:
            UsageError: Always.
        """
        raise UsageError("A vector store of parents is made by retriever.as_vectorstore().")


def _given(ids: list[str] | None) -> list[str]:
    if ids is None:
        raise UsageError("delete needs ids; got none, and deleted nothing.")
    return ids
