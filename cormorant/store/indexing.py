"""How does a store get codes for its vectors, and know how well they find?

All that takes long happens on a snapshot's arrays, without the store's lock: readers and
writers go on, and what is added meanwhile is scanned as it is.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import StoreError
from cormorant.index.vector import Coded, IndexChoice, Progress, grow, learn
from cormorant.model import Metric
from cormorant.store import settings
from cormorant.store.learning import learn_if_changed

if TYPE_CHECKING:
    from cormorant.search import Embed
    from cormorant.storage import Head
    from cormorant.store.core import Core
    from cormorant.store.state import State

__all__ = ["IndexInfo", "OptimizeReport", "fold", "index_info", "is_due", "optimize", "tend"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The codes that vectors are searched by.

    Attributes:
        rows: Slots that have a code; what was stored since is scanned as it is.
        bytes_per_vector: Of a code.
        rotated: Whether vectors are rotated before they are encoded.
        lists: How many lists codes are sorted into; one: all are scanned.
        probes: Lists a search looks into.
        rescored: How many of the nearest codes are compared exactly for 10 hits.
        recall: Part of the true 10 nearest found, as measured when the codes were made.
        target: The recall that was asked for.
    """

    rows: int
    bytes_per_vector: int
    rotated: bool
    lists: int
    probes: int
    rescored: int
    recall: float
    target: float


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What ``optimize`` did.

    Attributes:
        folded: Changes that no longer have to be replayed when the store is opened.
        built: ``new`` codes were learned, ``grown`` ones got those of the newer vectors,
            ``dropped`` they were as asked, None: nothing was to be done.
        index: The codes there are now; None: vectors are scanned as they are.
        seconds: Wall time.
    """

    folded: int
    built: str | None
    index: IndexInfo | None
    seconds: float


def index_info(state: State) -> IndexInfo | None:
    """What codes a state has; None if it has none."""
    coded = state.coded
    if coded is None:
        return None
    return IndexInfo(
        rows=coded.n,
        bytes_per_vector=coded.codebook.m // 2,
        rotated=coded.codebook.rotation is not None,
        lists=coded.codebook.lists,
        probes=coded.probes,
        rescored=coded.rescore_10,
        recall=coded.recall,
        target=coded.target,
    )


def optimize(
    core: Core,
    *,
    choice: IndexChoice | None = None,
    embed: Embed | None = None,
    progress: Progress | None = None,
) -> OptimizeReport:
    """Learn of the legs, give vectors the index they should have, and fold the log.

    Args:
        core: Of the store.
        choice: Which index, from now on; None: as chosen before, else by default.
        embed: How questions are embedded, where that is known.
        progress: Told what is done.
    """
    core.check_writable(None)
    began = time.perf_counter()
    with core.upkeep.alone():
        if choice is not None:
            settings.set_index(core, choice)
        learn_if_changed(core, embed)
        while True:
            built, done = _rebuild(core, progress or _quiet)
            if done is not None:
                seconds = time.perf_counter() - began
                return OptimizeReport(done.folded, built, index_info(done.state), seconds)


def is_due(core: Core, state: State, head: Head) -> bool:
    """Is there something for :func:`tend`, or without a thread for it :func:`fold`, to do?"""
    return _fold_is_due(core, head) or (core.background and _codes_are_due(core, state))


def tend(core: Core, progress: Progress) -> None:
    """Do what is due; meant for a thread that nobody waits for."""
    with core.pinned(None) as snapshot:
        state, head = snapshot.state, snapshot.reader.head
    if not _codes_are_due(core, state):
        if _fold_is_due(core, head):
            progress("fold", 0.0)
            _keep(core)
        return
    _, done = _rebuild(core, progress)
    if done is not None and done.state.coded is None:
        core.hopeless_n = state.n


def fold(core: Core) -> None:
    """Fold the log, in a call that made it long.

    The change itself is committed by now, so a failure here is no failure of the call: it is
    logged, and if no more can be written the next write says so.
    """
    with core.upkeep.alone():
        try:
            _keep(core)
        except StoreError as error:
            logger.error("Committed, but folding the log failed: %s", error)  # noqa: TRY400


def _fold_is_due(core: Core, head: Head) -> bool:
    """Would replaying the log cost a reader that opens the store too much?"""
    if core.storage.in_memory:
        return False
    rows = head.n - head.checkpoint_n
    return head.lsn - head.checkpoint_lsn >= defaults.CHECKPOINT_MAX_DELTAS or rows >= max(
        defaults.CHECKPOINT_MIN_ROWS, head.n // 8
    )


def _codes_are_due(core: Core, state: State) -> bool:
    """Do searches scan so many vectors as they are that codes are worth their making?"""
    if core.config.index.kind == "exact" or state.with_vector < defaults.INDEX_MIN_ROWS:
        return False
    if state.n < 2 * core.hopeless_n:
        return False
    scanned = state.n - (0 if state.coded is None else state.coded.n)
    return scanned >= max(defaults.INDEX_MIN_ROWS, state.n // 8)


class _Kept(NamedTuple):
    """A checkpoint that was made: how many changes it folded, and what it holds."""

    folded: int
    state: State


def _rebuild(core: Core, progress: Progress) -> tuple[str | None, _Kept | None]:
    """Make the codes that the newest snapshot should have, and keep them.

    Nothing of the store is held while they are made: the arrays of a snapshot outlive it.

    Returns:
        What was made, and where it was kept: None if a compaction numbered the slots anew.
    """
    with core.pinned(None) as snapshot:
        state, vectors, metric = snapshot.state, snapshot.vectors(), snapshot.metric
        choice, check = snapshot.config.index, snapshot.config.recall_check
    drifted = check is not None and check.drift is not None
    if drifted and state.coded is not None:
        state = replace(state, coded=None)
    built, coded = _built(state, vectors, metric, choice, progress)
    if drifted and built:
        settings.set_recall_check(core, None)
    return built, _keep(core, _Made(coded, state.generation) if built else None)


class _Made(NamedTuple):
    """New codes (None: none any more), and the generation whose slots they stand for."""

    coded: Coded | None
    generation: int


def _keep(core: Core, made: _Made | None = None) -> _Kept | None:
    """Make a checkpoint of the newest snapshot, with new codes if there are some.

    Returns:
        None if the codes stand for slots of an earlier generation.
    """
    while True:
        with core.pinned(None) as snapshot:
            state, reader = snapshot.state, snapshot.reader
        head = reader.head
        if made is not None:
            if made.generation != state.generation:
                return None
            state = replace(state, coded=made.coded)
        folded = head.lsn - head.checkpoint_lsn
        if made is None and not folded:
            return _Kept(0, state)
        with core.storage.draft(reader, state.to_arrays()) as draft:
            if core.adopt(draft, state.coded):
                break
    del reader
    if not core.storage.in_memory:
        core.remap()
    return _Kept(folded, state)


def _built(
    state: State,
    vectors: NDArray[np.float32] | None,
    metric: Metric,
    choice: IndexChoice,
    progress: Progress,
) -> tuple[str | None, Coded | None]:
    """The codes this state should have, and whether they are new, grown, dropped or the same."""
    coded = state.coded
    if choice.kind == "exact":
        return (None if coded is None else "dropped"), None
    if vectors is None or state.with_vector < defaults.INDEX_MIN_ROWS:
        return None, coded
    usable = np.flatnonzero(state.alive.view & state.has_vector.view)
    if coded is not None and coded.target == choice.recall and coded.lists_n == choice.lists:
        if coded.n == state.n:
            return None, coded
        grown = grow(coded, vectors, usable, progress)
        if grown is not None:
            return "grown", grown
    learned = learn(
        vectors, usable, metric, target=choice.recall, lists=choice.lists, progress=progress
    )
    if learned is None and coded is None:
        return None, None
    return "new", learned


def _quiet(_what: str, _done: float) -> None:
    """Nobody wants to know."""
