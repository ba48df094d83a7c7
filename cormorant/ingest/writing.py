"""What does one transaction of a sync write?

A chunk's metadata are those it has because of the first source that holds it, by collection and
name; if several sources hold it, ``sources`` names them. So a store that was synced again and
again equals one that was made at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cormorant import defaults
from cormorant.ingest.cutting import Broken, Change, Ended, Gone, Piece, Same
from cormorant.ingest.ledger import Ledger, Version
from cormorant.ingest.manifest import Kept, Manifest, Part, Place
from cormorant.model import Record
from cormorant.store import Family
from cormorant.store.door import Door

__all__ = ["SOURCES", "Transaction", "Written", "compose"]

SOURCES: Final = "sources"
"""The metadata field that names the sources of a chunk which several hold."""


@dataclass(frozen=True, slots=True)
class Written:
    """How many records a transaction added, wrote again and took out."""

    added: int
    updated: int
    deleted: int


@dataclass(slots=True)
class Transaction:
    """Everything of one transaction; :meth:`commit` does it.

    Attributes:
        bare: Records that need a vector yet.
        ready: Records that bring theirs, or need none.
        gone: Ids of records that leave.
        documents, dropped: Of the record-keeping, to be written and to be taken out.
        fresh: Ids the store does not have yet.
        pieces, ending, heads, lost: What the ledger is told once all this is committed.
    """

    bare: list[Record] = field(default_factory=list)
    ready: list[Record] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    documents: list[Record] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    pieces: list[Piece] = field(default_factory=list)
    ending: list[Version] = field(default_factory=list)
    heads: list[Kept] = field(default_factory=list)
    lost: list[Place] = field(default_factory=list)

    def commit(self, store: Door, ledger: Ledger, vectors: Sequence[Any]) -> Written:
        """Write all of it, and tell the ledger.

        Args:
            store: The store, in its scope.
            ledger: Of the store.
            vectors: One for each of ``bare``; empty for a store of text alone.
        """
        records = list(self.ready)
        if len(vectors):
            records += [
                replace(record, vector=vector)
                for record, vector in zip(self.bare, vectors, strict=True)
            ]
        else:
            records += self.bare
        if records or self.gone or self.documents or self.dropped:
            family = Family(self.dropped, None) if self.dropped else None
            store.add(records, documents=self.documents, family=family, gone=self.gone)
        for piece in self.pieces:
            ledger.hold(piece.version, list(piece.chunks))
        for version in self.ending:
            ledger.drop(version)
        for head in self.heads:
            ledger.kept[head.place] = head
        for place in self.lost:
            ledger.kept.pop(place, None)
        added = len(self.fresh)
        return Written(added, len(records) - added, len(self.gone))


def compose(
    store: Door, manifest: Manifest, ledger: Ledger, changes: Sequence[Change], *, vectors: bool
) -> Transaction:
    """The transaction that makes these changes, and leaves every chunk as its sources want it.

    Args:
        store: The store, in its scope.
        manifest: Its record-keeping.
        ledger: What it holds.
        changes: What is to be done.
        vectors: Whether chunks are embedded.
    """
    done = Transaction()
    given_up = {change.version for change in changes if isinstance(change, Broken)}
    done.pieces = [
        change for change in changes if isinstance(change, Piece) and change.version not in given_up
    ]
    _keep_books(done, manifest, ledger, changes)
    ending = set(done.ending)
    fresh: dict[str, list[tuple[Version, dict[str, Any]]]] = {}
    texts: dict[str, str] = {}
    for piece in done.pieces:
        for id, metadata in piece.chunks.items():
            fresh.setdefault(id, []).append((piece.version, metadata))
        texts.update(piece.texts)
    touched = dict.fromkeys(fresh)
    for version in done.ending:
        kept = ledger.kept.get(version.place)
        # What a later version holds too was settled when its piece was written.
        later = None if kept is None else Version(version.place, -kept.build)
        settled_by = later if later is not None and later < version else None
        for id in _ids(manifest, version):
            if settled_by is None or not ledger.holds(settled_by, id):
                touched.setdefault(id)
    wanted: dict[str, dict[str, Any]] = {}
    for id in touched:
        settled = _metadata(ledger, ending, id, fresh.get(id, []))
        if settled is None:
            done.gone.append(id)
        else:
            wanted[id] = settled
    _sort(done, store, wanted, texts, vectors=vectors)
    return done


def _keep_books(
    done: Transaction, manifest: Manifest, ledger: Ledger, changes: Sequence[Change]
) -> None:
    for piece in done.pieces:
        version = piece.version
        if piece.chunks:
            part = Part(version.place, version.build, piece.number, piece.chunks)
            done.documents.append(manifest.part(part))
        if piece.head is not None:
            done.heads.append(piece.head)
    for change in changes:
        if isinstance(change, Same) and change.head is not None:
            done.heads.append(change.head)
        elif isinstance(change, Gone):
            done.ending += ledger.versions(change.place)
            done.lost.append(change.place)
            if change.place in ledger.kept:
                done.dropped.append(manifest.head_id(change.place))
        elif isinstance(change, Ended):
            done.ending.append(change.version)
    done.documents += [manifest.head(head) for head in done.heads]
    for version in done.ending:
        done.dropped += manifest.part_ids(version.place, version.build)


def _ids(manifest: Manifest, version: Version) -> Iterator[str]:
    for part in manifest.parts(version.place, version.build):
        yield from part.chunks


def _metadata(
    ledger: Ledger,
    ending: set[Version],
    id: str,
    fresh: list[tuple[Version, dict[str, Any]]],
) -> dict[str, Any] | None:
    """What a chunk's metadata are to be; None if no source holds it any more."""
    given = dict(fresh)
    holders = sorted({*(v for v in ledger.holders(id) if v not in ending), *given})
    first: dict[str, Any] | None = None
    places: list[Place] = []
    for version in holders:
        if version in given:
            metadata: dict[str, Any] | None = given[version]
        elif first is not None and version.place in places:
            continue
        else:
            # Only the first one's are wanted; of the others, whether they really hold it.
            metadata = ledger.metadata(version, id)
        if metadata is None:
            continue
        first = metadata if first is None else first
        if version.place not in places:
            places.append(version.place)
        if len(places) > defaults.SYNC_SOURCES_LISTED:
            break
    if first is None:
        return None
    if len(places) > 1:
        named = sorted({place.source for place in places})
        return {**first, SOURCES: named[: defaults.SYNC_SOURCES_LISTED]}
    return first


def _sort(
    done: Transaction,
    store: Door,
    wanted: dict[str, dict[str, Any]],
    texts: dict[str, str],
    *,
    vectors: bool,
) -> None:
    """Which records have to be written, and which of them embedded?"""
    ids = list(wanted)
    for at in range(0, len(ids), defaults.SYNC_CHUNKS):
        some = ids[at : at + defaults.SYNC_CHUNKS]
        stored = {record.id: record for record in store.get(some, with_vectors=True)}
        for id in some:
            record = stored.get(id)
            if record is None:
                # Deleted behind our back, and not among what was read now: another sync will.
                if id in texts:
                    done.fresh.add(id)
                    done.bare.append(Record(id, texts[id], None, wanted[id]))
            elif vectors and record.vector is None:
                done.bare.append(Record(id, record.text, None, wanted[id]))
            elif dict(record.metadata) != wanted[id]:
                done.ready.append(Record(id, record.text, record.vector, wanted[id]))
