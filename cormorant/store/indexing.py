"""How does a store get codes for its vectors, and know how well they find?

All that takes long happens on a snapshot, without the store's lock: readers and writers go
on, and what is added meanwhile is scanned as it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cormorant import defaults
from cormorant.errors import ConfigError
from cormorant.index.vector import Coded, Progress, grow, learn
from cormorant.storage import Writer
from cormorant.store.learning import learn_if_changed

if TYPE_CHECKING:
    from cormorant.store.core import Core
    from cormorant.store.snapshot import Snapshot
    from cormorant.store.state import State

__all__ = ["IndexInfo", "OptimizeReport", "index_info", "optimize"]


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
        built: ``new`` codes were learned, ``grown`` ones got those of the newer vectors, None:
            nothing was to be done.
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
    core: Core, *, recall: float = defaults.RECALL_TARGET, progress: Progress | None = None
) -> OptimizeReport:
    """Learn of the legs, give vectors codes where that pays, and fold the log."""
    if not isinstance(recall, float) or not 0.0 < recall < 1.0:
        raise ConfigError(
            f"recall must be a number above 0 and below 1, such as .99; got {recall!r}."
        )
    core.check_writable(None)
    began = time.perf_counter()
    learn_if_changed(core)
    while True:
        with core.pinned(None) as snapshot:
            state = snapshot.state
            built, coded = _built(snapshot, recall, progress or _quiet)
        done = _kept(core, state, coded, changed=built is not None)
        if done is not None:
            folded, kept = done
            return OptimizeReport(folded, built, index_info(kept), time.perf_counter() - began)


def _kept(
    core: Core, origin: State, coded: Coded | None, *, changed: bool
) -> tuple[int, State] | None:
    """Keep codes in a checkpoint, together with all changes since; None: compacted meanwhile."""
    while True:
        with core.pinned(None) as snapshot:
            state, head = snapshot.state, snapshot.reader.head
            if state.generation != origin.generation:
                return None
            folded = head.lsn - head.checkpoint_lsn
            if not changed and not folded:
                return 0, state
            state = replace(state, coded=coded)
            draft = core.storage.draft(snapshot.reader, state.to_arrays())
        with draft:
            adopted = core.maintain(partial(Writer.adopt, draft=draft))
        if adopted:
            core.keep_codes(coded, state.generation)
            return folded, state


def _built(
    snapshot: Snapshot, recall: float, progress: Progress
) -> tuple[str | None, Coded | None]:
    """The codes this snapshot should have, and whether they are new or grown."""
    state, vectors = snapshot.state, snapshot.vectors()
    coded = state.coded
    if vectors is None or state.with_vector < defaults.INDEX_MIN_ROWS:
        return None, coded
    usable = np.flatnonzero(state.alive.view & state.has_vector.view)
    if coded is not None and coded.target == recall:
        if coded.n == state.n:
            return None, coded
        grown = grow(coded, vectors, usable, progress)
        if grown is not None:
            return "grown", grown
    learned = learn(vectors, usable, snapshot.metric, target=recall, progress=progress)
    if learned is None and coded is None:
        return None, None
    return "new", learned


def _quiet(_what: str, _done: float) -> None:
    """Nobody wants to know."""
