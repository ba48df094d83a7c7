"""How sure may one be of several comparisons at once?"""

from __future__ import annotations

from collections.abc import Sequence

from cormorant.errors import UsageError

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted so that, together, they err in one of them no more often than stated.

    Sorted ascending, ``adjusted_i = max over j ≤ i of min(1, (m - j + 1) · p_j)``.

    Args:
        p_values: One a comparison, each from 0 to 1.

    Returns:
        In the order given. Those below α are significant, with a family-wise error rate of
        at most α, however the comparisons depend on each other.

    Raises:
        UsageError: On a value that is not between 0 and 1.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]

    Source:
        Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
        of Statistics 6(2), 1979, https://www.jstor.org/stable/4615733.
    """
    for p in p_values:
        if not 0 <= p <= 1:
            raise UsageError(f"A p-value lies between 0 and 1; got {p!r}.")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[at]))
        adjusted[at] = highest
    return adjusted
