"""How does LangChain store and search? The VectorStore over a Cormorant store."""

from __future__ import annotations

import copy
import functools
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from typing_extensions import override

from cormorant.errors import ScopeError, UsageError
from cormorant.langchain import dump as dumping
from cormorant.langchain.calls.pool import in_one_thread
from cormorant.langchain.documents import (
    record_document,
)
from cormorant.langchain.embedder import Embedder, check_embedding
from cormorant.langchain.guard import Guard
from cormorant.langchain.request import refuse_unknown
from cormorant.langchain.searching import Searching
from cormorant.langchain.writing import Writing
from cormorant.store import Store
from cormorant.store.door import Door

if TYPE_CHECKING:
    from cormorant.langchain.retriever import CormorantRetriever
    from cormorant.store.indexing import OptimizeReport

__all__ = ["Cormorant"]

_OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(Store.open).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
)
_OWN = ("embedding", "path", "store", "check_embedder", "accept_variant")


class Cormorant(Writing, Searching):
    """A LangChain VectorStore that searches vectors, text and metadata together.

    Args:
        embedding: Any LangChain ``Embeddings``; None for a store searched by text alone.
        path: Folder of the store, made if missing; None for a store in memory.
        store: An open store or a scoped view of one, instead of ``path``. It stays open
            when this object is closed.
        check_embedder: Compare the embedder with the one the store was built with, and
            refuse another. Switch it off for an embedder whose vectors are random.
        accept_variant: Take a variant of the stored model too: a quantisation, a prefix.
        **options: Those of :meth:`cormorant.Store.open`: ``metric``, ``language``,
            ``require_scope``, ``pool_size``, …

    Pickled, one over a folder opens it again where the pickle arrives, inside the same scope; one
    in memory refuses. A deep copy asks the same open store.

    Raises:
        UsageError: On an option nobody reads, or ``store`` together with others.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> vs = Cormorant.from_texts(["a fish", "a boat"], DeterministicFakeEmbedding(size=8))
        >>> [doc.page_content for doc in vs.search("fish", "text")]
        ['a fish']
        >>> vs.close()
    """

    def __init__(
        self,
        embedding: Embeddings | None,
        *,
        path: str | os.PathLike[str] | None = None,
        store: Door | None = None,
        check_embedder: bool = True,
        accept_variant: bool = False,
        **options: Any,
    ) -> None:
        # All of it before a folder is made.
        if embedding is not None:
            check_embedding(embedding)
        refuse_unknown(options, (*_OWN, *_OPTIONS), "Cormorant")
        door = _door(store, path, options)
        # The door, not self: a cycle would keep the store open until the collector comes. And no
        # lambda: over a folder this object can be pickled, and opens it again where it arrives.
        threads = functools.partial(_executor, door)
        embedder = None if embedding is None else Embedder(embedding, threads)
        self._embedder = embedder
        self._base = door
        self._guard = Guard(door, embedder, enabled=check_embedder, accept_variant=accept_variant)
        self._owns_store = store is None

    # What it is

    @property
    @override
    def embeddings(self) -> Embeddings | None:
        """The embedder, as it was given."""
        return None if self._embedder is None else self._embedder.embedding

    @property
    def embedding(self) -> Embeddings | None:
        """The embedder, under the name InMemoryVectorStore gives it."""
        return self.embeddings

    @property
    def embedding_model(self) -> str | None:
        """Name of the embedder's model; its class and settings if it names none."""
        if self._embedder is None:
            return None
        return self._embedder.model or self._embedder.embedding_identity

    @property
    def store(self) -> Door:
        """The store, or the scoped view of it; inside :func:`scoping`, a view of that."""
        # Inside, `_door` is used: a subclass may present its store otherwise.
        return self._door

    def scope(self, /, **predicates: Any) -> Self:
        """A vector store that reads and writes only documents satisfying the predicates.

        Equalities are stamped on what is added. No argument of the view can widen it, and
        scoping it again narrows further.

        Example:
            >>> from langchain_core.embeddings import DeterministicFakeEmbedding
            >>> with Cormorant(DeterministicFakeEmbedding(size=8)) as vs:
            ...     _ = vs.scope(tenant="acme").add_texts(["a fish"])
            ...     (doc,) = vs.similarity_search("fish")
            ...     doc.metadata, vs.scope(tenant="other").similarity_search("fish")
            ({'tenant': 'acme'}, [])
        """
        view = copy.copy(self)
        door = self._door.scope(**predicates)
        view.__dict__.update(_base=door, _guard=self._guard.over(door), _owns_store=False)
        return view

    def optimize(self, **options: Any) -> OptimizeReport:
        """What :meth:`Store.optimize` does, learning with this object's embedder at hand.

        Args:
            **options: ``recall``, ``index``, ``lists``, ``progress``.

        Raises:
            ScopeError: If this is a scoped view: the whole store is optimized.
            ConfigError: If a value is out of range.
        """
        if not isinstance(self._base, Store):
            raise ScopeError(
                "A scoped view cannot optimize: the index and what is learned are the whole "
                "store's. Call optimize() of the vector store the view was made of."
            )
        return self._base.optimize(embedder=self.embeddings, **options)

    def close(self) -> None:
        """Close the store if this object opened it. Idempotent."""
        if self._owns_store and isinstance(self._base, Store):
            self._base.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cormorant.langchain.Cormorant {self.embedding_model} {self._door!r}>"

    # Reading

    @override
    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in the order asked, without repeats.

        Unknown ids are skipped.
        """
        return [record_document(record) for record in self._door.get(ids)]

    @override
    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Like :meth:`get_by_ids`, without holding the event loop."""
        return await self._in_pool(self.get_by_ids, ids)

    @override
    def as_retriever(self, **kwargs: Any) -> CormorantRetriever:
        """A retriever over this store.

        Args:
            **kwargs: ``search_type`` (``similarity`` by default), the arguments that
                search type takes (``k``, ``filter``, ``score_threshold``, …), either so or
                in ``search_kwargs``; ``tags``, ``metadata``, ``name``.

        Raises:
            UsageError: On an argument nobody reads, or a value outside its range.

        Example:
            >>> from langchain_core.embeddings import DeterministicFakeEmbedding
            >>> texts = ["a fish", "two fish", "a boat"]
            >>> vs = Cormorant.from_texts(texts, DeterministicFakeEmbedding(size=8))
            >>> len(vs.as_retriever(search_type="hybrid", k=2).invoke("fish"))
            2
            >>> vs.close()
        """
        from cormorant.langchain.retriever import CormorantRetriever

        if "vectorstore" in kwargs:
            raise UsageError("as_retriever: vectorstore is this store; it cannot be given.")
        tags = kwargs.pop("tags", None)
        tags = self._get_retriever_tags() if tags is None or tags == [] else tags
        return CormorantRetriever(vectorstore=self, tags=tags, **kwargs)

    # Making one from documents

    @classmethod
    @override
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | None,
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A vector store with these texts in it; ``kwargs`` are the constructor's."""
        made = cls(embedding, **kwargs)
        try:
            made.add_texts(texts, metadatas, ids=ids)
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    @override
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | None,
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Like :meth:`from_texts`, awaiting the embedder's own async method."""
        made = await in_one_thread(lambda: cls(embedding, **kwargs))
        try:
            await made.aadd_texts(texts, metadatas, ids=ids)
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    @override
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: Embeddings | None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A vector store with these documents in it; ``kwargs`` are the constructor's."""
        made = cls(embedding, **kwargs)
        try:
            made.add_documents(documents, ids=ids)
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    @override
    async def afrom_documents(
        cls,
        documents: Iterable[Document],
        embedding: Embeddings | None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Like :meth:`from_documents`, awaiting the embedder's own async method."""
        made = await in_one_thread(lambda: cls(embedding, **kwargs))
        try:
            await made.aadd_documents(documents, ids=ids)
        except BaseException:
            made.close()
            raise
        return made

    # One file

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write every document (of the scope) with its vector to one file, atomically.

        The format is Cormorant's own, JSON lines; see ``docs/langchain.md``. A store that
        should live on disk is better opened with ``path=``.
        """
        dumping.write(self._door, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], embedding: Embeddings | None, **kwargs: Any
    ) -> Self:
        """A vector store with what :meth:`dump` wrote; nothing is embedded again.

        Args:
            path: The file.
            embedding: The embedder the documents were added with.
            **kwargs: The constructor's. Without ``store=`` the new store is in memory.

        Raises:
            NotFound: If there is no such file.
            FormatError: If it is not such a file, or of a newer version.
            CorruptionError: If it is cut short or damaged; nothing is loaded.
            ConfigError: If the store's metric is another than the file's.
        """
        content = dumping.read(path)
        if kwargs.get("store") is None:
            kwargs = {**content.options, **kwargs}
        made = cls(embedding, **kwargs)
        try:
            content.pour_into(made._door)
        except BaseException:
            made.close()
            raise
        return made


def _executor(door: Door) -> ThreadPoolExecutor:
    return door.executor


def _door(store: object, path: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Door:
    if store is None:
        return Store.open(":memory:" if path is None else path, **options)
    if not isinstance(store, Door):
        raise UsageError(
            f"store must be an open cormorant.Store or a scope of one; got a "
            f"{type(store).__name__}. To name a folder, say path=."
        )
    if path is not None or options:
        given = [*(["path"] if path is not None else []), *options]
        raise UsageError(
            "store is already open, so path and the options of Store.open have no effect; got "
            f"{', '.join(given)}. Give one or the other."
        )
    return store
