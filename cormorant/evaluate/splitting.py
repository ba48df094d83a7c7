"""Which judged queries decide, and which judge the decision?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from cormorant.errors import UsageError

__all__ = ["split"]


def split(
    names: Sequence[str],
    *,
    holdout: float,
    least: int,
    seed: int,
    groups: Mapping[str, str] | None = None,
) -> tuple[list[str], list[str]]:
    """Queries to choose or fit by, and queries held out to judge the outcome by.

    Args:
        names: Judged queries. The split depends on their ids and the seed, not on their order.
        holdout: Share that is held out, between 0 and 1.
        least: How many queries, or groups, the first list must have; the second has at least 2.
        seed: Of the shuffle, at least 0.
        groups: Query to group; a group is not parted. None: each query is one.

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
    by_group: dict[str, list[str]] = {}
    for name in known:
        by_group.setdefault(name if groups is None else groups[name], []).append(name)
    units = list(by_group.values())
    shuffled = [units[at] for at in np.random.default_rng(seed).permutation(len(units)).tolist()]
    wanted, held, cut = round(len(known) * holdout), 0, 0
    while held < wanted and cut < len(shuffled):
        held += len(shuffled[cut])
        cut += 1
    training, testing = shuffled[cut:], shuffled[:cut]
    if len(testing) < 2 or len(training) < least:
        what = "judged queries" if groups is None else "groups of judged queries"
        raise UsageError(
            f"{len(units)} {what} with holdout={holdout:g} leave {len(training)} to go by and "
            f"{len(testing)} to judge the outcome by; at least {least} and 2 are needed. Judge "
            "more queries."
        )
    return list(chain.from_iterable(training)), list(chain.from_iterable(testing))
