"""How is a store kept sound and small?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cormorant.errors import CorruptionError, FormatError, StoreError
from cormorant.storage import Problem, StaleGeneration
from cormorant.store import settings
from cormorant.store.checked import RecallCheck
from cormorant.store.config import StoreConfig
from cormorant.store.indexing import IndexInfo, index_info
from cormorant.store.state import State

if TYPE_CHECKING:
    from cormorant.index.metadata import FieldInfo
    from cormorant.search import Trust
    from cormorant.storage import NewGeneration, Reader, Reclaimed, Writer
    from cormorant.store.core import Core
    from cormorant.store.snapshot import Snapshot

__all__ = [
    "CheckReport",
    "CompactReport",
    "Stats",
    "backup",
    "check",
    "compact",
    "stats",
]


@dataclass(frozen=True, slots=True)
class Stats:
    """How much is in a store.

    Attributes:
        records: That can be found.
        with_vector: Records that have a vector.
        dead: Deleted or replaced, whose space ``compact`` gives back.
        dim, metric: Of the vectors.
        analyzer: The analyzer's spec.
        embedder: Its specification, if one is remembered.
        require_scope: Fields every call must be scoped by.
        generation, lsn: Which vector file, and how many changes were ever made.
        unfolded: Changes a reader replays when it opens; ``optimize`` folds them.
        size_bytes: Of all files; in memory, of the vectors.
        fields: The metadata fields and what they hold.
        index: The codes that vectors are searched by; None: they are scanned as they are.
        trust: What was learned of the legs; None if nothing was.
        trust_doubt: Why that no longer fits and is not used, a sentence; None if it is.
        recall_check: What the last ``Store.recall_check`` found; None if there was none.
        upkeep: What this process does in the background now; None: nothing.
        upkeep_failure: What its last work in the background ended with; None if it went well.
    """

    records: int
    with_vector: int
    dead: int
    dim: int | None
    metric: str
    analyzer: Mapping[str, Any]
    embedder: str | None
    require_scope: tuple[str, ...]
    generation: int
    lsn: int
    unfolded: int
    size_bytes: int
    fields: Mapping[str, FieldInfo]
    index: IndexInfo | None = None
    trust: Trust | None = None
    trust_doubt: str | None = None
    recall_check: RecallCheck | None = None
    upkeep: str | None = None
    upkeep_failure: str | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What ``check`` found.

    Attributes:
        problems: Damage that is still there.
        repaired: Damage that was mended by this call.
        records: How many records were looked at.
    """

    problems: tuple[Problem, ...]
    repaired: tuple[Problem, ...]
    records: int

    @property
    def ok(self) -> bool:
        """True if nothing is damaged (any more)."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What ``compact`` gave back.

    Attributes:
        removed: Dead records whose bytes went.
        before_bytes, after_bytes: Size of all files.
        pending_readers: True while another process's open snapshot keeps old bytes alive;
            compact again once it is done.
        left: Old files that could not be removed.
    """

    removed: int
    before_bytes: int
    after_bytes: int
    pending_readers: bool
    left: tuple[str, ...]


def stats(core: Core) -> Stats:
    """How much is in the store, and where its bytes are?"""

    def work(snapshot: Snapshot) -> Stats:
        state, head, config = snapshot.state, snapshot.reader.head, snapshot.config
        return Stats(
            records=state.live,
            with_vector=int(np.count_nonzero(state.has_vector.view & state.alive.view)),
            dead=state.dead,
            dim=config.dim,
            metric=config.metric,
            analyzer=dict(config.analyzer or {}),
            embedder=config.embedder,
            require_scope=config.require_scope,
            generation=head.generation,
            lsn=head.lsn,
            unfolded=head.lsn - head.checkpoint_lsn,
            size_bytes=core.storage.size_bytes(),
            fields=state.columns.fields(state.alive.view),
            index=index_info(state),
            trust=config.trust,
            trust_doubt=snapshot.trust_doubt,
            recall_check=config.recall_check,
            upkeep=core.upkeep.says,
            upkeep_failure=core.upkeep.failure,
        )

    return core.read_unscoped(work)


