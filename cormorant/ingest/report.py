"""What did a sync do, what did it leave, and how far is it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Failed", "Progress", "SyncReport"]


@dataclass(frozen=True, slots=True)
class Failed:
    """A source that could not be read; what the store holds of it stays.

    Attributes:
        source: Its name, relative to the folder.
        error: Why.
    """

    source: str
    error: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sync is.

    Attributes:
        sources, of_sources: Sources that are done, and all.
        done_bytes, total_bytes: Of the files that had, or have, to be read.
        embedded: Texts that were given to the embedder.
        seconds: Since the start.
        left_s: Seconds that are left, by the bytes done so far; None until that can be said.
    """

    sources: int
    of_sources: int
    done_bytes: int
    total_bytes: int
    embedded: int
    seconds: float
    left_s: float | None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did; for a dry run, what it would do.

    Sources are counted once each: ``added + updated + moved + skipped + deleted + failed``.

    Attributes:
        added, updated, moved, skipped, deleted: Sources that are new; changed in text, metadata
            or the way they are cut; renamed; unchanged; gone.
        failed: Sources that could not be read.
        embedded: Distinct texts that were embedded.
        tokens: Tokens of those.
        tokens_by: What counted them.
        chunks_added, chunks_updated, chunks_deleted: Records that are new; were written again
            with other metadata, or with a vector they lacked; are gone. None in a dry run, which
            does not find out.
        seconds: Wall time.
        usd: What embedding cost by the price table; None if it has no price for the embedder.
        dry_run: Whether nothing was changed.
        notes: What should be known besides, a sentence each.
    """

    added: int
    updated: int
    moved: int
    skipped: int
    deleted: int
    failed: tuple[Failed, ...]
    embedded: int
    tokens: int
    tokens_by: str
    chunks_added: int | None
    chunks_updated: int | None
    chunks_deleted: int | None
    seconds: float
    usd: float | None
    dry_run: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every source could be read."""
        return not self.failed

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, under the attributes' names."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        fields["failed"] = [{"source": each.source, "error": each.error} for each in self.failed]
        fields["notes"] = list(self.notes)
        return fields
