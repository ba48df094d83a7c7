"""Is this value a number, and in its range?

A boolean is none, and numpy's are numbers like any other. What lies beyond every float, such as
``10**400``, is out of any range.
"""

from __future__ import annotations

import math
import sys
from typing import TypeGuard

import numpy as np

from cormorant.errors import QueryError, UsageError

__all__ = ["check_number", "check_whole", "is_number", "is_whole"]


def is_whole(value: object, low: float = -math.inf, high: float = math.inf) -> TypeGuard[int]:
    """Whether it is a whole number from ``low`` to ``high``.

    Example:
        >>> is_whole(3, low=1), is_whole(3.0), is_whole(True)
        (True, False, False)
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and low <= value <= high  # type: ignore[operator]


def is_number(value: object, low: float = -math.inf, high: float = math.inf) -> TypeGuard[float]:
    """Whether it is a finite number from ``low`` to ``high``.

    Example:
        >>> is_number(0.5, 0, 1), is_number(float("nan")), is_number("0.5")
        (True, False, False)
    """
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool):
        return False
    if isinstance(value, np.generic):
        value = value.item()  # a narrow float cannot be compared with the widest
    # Compared before anything converts it: a whole number may be beyond every float.
    most = sys.float_info.max
    return max(low, -most) <= value <= min(high, most)  # type: ignore[operator]


def check_whole(
    name: str,
    value: object,
    low: int = 1,
    high: float = math.inf,
    *,
    error: type[UsageError] = QueryError,
) -> None:
    """Refuse what is no whole number of the range.

    Args:
        name: Of the argument, in the error.
        value: What was given.
        low: The least that is accepted.
        high: The most.
        error: What is raised.

    Raises:
        UsageError: Of the kind asked for, with what is accepted.
    """
    if not is_whole(value, low, high):
        wanted = _range(low, high)
        raise error(f"{name} must be a whole number {wanted}; got {value!r:.80}.")


def check_number(
    name: str,
    value: object,
    low: float,
    high: float = math.inf,
    *,
    error: type[UsageError] = QueryError,
) -> None:
    """Like :func:`check_whole`, for any finite number."""
    if not is_number(value, low, high):
        raise error(f"{name} must be a number {_range(low, high)}; got {value!r:.80}.")


def _range(low: float, high: float) -> str:
    return f"of at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"
