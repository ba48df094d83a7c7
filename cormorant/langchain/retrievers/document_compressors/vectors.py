"""What are these texts' vectors, each text embedded once?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant.langchain.embedder import Embedder

__all__ = ["aembed", "aembed_query", "cosines", "embed", "embed_query", "embedded_once"]

# (which embedder, which text) to vector, while a pipeline runs; its threads share the dict.
_known: ContextVar[dict[tuple[int, str], NDArray[np.float32]] | None] = ContextVar(
    "cormorant_embedded", default=None
)


@contextmanager
def embedded_once() -> Iterator[None]:
    """Inside, a text an embedder has seen is not given to it again."""
    if _known.get() is not None:
        yield
        return
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


def embed(embeddings: Embeddings, texts: Sequence[str]) -> NDArray[np.float32]:
    """Texts as vectors: float32, shape (n, dim), checked.

    Raises:
        EmbeddingError: If the embedder fails, or does not return one finite vector per text.
    """
    known, new = _split(embeddings, texts)
    if new:
        embedder = _embedder(embeddings)
        _keep(known, embeddings, new, embedder.matrix(embedder.embed_documents(new), len(new)))
    return _gathered(known, embeddings, texts)


async def aembed(embeddings: Embeddings, texts: Sequence[str]) -> NDArray[np.float32]:
    """Like :func:`embed`, awaiting the embedder's own async method if it has one."""
    known, new = _split(embeddings, texts)
    if new:
        embedder = _embedder(embeddings)
        returned = await embedder.aembed_documents(new)
        _keep(known, embeddings, new, embedder.matrix(returned, len(new)))
    return _gathered(known, embeddings, texts)


def embed_query(embeddings: Embeddings, query: str) -> NDArray[np.float32]:
    """The question as a vector: float32, shape (dim,), checked."""
    embedder = _embedder(embeddings)
    return embedder.vector(embedder.embed_query(query))


async def aembed_query(embeddings: Embeddings, query: str) -> NDArray[np.float32]:
    """Like :func:`embed_query`, awaiting the embedder's own async method if it has one."""
    embedder = _embedder(embeddings)
    return embedder.vector(await embedder.aembed_query(query))


def cosines(rows: Any, columns: Any) -> NDArray[np.float64]:
    """Each row's cosine with each column vector; 0 where one is all zeros.

    Args:
        rows: Shape (m, dim).
        columns: Shape (n, dim).

    Returns:
        Shape (m, n), in [-1, 1].
    """
    left, right = _unit(rows), _unit(columns)
    found: NDArray[np.float64] = left @ right.T
    return np.clip(found, -1.0, 1.0, out=found)


def _unit(vectors: Any) -> NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    unit: NDArray[np.float64] = wide / lengths
    return unit


def _split(
    embeddings: Embeddings, texts: Sequence[str]
) -> tuple[dict[tuple[int, str], NDArray[np.float32]], list[str]]:
    """What is known by now, and the texts that are not, each once."""
    shared = _known.get()
    known = {} if shared is None else shared
    return known, [text for text in dict.fromkeys(texts) if (id(embeddings), text) not in known]


def _keep(
    known: dict[tuple[int, str], NDArray[np.float32]],
    embeddings: Embeddings,
    texts: Sequence[str],
    matrix: NDArray[np.float32],
) -> None:
    for text, row in zip(texts, matrix, strict=True):
        known[id(embeddings), text] = row


def _gathered(
    known: dict[tuple[int, str], NDArray[np.float32]], embeddings: Embeddings, texts: Sequence[str]
) -> NDArray[np.float32]:
    return np.stack([known[id(embeddings), text] for text in texts])


def _embedder(embeddings: Embeddings) -> Embedder:
    return Embedder(embeddings, lambda: _threads(os.getpid()))


@lru_cache(maxsize=1)
def _threads(pid: int) -> ThreadPoolExecutor:
    """Where embedders without async methods work; a forked child starts its own."""
    del pid
    return ThreadPoolExecutor(4, thread_name_prefix="cormorant-compress")
