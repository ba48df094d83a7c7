"""When does a store learn how far its legs are to be trusted?

On a snapshot, without the store's lock: readers and writers go on meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cormorant.search import Embed, Trust, learn, questions
from cormorant.store import settings

if TYPE_CHECKING:
    from cormorant.store.core import Core
    from cormorant.store.snapshot import Snapshot

__all__ = ["learn_if_changed", "learn_trust"]


def learn_trust(core: Core, embed: Embed | None = None) -> Trust:
    """Learn, and keep it.

    What an embedder was found to understand stays known as long as it is the same one.
    """
    core.check_writable(None)
    if embed is not None:
        with core.pinned(None) as snapshot:
            asked = questions(snapshot)
        embed = _beforehand(asked, embed)
    with core.pinned(None) as snapshot:
        config = snapshot.config
        trust = learn(
            snapshot, newest=_newest(snapshot), fingerprint=config.fingerprint, embed=embed
        )
        kept = config.trust
    if embed is None and kept is not None and kept.fingerprint == trust.fingerprint is not None:
        trust = replace(trust, heard=kept.heard, probes=kept.probes)
    settings.set_trust(core, trust)
    return trust


def learn_if_changed(core: Core, embed: Embed | None = None) -> None:
    """Learn, unless there is nothing to learn from or nothing came since the last time.

    An embedder is asked if it was not before.
    """
    core.check_writable(None)
    with core.pinned(None) as snapshot:
        kept = snapshot.trust
        asked = embed is None or (kept is not None and kept.heard is not None)
        unchanged = kept is not None and kept.newest == _newest(snapshot) and asked
        if not snapshot.state.with_vector or unchanged:
            return
    learn_trust(core, embed)


def _beforehand(asked: list[str], embed: Embed) -> Embed:
    """Embeds now, while nothing of the store is held: a model may take its time."""
    known = {text: embed(text) for text in dict.fromkeys(asked)}
    return lambda text: known[text] if text in known else embed(text)


def _newest(snapshot: Snapshot) -> int:
    """The newest record's row."""
    rows = snapshot.state.rows.view
    return int(rows[-1]) if len(rows) else 0