def check(core: Core, *, repair: bool) -> CheckReport:
    """Look for damage; with ``repair`` rebuild what is derived."""
    found = core.storage.verify()
    # What is known to be damaged is rebuilt, not walked through first.
    if not any(problem.repairable for problem in found):
        found = [*found, *_derived_problems(core)]
    mended: list[Problem] = []
    if repair and any(p.repairable for p in found):
        core.maintain(lambda writer: _rebuild(core, writer))
        left = [*core.storage.verify(), *_derived_problems(core)]
        mended = [p for p in found if p not in left]
        found = left
    with core.storage.read() as reader:
        records = len(reader.live_rows())
        found = [*found, *_settings_problems(reader, str(core.storage.path or ":memory:"))]
    return CheckReport(problems=tuple(found), repaired=tuple(mended), records=records)


def _settings_problems(reader: Reader, where: str) -> list[Problem]:
    """Can the settings be read, the embedder's fingerprint among them?"""
    try:
        settings.fingerprint(StoreConfig.from_json(reader.config))
    except CorruptionError as error:
        return [Problem(what=str(error), path=where, repairable=False)]
    return []


def _derived_problems(core: Core) -> list[Problem]:
    """Do the indexes hold exactly the records that SQLite holds?"""
    where = str(core.storage.path or ":memory:")

    def work(snapshot: Snapshot) -> list[Problem]:
        state = snapshot.state
        indexed = state.rows.view[state.alive.view]
        truth = snapshot.reader.live_rows()
        found = state.text.problems()
        if not np.array_equal(indexed, truth):
            found.append(f"The indexes hold {len(indexed)} records, the store {len(truth)}.")
        return [Problem(what=what, path=where, repairable=True) for what in found]

    try:
        return core.read_unscoped(work)
    except (CorruptionError, FormatError) as error:
        path = getattr(error, "path", None) or where
        return [Problem(what=str(error), path=path, repairable=True)]


def _rebuild(core: Core, writer: Writer) -> None:
    state = rebuilt(core, writer)
    core.forget()
    writer.save_checkpoint(state.to_arrays(), state.lsn)


def rebuilt(core: Core, reader: Reader) -> State:
    """The state, from the records alone: what every index is derived from."""
    head, slots = reader.head, reader.slot_map()
    state = State.bare(head.generation, head.lsn, slots.rows, slots.has_vector)
    texts: list[list[str]] = [[]] * len(slots.rows)
    metadatas: list[dict[str, Any]] = [{}] * len(slots.rows)
    alive = np.zeros(len(slots.rows), np.bool_)
    for batch in reader.scan():
        rows = np.fromiter((r.row for r in batch), dtype=np.int64, count=len(batch))
        for slot, record in zip(state.slots_of(rows).tolist(), batch, strict=True):
            if slot < 0:
                raise CorruptionError(
                    f"Record {record.id!r} has no slot in the vector file; restore a backup.",
                    str(core.storage.path),
                )
            texts[slot] = core.analyzer.terms(record.text)
            metadatas[slot] = record.metadata
            alive[slot] = True
    return state.filled(alive, texts, metadatas)


def compact(core: Core) -> CompactReport:
    """Copy what is alive into a new generation, switch to it, and let the old bytes go."""
    while True:
        with core.pinned(None) as snapshot:
            state = snapshot.state
            keep = np.flatnonzero(state.alive.view)
            new = core.storage.new_generation(snapshot.reader, keep)
        with new:
            new.seal(state.take(keep, new.generation).to_arrays())
            try:
                reclaimed = core.maintain(partial(_switch, core, new))
            except StaleGeneration:
                continue
        return CompactReport(
            removed=state.dead,
            before_bytes=reclaimed.before_bytes,
            after_bytes=reclaimed.after_bytes,
            pending_readers=reclaimed.pending_readers,
            left=reclaimed.left,
        )


def _switch(core: Core, new: NewGeneration, writer: Writer) -> Reclaimed:
    writer.switch_generation(new)
    core.forget()
    try:
        return writer.reclaim()
    except StoreError as error:
        raise StoreError(
            f"The store was compacted, but not all old bytes are gone: {error}. Open it and "
            "compact again."
        ) from error


def backup(core: Core, path: Path) -> None:
    """Copy one consistent snapshot to a new folder."""
    core.storage.backup(path)
