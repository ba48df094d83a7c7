"""Was this text embedded before? Kept in any LangChain store, under langchain-classic's keys."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.stores import BaseStore, ByteStore
from numpy.typing import NDArray
from typing_extensions import override

from cormorant.errors import ConfigError, CorruptionError, EmbeddingError
from cormorant.langchain.calls.steps import Steps, arun, on, run
from cormorant.langchain.embeddings.cache_keys import Algorithm, key_encoder_of
from cormorant.langchain.embeddings.caching import Caching, Role, Vectors
from cormorant.langchain.embeddings.vectors import as_vector
from cormorant.langchain.storage.encoder_backed import EncoderBackedStore

__all__ = ["CacheBackedEmbeddings"]

_QUERY: Final = "\x1fquery\x1f"  # before a question, where documents are in the same store
_warned_about_sha1 = False


class CacheBackedEmbeddings(Caching):
    """Embeds each distinct text once, and keeps the vectors in a LangChain key-value store.

    langchain-classic's name, arguments and keys: what it kept is found. Questions are kept only
    where a store for them is given. Where that is the documents' own, a question and a document
    of the same words are two vectors still. :class:`CachedEmbeddings` needs no store, and keeps
    by model without being told.

    Args:
        underlying_embeddings: The embedder that is asked for what is missing.
        document_embedding_store: Text to vector, for documents; :meth:`from_bytes_store` makes it
            from a store of bytes.
        batch_size: Embed at most so many missing texts per call and keep each batch at once, so
            that a failure loses one batch. None asks for all in one call.
        query_embedding_store: Text to vector, for questions; None keeps none.

    Attributes:
        hits: Distinct texts answered from the cache.
        misses: Distinct texts the embedder was asked for.

    Raises:
        ConfigError: If the embedder is no ``Embeddings``, a store no ``BaseStore``, or
            ``batch_size`` below 1.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.stores import InMemoryByteStore
        >>> embeddings = CacheBackedEmbeddings.from_bytes_store(
        ...     DeterministicFakeEmbedding(size=3),
        ...     InMemoryByteStore(),
        ...     namespace="fake-3-",
        ...     key_encoder="sha256",
        ... )
        >>> first = embeddings.embed_documents(["tide", "reed", "tide"])
        >>> first == embeddings.embed_documents(["tide", "reed", "tide"])
        True
        >>> embeddings.hits, embeddings.misses
        (2, 2)
    """

    def __init__(
        self,
        underlying_embeddings: Embeddings,
        document_embedding_store: BaseStore[str, list[float]],
        *,
        batch_size: int | None = None,
        query_embedding_store: BaseStore[str, list[float]] | None = None,
    ) -> None:
        super().__init__(underlying_embeddings, batch_size=batch_size)
        _check_store("document_embedding_store", document_embedding_store)
        if query_embedding_store is not None:
            _check_store("query_embedding_store", query_embedding_store)
        self.document_embedding_store = document_embedding_store
        self.query_embedding_store = query_embedding_store
        self._dim: int | None = None

    @classmethod
    def from_bytes_store(
        cls,
        underlying_embeddings: Embeddings,
        document_embedding_cache: ByteStore,
        *,
        namespace: str = "",
        batch_size: int | None = None,
        query_embedding_cache: bool | ByteStore = False,
        key_encoder: Callable[[str], str] | Algorithm | None = None,
    ) -> CacheBackedEmbeddings:
        """Make one over stores of bytes.

        Args:
            underlying_embeddings: The embedder that is asked for what is missing.
            document_embedding_cache: Keeps the documents' vectors, as JSON.
            namespace: What keys begin with: the model's name, so that two models share no vector.
                Without one it is made from the embedder's identity; one that keeps no name of
                its model is then refused when it is used.
            batch_size: As in the class.
            query_embedding_cache: True keeps questions in ``document_embedding_cache``, a store
                keeps them there, False keeps none.
            key_encoder: ``sha256``, ``sha512``, ``blake2b`` or ``sha1`` of the text, or a
                callable from text to key, which must then tell models apart itself. None is
                langchain-classic's ``sha1``, so that what it kept is found, with a warning.

        Raises:
            ConfigError: On an argument that does not fit, or a namespace beside a callable.
        """
        if key_encoder is None:
            _warn_about_sha1()
        encode = key_encoder_of(underlying_embeddings, namespace, key_encoder or "sha1")
        documents = _encoded("document_embedding_cache", document_embedding_cache, encode)
        queries: BaseStore[str, list[float]] | None = None
        if query_embedding_cache is True:
            queries = documents
        elif query_embedding_cache is not False:
            queries = _encoded("query_embedding_cache", query_embedding_cache, encode)
        return cls(
            underlying_embeddings, documents, batch_size=batch_size, query_embedding_store=queries
        )

    @property
    def underlying_embeddings(self) -> Embeddings:
        """The embedder that is asked for what is missing."""
        return self.inner

    @override
    def embed_query(self, text: str) -> list[float]:
        """The query side's vector of one text; kept if there is a store for questions."""
        if self.query_embedding_store is None:
            return run(self._unkept(text))
        return super().embed_query(text)

    @override
    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query`, awaiting the inner embedder's own async method."""
        if self.query_embedding_store is None:
            return await arun(self._unkept(text))
        return await super().aembed_query(text)

    def _unkept(self, text: str) -> Steps[list[float]]:
        returned = yield on(self.inner, "embed_query", text)
        vector: list[float] = as_vector(returned, model=self._said_as()).tolist()
        return vector

    @override
    def _kept(self, role: Role, texts: Sequence[str]) -> Steps[Vectors]:
        if not texts:
            return {}
        values = yield on(self._store(role), "mget", self._names(role, texts))
        found: Vectors = yield self._aside(lambda: self._read(texts, values))
        for vector in found.values():
            self._check_size(len(vector), "kept in the cache")
        return found

    def _read(self, texts: Sequence[str], values: Sequence[Any]) -> Vectors:
        return {
            text: as_vector(value, model=f"{self._said_as()}, as cached")
            for text, value in zip(texts, values, strict=True)
            if value is not None
        }

    @override
    def _keep(self, role: Role, texts: Sequence[str], vectors: NDArray[np.float32]) -> Steps[None]:
        self._check_size(vectors.shape[1], "returned by the embedder")
        pairs = yield self._aside(
            lambda: list(zip(self._names(role, texts), vectors.tolist(), strict=True))
        )
        yield on(self._store(role), "mset", pairs)

    def _store(self, role: Role) -> BaseStore[str, list[float]]:
        queries = self.query_embedding_store
        return self.document_embedding_store if role == "document" or queries is None else queries

    def _names(self, role: Role, texts: Sequence[str]) -> list[str]:
        shared = self.query_embedding_store is self.document_embedding_store
        return [_QUERY + text if role == "query" and shared else text for text in texts]

    def _check_size(self, dim: int, where: str) -> None:
        """Refuse vectors of another size than those seen before: they are another model's."""
        if self._dim is None:
            self._dim = dim
        elif dim != self._dim:
            raise EmbeddingError(
                f"{self._said_as()} has vectors of {self._dim} numbers, and one {where} has {dim}. "
                "Two models share this cache: give each its own namespace, or empty the cache.",
                model=self._said_as(),
            )


def _check_store(name: str, store: object) -> None:
    if not isinstance(store, BaseStore):
        raise ConfigError(f"{name} must be a LangChain BaseStore; got {type(store).__name__}.")


def _encoded(
    name: str, store: ByteStore, encode: Callable[[str], str]
) -> BaseStore[str, list[float]]:
    _check_store(name, store)
    return EncoderBackedStore(store, encode, _to_json, _from_json)


def _to_json(vector: list[float]) -> bytes:
    return json.dumps(vector).encode()


def _from_json(data: bytes) -> list[float]:
    try:
        vector: list[float] = json.loads(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptionError(
            f"A cached vector is not the JSON this cache writes ({error}); it begins with "
            f"{data[:40]!r}. Delete it; what is missing is embedded again."
        ) from error
    return vector


def _warn_about_sha1() -> None:
    """Once in a process, where nobody chose: SHA-1 keys can be made to collide."""
    global _warned_about_sha1  # noqa: PLW0603 - once is the point
    if not _warned_about_sha1:
        _warned_about_sha1 = True
        warnings.warn(
            "Keys are SHA-1 of the texts, as langchain-classic makes them when no key_encoder is "
            "given. Whoever writes texts could make two with one key. Say key_encoder='sha256' for "
            "a new cache, or 'sha1' to stay with this one and not be told.",
            UserWarning,
            stacklevel=3,
        )
