"""When does a store learn how far its legs are to be trusted?

On a snapshot, without the store's lock: readers and writers go on meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cormorant.search import Trust, learn
from cormorant.store import settings

if TYPE_CHECKING:
    from cormorant.store.core import Core
    from cormorant.store.snapshot import Snapshot

__all__ = ["learn_if_changed", "learn_trust"]


def learn_trust(core: Core) -> Trust:
    """Learn, and keep it."""
    core.check_writable(None)
    with core.pinned(None) as snapshot:
        trust = learn(snapshot, newest=_newest(snapshot), fingerprint=snapshot.config.fingerprint)
    settings.set_trust(core, trust)
    return trust


def learn_if_changed(core: Core) -> None:
    """Learn, unless there is nothing to learn from or nothing came since the last time."""
    core.check_writable(None)
    with core.pinned(None) as snapshot:
        kept = snapshot.trust
        if not snapshot.state.with_vector or (kept and kept.newest == _newest(snapshot)):
            return
    learn_trust(core)


def _newest(snapshot: Snapshot) -> int:
    """The newest record's row."""
    rows = snapshot.state.rows.view
    return int(rows[-1]) if len(rows) else 0
