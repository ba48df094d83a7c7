"""Are these numbers something statistics can be made of?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cormorant.errors import UsageError

__all__ = ["check_resamples", "checked"]


def checked(values: ArrayLike, *, least: int) -> NDArray[np.float64]:
    """The values as float64, shape (n,).

    Args:
        values: One number a query.
        least: How many there must be.

    Raises:
        UsageError: If they are fewer, not in one row, or one is not a finite number.
    """
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"Values are numbers, one a query; got {values!r:.80}.") from error
    if given.ndim != 1 or len(given) < least:
        raise UsageError(
            f"Values are one number a query, {least} at least; got shape {given.shape}."
        )
    wrong = np.flatnonzero(~np.isfinite(given))
    if len(wrong):
        raise UsageError(
            f"Values must be finite numbers; got {given[wrong[0]]} at place {wrong[0]}."
        )
    return given


def check_resamples(resamples: int) -> None:
    """Refuse a number of resamples that is none.

    Raises:
        UsageError: If it is not a whole number of at least 1.
    """
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 1:
        raise UsageError(f"resamples must be a whole number of at least 1; got {resamples!r}.")
