"""How is the user's embedder called, and is what it returns usable?

A LangChain ``Embeddings`` promises nothing about the number, the size or the values of
what it returns, fails with whatever its provider raises, and by default runs its async
methods in asyncio's own executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from typing_extensions import override

from cormorant import trace
from cormorant.errors import CormorantError, EmbeddingError, UsageError
from cormorant.langchain.calls.pool import in_pool
from cormorant.langchain.calls.time_limit import time_left, to_thread
from cormorant.langchain.embeddings.naming import identity, model_name, uncached
from cormorant.langchain.embeddings.vectors import as_matrix, as_vector
from cormorant.store.fingerprint import Fingerprint

__all__ = ["Embedder", "check_embedding"]

A = TypeVar("A")
T = TypeVar("T")

_RETRYABLE = frozenset({408, 409, 425, 429})


def check_embedding(embedding: object, name: str = "embedding", *, needed: bool = False) -> None:
    """Refuse what is no embedder.

    Args:
        embedding: What was given.
        name: The argument it was given as.
        needed: Whether None would not do either.

    Raises:
        UsageError: Saying what is missing.
    """
    missing = [
        name
        for name in ("embed_documents", "embed_query")
        if isinstance(embedding, type) or not callable(getattr(embedding, name, None))
    ]
    if missing:
        none = "" if needed else ", or None for a store searched by text alone"
        raise UsageError(
            f"{name} must be a LangChain Embeddings object; got {embedding!r}, without "
            f"{' and '.join(missing)} to call. Pass an instance, such as "
            f"DeterministicFakeEmbedding(size=6){none}."
        )


class Embedder(Embeddings):
    """The user's embedder, with its failures told apart and its threads chosen.

    Args:
        embedding: Anything with ``embed_documents`` and ``embed_query``.
        executor: Gives the threads that async calls run in, where the embedder has no
            async method of its own.

    Attributes:
        awaits_query: Whether the embedder has an ``aembed_query`` of its own.
    """

    def __init__(self, embedding: Embeddings, executor: Callable[[], ThreadPoolExecutor]) -> None:
        self.embedding = embedding
        self.model = model_name(embedding)
        self.embedding_identity = identity(embedding)
        self.provider = type(embedding).__name__
        self.fingerprint: Fingerprint | None = None  # once it was taken; see probed.py
        self.awaits_query = _overrides(embedding, "aembed_query")
        self._awaits_documents = _overrides(embedding, "aembed_documents")
        self._executor = executor

    @property
    def uncached(self) -> Embedder:
        """The embedder without the caches around it, which probes must pass by."""
        return Embedder(uncached(self.embedding), self._executor)

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with self._asked(len(texts)):
            return self.embedding.embed_documents(texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        with self._asked(1):
            return self.embedding.embed_query(text)

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        if not self._awaits_documents:
            return await self._in_thread(self.embed_documents, texts)
        with self._asked(len(texts)):
            return await self.embedding.aembed_documents(texts)

    @override
    async def aembed_query(self, text: str) -> list[float]:
        if not self.awaits_query:
            return await self._in_thread(self.embed_query, text)
        with self._asked(1):
            return await self.embedding.aembed_query(text)

    async def _in_thread(self, work: Callable[[A], T], argument: A) -> T:
        if time_left() is None:
            return await in_pool(self._executor(), work, argument)
        # One that overruns must not keep a thread that everybody else shares.
        return await to_thread(self.embedding, work, argument)

    def matrix(self, returned: Any, count: int) -> NDArray[np.float32]:
        """What ``embed_documents`` returned, checked: float32, shape (count, dim).

        Raises:
            EmbeddingError: If it is not ``count`` finite vectors of one size.
        """
        return as_matrix(_row_by_row(returned), count, model=self.embedding_identity)

    def vector(self, returned: Any) -> NDArray[np.float32]:
        """What ``embed_query`` returned, checked: float32, shape (dim,).

        Raises:
            EmbeddingError: If it is not one finite vector.
        """
        return as_vector(returned, model=self.embedding_identity)

    @contextmanager
    def _asked(self, texts: int) -> Iterator[None]:
        """A call of the embedder: traced, and its failures told apart."""
        try:
            with trace.span("embed", model=self.embedding_identity, texts=texts):
                yield
        except CormorantError:
            raise
        except Exception as error:
            retryable = _retryable(error)
            raise EmbeddingError(
                f"The embedder {self.embedding_identity!r} failed with {type(error).__name__}: "
                f"{error}. Nothing was stored."
                + (" The same call may succeed later." if retryable else ""),
                model=self.embedding_identity,
                retryable=retryable,
            ) from error


def _row_by_row(returned: Any) -> Any:
    """Lists of floats as a list of arrays.

    Converting a large nested list in one numpy call would hold the interpreter lock, and
    with it every event loop of the process, for all of its length.
    """
    if not isinstance(returned, (list, tuple)):
        return returned
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused after this
            return [np.asarray(row, dtype=np.float32) for row in returned]
    except (TypeError, ValueError):
        return returned  # the check has the words for it


def _overrides(embedding: object, method: str) -> bool:
    inherited = getattr(Embeddings, method)
    return getattr(type(embedding), method, inherited) is not inherited


def _retryable(error: Exception) -> bool:
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    status = getattr(error, "status_code", None)
    if status is None:
        status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(status, int) and (status in _RETRYABLE or 500 <= status <= 599)
