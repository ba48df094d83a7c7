"""How many of the true nearest do this store's searches find, now?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from cormorant import search as searching
from cormorant.errors import ConfigError, QueryError
from cormorant.index.vector import check_vector, midpoints
from cormorant.model import FilterLike, VectorLike
from cormorant.store import settings
from cormorant.store.checked import RecallCheck

if TYPE_CHECKING:
    from cormorant.index.contract import Mask, VectorIndex
    from cormorant.store.core import Core
    from cormorant.store.snapshot import Snapshot

__all__ = ["RecallReport", "recall_check"]

_ASKED: Final = 200
_SEED: Final = 20_241
_DRIFT: Final = 0.02  # recall that newer vectors may lose against all, beyond chance
_UNEVEN: Final = 8.0  # times the mean that the largest list may hold


@dataclass(frozen=True, slots=True)
class RecallReport:
    """What ``Store.recall_check`` found.

    Attributes:
        check: The figures, as they are kept in the store if no filter was given.
        minimum: Recall of the worst question.
        by_query: float64, shape (queries,): recall of each, in their order.
        exact: How many of the questions were answered by an exact scan anyway.
        says: The figures and what to do, in a sentence or two.
    """

    check: RecallCheck
    minimum: float
    by_query: NDArray[np.float64]
    exact: int
    says: str


def recall_check(
    core: Core,
    queries: Iterable[VectorLike] | None = None,
    *,
    k: int = 10,
    filter: FilterLike | None = None,
) -> RecallReport:
    """Ask the index and the exact scan the same, on one snapshot, and keep what was found."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigError(f"k must be a whole number of at least 1; got {k!r}.")
    given = None if queries is None else list(queries)
    if given == []:
        raise ConfigError("queries is empty; give some vectors, or None for points of the store.")
    report = core.read_unscoped(lambda snapshot: _asked(snapshot, given, k, filter))
    if filter is None and not core.storage.read_only:
        settings.set_recall_check(core, report.check)
    return report


def _asked(
    snapshot: Snapshot, given: list[VectorLike] | None, k: int, filter: FilterLike | None
) -> RecallReport:
    vectors, index, scan = snapshot.vectors(), snapshot.vector, snapshot.scan
    if vectors is None or index is None or scan is None:
        raise QueryError("No record in the store has a vector, so there is no recall to check.")
    metric, state = snapshot.metric, snapshot.state
    mask = searching.matching(snapshot, filter)
    usable = np.flatnonzero(mask & snapshot.has_vector)
    if not len(usable):
        raise QueryError("The filter lets no record with a vector through.")
    if given is None:
        asked = midpoints(vectors, usable, metric, _ASKED, _SEED)
    else:
        asked = np.stack([check_vector(each, dim=snapshot.dim, metric=metric) for each in given])
    by_query, exact = _recalls(index, scan, asked, k, mask)
    mean = float(by_query.mean())
    spread = float(by_query.std(ddof=1)) if len(by_query) > 1 else 0.0
    # With nothing missed the normal interval has no width: then the rule of three.
    half = 1.96 * spread / math.sqrt(len(by_query))
    low = mean - half if spread else mean - min(mean, 3 / (k * len(by_query)))
    recent, drift = None, None
    coded = state.coded
    if coded is not None:
        held = usable[usable < coded.n]
        newest = vectors[held[-_ASKED:]]
        if len(newest):
            recents, _ = _recalls(index, scan, newest, k, mask)
            drawn = np.random.default_rng(_SEED).choice(held, min(_ASKED, len(held)), replace=False)
            alike, _ = _recalls(index, scan, vectors[np.sort(drawn)], k, mask)
            recent = float(recents.mean())
            drift = _drift(recents, alike, coded.target, coded.lists, coded.lists_n)
    check = RecallCheck(
        lsn=state.lsn,
        k=k,
        queries=len(asked),
        mean=mean,
        low=max(0.0, low),
        high=min(1.0, mean + half),
        recent=recent,
        drift=drift,
    )
    says = (
        f"Recall of the {k} nearest is {mean:.3f} (95 % interval {check.low:.3f} to "
        f"{check.high:.3f}) over {len(asked)} questions; the worst has {by_query.min():.2f}."
    )
    if exact == len(asked):
        says += " All were answered by an exact scan."
    if drift is not None:
        says += f" {drift}"
    return RecallReport(check, float(by_query.min()), by_query, exact, says)


def _recalls(
    index: VectorIndex, scan: VectorIndex, asked: NDArray[np.float32], k: int, mask: Mask
) -> tuple[NDArray[np.float64], int]:
    """Of each question; and how many the index answered exactly. Equal scores are equally near."""
    found = np.empty(len(asked))
    exact = 0
    for at, point in enumerate(asked):
        true = scan.search(point, k, mask).scores
        got = index.search(point, k, mask)
        exact += got.exact
        found[at] = np.count_nonzero(got.scores >= true[-1]) / len(true)
    return found, exact


def _drift(
    recents: NDArray[np.float64],
    alike: NDArray[np.float64],
    target: float,
    lists: NDArray[np.int32] | None,
    count: int,
) -> str | None:
    """Do newer vectors no longer look like what the index was learned from?"""
    lost = float(alike.mean() - recents.mean())
    noise = 1.96 * math.sqrt(alike.var() / len(alike) + recents.var() / len(recents))
    if recents.mean() < target and lost > max(_DRIFT, noise):
        return (
            f"The newest vectors are found with recall {recents.mean():.3f}, others with "
            f"{alike.mean():.3f}: they no longer look like what the index was learned from. Run "
            "optimize(), which learns it anew."
        )
    if lists is not None and count > 1:
        most = float(np.bincount(lists, minlength=count).max()) * count / len(lists)
        if most > _UNEVEN:
            return (
                f"The largest of {count} lists holds {most:.0f} times as many vectors as the mean. "
                "Run optimize(), which learns them anew."
            )
    return None
