"""What is a metric?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.places import Places

__all__ = ["Metric"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One way to say how good a ranking is.

    Attributes:
        name: As it is written before ``@``.
        says: What it asks, one line.
        cutoff: Whether it counts the first k places: ``required`` (``recall@10``),
            ``optional`` (``mrr``, ``mrr@10``) or ``none`` (``bpref``).
        compute: Its values, float64, shape (queries,), each from 0 to 1; ``k`` is None
            for all places.
        higher_is_better: False for ``unjudged`` alone.
    """

    name: str
    says: str
    cutoff: Literal["required", "optional", "none"]
    compute: Callable[[Places, int | None], NDArray[np.float64]]
    higher_is_better: bool = True
