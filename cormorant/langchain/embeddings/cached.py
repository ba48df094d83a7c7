"""Was this text embedded before, by this model, for this role? Kept in one file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from typing_extensions import override

from cormorant.errors import ConfigError
from cormorant.langchain.calls.steps import Steps
from cormorant.langchain.embeddings.caching import Caching, Role, Vectors
from cormorant.langchain.embeddings.naming import identity, model_name
from cormorant.langchain.embeddings.vector_file import VectorFile

__all__ = ["CachedEmbeddings"]


class CachedEmbeddings(Caching):
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
        super().__init__(inner, batch_size=batch_size)
        name = model_name(inner) if model is None else model
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"The model name of {identity(inner)} is not known (got {name!r}), and without it "
                "vectors of two models could be mixed up. Give one: "
                "CachedEmbeddings(inner, path, model='name-of-the-model')."
            )
        self.model_name = name.strip()
        self._key = identity(inner) + ("" if model is None else f"={self.model_name}")
        self._file = VectorFile(path)

    @override
    def _kept(self, role: Role, texts: Sequence[str]) -> Steps[Vectors]:
        found: Vectors = yield self._aside(partial(self._file.get, self._key, role, texts))
        return found

    @override
    def _keep(self, role: Role, texts: Sequence[str], vectors: NDArray[np.float32]) -> Steps[None]:
        yield self._aside(partial(self._file.put, self._key, role, texts, vectors))

    @override
    def _said_as(self) -> str:
        return self._key

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
