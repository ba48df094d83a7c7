"""Which texts must be embedded, and for which is there a vector already? Alike in every cache."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant.errors import ConfigError
from cormorant.langchain.calls.steps import Call, Steps, arun, on, run
from cormorant.langchain.embeddings.naming import identity, uncached
from cormorant.langchain.embeddings.vectors import as_matrix, as_vector, distinct
from cormorant.langchain.embeddings.worker import Worker

__all__ = ["Caching", "Role", "Vectors"]

Role: TypeAlias = Literal["document", "query"]
Vectors: TypeAlias = dict[str, NDArray[np.float32]]


class Caching(Embeddings):
    """Asks another embedder for each distinct text that has no vector yet.

    Vectors come back as float32 values on the first call too, so a hit and a miss are equal.

    Args:
        inner: The embedder that is asked for what is missing.
        batch_size: Embed at most so many missing texts per call of ``inner`` and keep each batch
            at once, so that a failure loses one batch. None asks for all in one call, and a
            failure keeps nothing.

    Attributes:
        hits: Distinct texts answered from the cache.
        misses: Distinct texts ``inner`` embedded.

    Raises:
        ConfigError: If ``inner`` is no ``Embeddings``, or ``batch_size`` is below 1.
    """

    def __init__(self, inner: Embeddings, *, batch_size: int | None = None) -> None:
        if not isinstance(inner, Embeddings):
            raise ConfigError(f"A cache takes a LangChain Embeddings; got {type(inner).__name__}.")
        if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
            raise ConfigError(
                f"batch_size must be a whole number of at least 1, or None; got {batch_size!r}."
            )
        self.inner = inner
        self.batch_size = batch_size
        self.hits = 0
        self.misses = 0
        self._counting = threading.Lock()
        self._worker = Worker("cormorant-embedding-cache", threads=1)

    @abstractmethod
    def _kept(self, role: Role, texts: Sequence[str]) -> Steps[Vectors]:
        """The vectors of those texts that are there, by text."""

    @abstractmethod
    def _keep(self, role: Role, texts: Sequence[str], vectors: NDArray[np.float32]) -> Steps[None]:
        """Keep vectors, float32 and finite, one row per text."""

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
        return run(self._vectors("document", texts))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents`, awaiting the inner embedder's own async method."""
        return await arun(self._vectors("document", texts))

    def embed_query(self, text: str) -> list[float]:
        """The query side's vector of one text.

        Raises:
            EmbeddingError: As :meth:`embed_documents`.
        """
        return run(self._vectors("query", [text]))[0]

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query`, awaiting the inner embedder's own async method."""
        return (await arun(self._vectors("query", [text])))[0]

    def _vectors(self, role: Role, texts: list[str]) -> Steps[list[list[float]]]:
        known = yield from self._kept(role, distinct(texts))
        for batch in self._missing(texts, known):
            vectors = yield from self._embedded(role, batch)
            yield from self._keep(role, batch, vectors)
            known.update(zip(batch, vectors, strict=True))
        floats: list[list[float]] = yield self._aside(
            lambda: [known[text].tolist() for text in texts]
        )
        return floats

    def _embedded(self, role: Role, texts: list[str]) -> Steps[NDArray[np.float32]]:
        """What the inner embedder returns for these, checked."""
        name = self._said_as()
        if role == "query":
            (text,) = texts
            returned = yield on(self.inner, "embed_query", text)
            return as_vector(returned, model=name)[None]
        returned = yield on(self.inner, "embed_documents", texts)
        matrix: NDArray[np.float32] = yield self._aside(
            lambda: as_matrix(returned, len(texts), model=name)
        )
        return matrix

    def _said_as(self) -> str:
        """What messages call the embedder."""
        return identity(self.inner)

    def _aside(self, work: Callable[[], Any]) -> Call:
        """Work that would hold the event loop: a thread of the cache's own does it."""
        return Call(work, lambda: self._worker.run(work))

    def _missing(self, texts: Sequence[str], known: Vectors) -> Iterator[list[str]]:
        """Batches of the distinct texts that are to be embedded; counts hits and misses."""
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        with self._counting:
            self.hits += len(known)
            self.misses += len(missing)
        size = self.batch_size or max(len(missing), 1)
        for first in range(0, len(missing), size):
            yield missing[first : first + size]
