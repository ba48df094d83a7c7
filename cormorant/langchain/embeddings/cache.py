"""Was this text embedded before, by this model, for this role?"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant.errors import ConfigError
from cormorant.langchain.embeddings.naming import identity, model_name, uncached
from cormorant.langchain.embeddings.vector_file import VectorFile
from cormorant.langchain.embeddings.vectors import as_matrix, as_vector, distinct
from cormorant.langchain.embeddings.worker import Worker

__all__ = ["CachedEmbeddings"]


class CachedEmbeddings(Embeddings):
    """Embeds each distinct text once: within a call, across calls, processes and restarts.

    Kept by model, role and text: the query side and the document side of a text are two
    vectors, and two models never share one. Vectors come back as float32 values on the
    first call too, so a hit and a miss are equal.

    Args:
        inner: The embedder that is asked for what is missing.
        path: An SQLite file, made if missing; ``":memory:"`` for this object alone. May be shared
            by threads, processes and embedders.
        model: A name to keep the vectors under, in addition to the embedder's identity. Needed
            where the embedder has none; change it when the model behind a name changes.
        batch_size: Embed at most so many missing texts per call of ``inner`` and keep each batch
            at once, so that a failure loses one batch. None asks for all in one call, and a
            failure keeps nothing.

    Attributes:
        hits: Distinct texts answered from the cache.
        misses: Distinct texts ``inner`` embedded.

    Raises:
        ConfigError: If ``inner`` is no ``Embeddings``, has no model name and none is given,
            or ``batch_size`` is below 1.
        FormatError: If ``path`` is another kind of file.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> inner = DeterministicFakeEmbedding(size=3)
        >>> embeddings = CachedEmbeddings(inner, model="fake-3")
        >>> first = embeddings.embed_documents(["tide", "reed", "tide"])
        >>> first == embeddings.embed_documents(["tide", "reed", "tide"])
        True
        >>> embeddings.hits, embeddings.misses
        (2, 2)
    """

    def __init__(
        self,
        inner: Embeddings,
        path: str | Path = ":memory:",
        *,
        model: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        if not isinstance(inner, Embeddings):
            raise ConfigError(f"inner must be a LangChain Embeddings; got {type(inner).__name__}.")
        if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
            raise ConfigError(
                f"batch_size must be a whole number of at least 1, or None; got {batch_size!r}."
            )
        name = model_name(inner) if model is None else model
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"The model name of {identity(inner)} is not known (got {name!r}), and without it "
                "vectors of two models could be mixed up. Give one: "
                "CachedEmbeddings(inner, path, model='name-of-the-model')."
            )
        self.inner = inner
        self.model_name = name.strip()
        self.hits = 0
        self.misses = 0
        self._counting = threading.Lock()
        self._batch_size = batch_size
        self._key = identity(inner) + ("" if model is None else f"={self.model_name}")
        self._file = VectorFile(path)
        self._worker = Worker("cormorant-embedding-cache", threads=1)

    @property
    def embedding_identity(self) -> str:
        """The inner embedder's own: a cache changes no vector."""
        return identity(self.inner)

    @property
    def uncached(self) -> Embeddings:
        """The embedder under this cache and any further one."""
        inner: Embeddings = uncached(self.inner)
        return inner

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order; only what is missing is embedded.

        Raises:
            EmbeddingError: If the inner embedder returns something else than one usable vector
                per text; nothing of that call is cached.
        """
        known = self._file.get(self._key, "document", distinct(texts))
        for batch in self._missing(texts, known):
            vectors = as_matrix(self.inner.embed_documents(batch), len(batch), model=self._key)
            self._file.put(self._key, "document", batch, vectors)
            known.update(zip(batch, vectors, strict=True))
        return [_floats(known[text]) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The query side's vector of one text.

        Raises:
            EmbeddingError: As :meth:`embed_documents`.
        """
        known = self._file.get(self._key, "query", distinct([text]))
        for batch in self._missing([text], known):
            vector = as_vector(self.inner.embed_query(text), model=self._key)
            self._file.put(self._key, "query", batch, vector[None])
            known[text] = vector
        return _floats(known[text])

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents`, awaiting the inner embedder's own async method."""
        wanted = partial(self._file.get, self._key, "document", distinct(texts))
        known = await self._worker.run(wanted)
        for batch in self._missing(texts, known):
            returned = await self.inner.aembed_documents(batch)
            vectors = as_matrix(returned, len(batch), model=self._key)
            await self._worker.run(partial(self._file.put, self._key, "document", batch, vectors))
            known.update(zip(batch, vectors, strict=True))
        return [_floats(known[text]) for text in texts]

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query`, awaiting the inner embedder's own async method."""
        wanted = partial(self._file.get, self._key, "query", distinct([text]))
        known = await self._worker.run(wanted)
        for batch in self._missing([text], known):
            vector = as_vector(await self.inner.aembed_query(text), model=self._key)
            await self._worker.run(partial(self._file.put, self._key, "query", batch, vector[None]))
            known[text] = vector
        return _floats(known[text])

    def clear(self) -> int:
        """Forget every vector of this embedder; those of others in the file stay.

        Returns:
            How many were forgotten.
        """
        return self._file.forget(self._key)

    def close(self) -> None:
        """Close the file. The inner embedder stays as it is."""
        self._worker.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _missing(
        self, texts: Sequence[str], known: dict[str, NDArray[np.float32]]
    ) -> Iterator[list[str]]:
        """Batches of the distinct texts that are to be embedded; counts hits and misses."""
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        with self._counting:
            self.hits += len(known)
            self.misses += len(missing)
        size = self._batch_size or max(len(missing), 1)
        for first in range(0, len(missing), size):
            yield missing[first : first + size]


def _floats(vector: NDArray[np.float32]) -> list[float]:
    values: list[float] = vector.tolist()
    return values
