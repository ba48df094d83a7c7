"""Which judged queries decide, and which judge the decision?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cormorant.errors import UsageError

__all__ = ["split"]


def split(
    names: Sequence[str], *, holdout: float, least: int, seed: int
) -> tuple[list[str], list[str]]:
    """Queries to choose or fit by, and queries held out to judge the outcome by.

    Args:
        names: Judged queries. The split depends on their ids and the seed, not on their order.
        holdout: Share that is held out, between 0 and 1.
        least: How many the first list must have; the second has at least 2.
        seed: Of the shuffle, at least 0.

    Returns:
        Both in shuffled order.

    Raises:
        UsageError: On an argument out of range, or if a part would be too small to say anything.
    """
    number = isinstance(holdout, (int, float)) and not isinstance(holdout, bool)
    if not number or not 0 < holdout < 1:
        raise UsageError(f"holdout must lie between 0 and 1; got {holdout!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed must be a whole number of at least 0; got {seed!r}.")
    known = sorted(names)
    order = np.random.default_rng(seed).permutation(len(known)).tolist()
    shuffled = [known[place] for place in order]
    held = round(len(known) * holdout)
    training, testing = shuffled[held:], shuffled[:held]
    if len(testing) < 2 or len(training) < least:
        raise UsageError(
            f"{len(known)} judged queries with holdout={holdout:g} leave {len(training)} to go by "
            f"and {len(testing)} to judge the outcome by; at least {least} and 2 are needed. Judge "
            "more queries."
        )
    return training, testing
