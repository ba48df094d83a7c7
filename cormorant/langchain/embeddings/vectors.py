"""Were texts given, and did the embedder return one usable vector for each?

LangChain's interface promises lists of floats and checks nothing. A short list pairs
texts with their neighbours' vectors, a NaN poisons every score: both are refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import EmbeddingError, UsageError

__all__ = ["as_matrix", "as_vector", "distinct"]


def as_matrix(returned: Any, count: int, *, model: str) -> NDArray[np.float32]:
    """Check what ``embed_documents`` returned.

    Args:
        returned: Lists of floats, or an array.
        count: How many texts were given.
        model: The embedder's name, for the message.

    Returns:
        float32, shape (count, dim); (0, 0) if there were no texts.

    Raises:
        EmbeddingError: If there is not one vector per text, or the vectors differ in size,
            or a number is missing, not finite, or too large for float32.
    """
    if returned is None or not hasattr(returned, "__len__"):
        raise EmbeddingError(
            f"The embedder {model!r} must return a list of vectors; got "
            f"{type(returned).__name__}. Nothing was stored.",
            model=model,
        )
    if len(returned) != count:
        raise EmbeddingError(
            f"The embedder {model!r} returned {len(returned)} vectors for {count} texts; it must "
            "return one per text, in order. Nothing was stored.",
            model=model,
        )
    if count == 0:
        return np.empty((0, 0), dtype=np.float32)
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused below
            matrix = np.asarray(returned, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            f"The embedder {model!r} returned vectors of different sizes, or something that is "
            f"not numbers ({error}). Nothing was stored.",
            model=model,
        ) from error
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise EmbeddingError(
            f"The embedder {model!r} must return one list of numbers per text; got an array of "
            f"shape {matrix.shape}. Nothing was stored.",
            model=model,
        )
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise EmbeddingError(
            f"The embedder {model!r} returned NaN, infinite or missing numbers for text "
            f"{int(finite.argmin())} of {count}; every number must be finite. Nothing was stored.",
            model=model,
        )
    return matrix


def as_vector(returned: Any, *, model: str) -> NDArray[np.float32]:
    """Check what ``embed_query`` returned.

    Args:
        returned: A list of floats, or an array of one dimension.
        model: The embedder's name, for the message.

    Returns:
        float32, shape (dim,).

    Raises:
        EmbeddingError: As :func:`as_matrix`.
    """
    vector: NDArray[np.float32] = as_matrix([returned], 1, model=model)[0]
    return vector


def distinct(texts: Sequence[str]) -> list[str]:
    """Each text once, in order of first occurrence.

    Args:
        texts: What was given to ``embed_documents``.

    Raises:
        UsageError: If it is one string or no sequence, or holds something that is not text.
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise UsageError(
            f"texts must be a list of strings; got one {type(texts).__name__}. "
            "Use embed_query for a single text, or make a list of it."
        )
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"texts must be strings; number {at} is {type(text).__name__}.")
    return list(dict.fromkeys(texts))
