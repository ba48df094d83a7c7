"""What may be claimed of a search: is its ranking a full scan's, and were all hits seen?

A full scan is the same search with ``fetch_k`` = n. What cannot be proven is not claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.search.fuse import FUSIONS, LegScores
from cormorant.search.trust import DEPTH

if TYPE_CHECKING:
    from cormorant.search.outcome import Fetched, Outcome

__all__ = ["judge"]


def judge(outcome: Outcome) -> None:
    """Set ``exact`` and ``complete``, and note what kept ``exact`` from being claimed."""
    query, plan = outcome.query, outcome.plan
    exact_legs = all(fetched.found.exact for fetched in outcome.fetched)
    outcome.exact = exact_legs and _as_full_scan(outcome)
    if exact_legs and not outcome.exact:
        outcome.notes.append(_doubt(outcome))
    # One leg's list is cut where relevance only falls further; a fused one need not be.
    ordered = plan.fusion is None and exact_legs
    unseen = len(outcome.slots) < outcome.admitted and _more(outcome)
    wanting = len(outcome.hits) < query.top_k
    outcome.complete = not wanting or not unseen or (ordered and not outcome.above.all())


def _more(outcome: Outcome) -> bool:
    return any(fetched.more for fetched in outcome.fetched)


def _as_full_scan(outcome: Outcome) -> bool:
    """Whether a larger ``fetch_k`` would change no hit, given that each leg's list is exact."""
    plan = outcome.plan
    if plan.diversify:
        return not _more(outcome) and int(np.count_nonzero(outcome.above)) <= plan.k
    if plan.fusion is None or not _more(outcome):
        return True
    if (plan.settled.trust or plan.settled.scripts) and plan.k < DEPTH:  # the weights would change
        return False
    if plan.fusion == "minmax":  # its lowest fetched score, and so every standard, would change
        return False
    return _none_rises(outcome)


def _none_rises(outcome: Outcome) -> bool:
    """Whether no record behind a hit, fetched or not, could come before it in a full scan.

    A wider search changes no standard of ``z``, and in ``rrf`` gives those of a leg that did
    not fetch a candidate: at most that of the rank after its last. A record outside every
    list has at most the highest standard still to be had in each leg.
    """
    scores, hits = outcome.fused.scores, outcome.hits
    pairs = list(zip(outcome.fetched, outcome.scores, strict=True))
    standards = [_best_left(outcome, fetched, view) for fetched, view in pairs]
    most = max(standards)
    left = [
        view.weight * max(standard, view.imagined * most)
        for (_, view), standard in zip(pairs, standards, strict=True)
    ]
    if len(outcome.slots) < outcome.admitted and not (
        len(hits) >= outcome.query.top_k and scores[hits[-1]] > sum(left)
    ):
        return False
    if outcome.plan.fusion != "rrf":
        return True
    rise = np.zeros(len(scores))
    for fetched, view, best in zip(outcome.fetched, outcome.scores, left, strict=True):
        if fetched.more:
            rise[(view.ranks == 0) & (view.scores > fetched.leg.absent)] += best
    places = np.flatnonzero(outcome.above)  # the hits, and who else could have been one
    scores, rise = scores[places], rise[places]
    ahead = scores[np.minimum(np.arange(1, len(places)), len(hits)) - 1]
    return bool(np.all((rise[1:] == 0) | (ahead > scores[1:] + rise[1:])))


def _best_left(outcome: Outcome, fetched: Fetched, view: LegScores) -> float:
    """The highest standard that a record has which the leg did not fetch."""
    found, leg = fetched.found, fetched.leg
    scores, ranks = [leg.absent], [0]
    if fetched.more and len(found.slots):
        scores.append(float(found.scores[-1]))
        ranks.append(len(found.slots) + 1)
    left = LegScores(
        view.weight,
        np.array(scores, np.float32),
        np.array(ranks, np.int64),
        view.among or view.statistics,
    )
    standard: NDArray[np.float64] = FUSIONS[outcome.plan.fusion or "z"](left, outcome.plan.rrf_k)
    return float(standard.max())


def _doubt(outcome: Outcome) -> str:
    plan = outcome.plan
    if plan.diversify:
        return (
            f"mmr: it chose among the best {plan.k} candidates alone; "
            "a larger fetch_k may choose others"
        )
    if plan.fusion == "z":
        return (
            "fuse: a record that no leg fetched might belong among the hits; "
            f"a fetch_k above {plan.k} would tell"
        )
    return (
        f"fuse: {plan.fusion} knows each leg's best {plan.k} alone; "
        "a larger fetch_k may rank otherwise"
    )
