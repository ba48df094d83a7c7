"""Is this a vector the store can hold and compare?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import DimensionError
from cormorant.index.vector.metric import normalise
from cormorant.model import Metric, VectorLike

__all__ = ["check_vector", "check_vectors"]

MAX_NORM = 1e18
"""Longest vector accepted: inner products and squared distances of two such stay finite."""


def check_vectors(
    vectors: Sequence[VectorLike] | NDArray[Any],
    *,
    dim: int | None,
    metric: Metric,
    names: Sequence[str] | None = None,
) -> NDArray[np.float32]:
    """The vectors as the index stores them, or a refusal that names the bad one.

    Args:
        vectors: Lists of numbers or arrays of any integer or float type; or one array,
            shape (m, dim).
        dim: Numbers each must have; None: the first one's decides.
        metric: Under cosine a vector of zeros is refused and the others are normalised.
        names: What messages call each vector's record, in the same order.

    Returns:
        float32, shape (m, dim), C-contiguous, sharing no memory with what came.

    Raises:
        DimensionError: On a wrong size, NaN or infinity, something that is not a number, a
            number float32 cannot hold, or a vector of zeros under cosine.
    """
    return _check(vectors, dim=dim, metric=metric, called=lambda row: _called(row, names))


def check_vector(
    vector: VectorLike, *, dim: int | None, metric: Metric, name: str = "The query's vector"
) -> NDArray[np.float32]:
    """One vector, as :func:`check_vectors` takes it.

    Args:
        vector: A list of numbers or an array, shape (dim,).
        dim: Numbers it must have; None accepts any.
        metric: Under cosine it comes back normalised.
        name: What messages call it.

    Returns:
        float32, shape (dim,), sharing no memory with what came.
    """
    checked: NDArray[np.float32] = _check([vector], dim=dim, metric=metric, called=lambda _: name)[
        0
    ]
    return checked


def _called(row: int, names: Sequence[str] | None) -> str:
    return f"Vector {row}" if names is None else f"The vector of {names[row]!r}"


def _check(
    vectors: Sequence[VectorLike] | NDArray[Any],
    *,
    dim: int | None,
    metric: Metric,
    called: Callable[[int], str],
) -> NDArray[np.float32]:
    given = _rectangle(vectors, called)
    if given.shape[0] and not given.shape[1]:
        raise DimensionError(f"{called(0)} is empty; a vector needs at least one number.")
    if dim is not None and given.shape[0] and given.shape[1] != dim:
        raise DimensionError(
            f"{called(0)} has {given.shape[1]} numbers; this store holds vectors of {dim}. "
            "Was it made by another embedding model?"
        )
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        taken = np.array(given, dtype=np.float32, order="C", copy=True)
    if not np.isfinite(taken).all():
        raise DimensionError(_not_finite(given, taken, called))
    norms = np.sqrt(np.einsum("ij,ij->i", taken, taken, dtype=np.float64))
    if len(norms) and norms.max() > MAX_NORM:
        row = int(norms.argmax())
        raise DimensionError(
            f"{called(row)} has length {norms[row]:.3g}; at most {MAX_NORM:.0e} is "
            "accepted, else scores overflow. Scale the vectors down, or normalise them."
        )
    if metric == "cosine" and not norms.all():
        row = int(np.flatnonzero(norms == 0)[0])
        raise DimensionError(
            f"{called(row)} is all zeros, which has no direction to compare by cosine. "
            "Leave the vector out, mend the embedder, or use metric='dot'."
        )
    return normalise(taken, metric)


def _rectangle(
    vectors: Sequence[VectorLike] | NDArray[Any], called: Callable[[int], str]
) -> NDArray[Any]:
    """All of them as one array of numbers, shape (m, dim); numpy is asked once if all is well."""
    try:
        array = np.asarray(vectors)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=np.object_)
    if array.ndim == 2 and array.dtype.kind in "fiu":
        return array
    if len(vectors) == 0:
        return np.empty((0, array.shape[1] if array.ndim == 2 else 0), dtype=np.float32)
    size: int | None = None
    for position, vector in enumerate(vectors):
        row = _row(vector, called(position))
        if size is not None and len(row) != size:
            raise DimensionError(
                f"{called(position)} has {len(row)} numbers; the one before it has {size}."
            )
        size = len(row)
    # Each is fine alone, so together they are too: say what numpy says if it disagrees.
    raise DimensionError(
        f"The vectors do not form one array of numbers (numpy makes {array.dtype} of them). "
        "Give lists of floats, or arrays of one float type."
    )


def _row(vector: object, name: str) -> NDArray[Any]:
    try:
        row = np.asarray(vector)
    except (ValueError, TypeError, OverflowError) as error:
        raise DimensionError(f"{name} is not a list of numbers: {error}.") from error
    if row.dtype.kind not in "fiu":
        raise DimensionError(
            f"{name} holds something that is not a number (a {type(vector).__name__}, which "
            f"numpy reads as {row.dtype}). Give floats or integers."
        )
    if row.ndim != 1:
        raise DimensionError(
            f"{name} has shape {row.shape}; a flat list of numbers is accepted."
            + (" Pass its first row." if row.ndim == 2 and len(row) == 1 else "")
        )
    return row


def _not_finite(
    given: NDArray[Any], taken: NDArray[np.float32], called: Callable[[int], str]
) -> str:
    row, column = (int(i) for i in np.argwhere(~np.isfinite(taken))[0])
    value = given[row, column]
    found = f"{called(row)} holds {value} at position {column}"
    if np.isfinite(value):
        return f"{found}, which float32 cannot hold (largest: {np.finfo(np.float32).max:.3g})."
    return f"{found}; only finite numbers are accepted. Mend the embedder or skip the record."
