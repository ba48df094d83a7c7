"""What is read out of a snapshot, page by page: records, documents, families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant import search as searching
from cormorant.model import FilterLike, Record

if TYPE_CHECKING:
    from cormorant.store.family import Family
    from cormorant.store.scope import Scope
    from cormorant.store.snapshot import Snapshot

__all__ = [
    "Relatives",
    "document_pages",
    "documents_of",
    "record_pages",
    "relatives",
    "with_their_vectors",
]

_DOCUMENTS: Final = 64  # read at once: each may be large


class Relatives(NamedTuple):
    """A family as it is stored: ascending rows of its records, ids of its documents."""

    rows: NDArray[np.int64]
    documents: list[str]


def relatives(snapshot: Snapshot, scope: Scope, family: Family | None) -> Relatives:
    """What of a family is stored, inside the scope."""
    rows = np.empty(0, np.int64)
    if family is None:
        return Relatives(rows, [])
    ids = family.document_ids(snapshot.reader)
    if family.field is not None:
        mask = searching.matching(snapshot, {family.field: {"$in": ids}})
        rows = snapshot.state.rows.view[np.flatnonzero(mask)]
    kept = [] if family.keep else documents_of(snapshot, scope, ids)
    return Relatives(rows, [document.id for document in kept])


def record_pages(
    snapshot: Snapshot, filter: FilterLike | None, *, with_vectors: bool, batch: int
) -> Iterator[list[Record]]:
    """The records that satisfy the filter, oldest first, ``batch`` at a time."""
    slots = np.flatnonzero(searching.matching(snapshot, filter))
    for start in range(0, len(slots), batch):
        some = slots[start : start + batch]
        records = snapshot.fetch(some)
        if with_vectors:
            pairs = list(zip(records, some.tolist(), strict=True))
            records = with_their_vectors(snapshot, pairs)
        yield records


def document_pages(snapshot: Snapshot, scope: Scope, prefix: str = "") -> Iterator[list[Record]]:
    """The documents of the scope whose ids begin with ``prefix``, by id, a few at a time."""
    ids = snapshot.reader.document_ids(prefix)
    for start in range(0, len(ids), _DOCUMENTS):
        found = documents_of(snapshot, scope, ids[start : start + _DOCUMENTS])
        yield sorted(found, key=lambda document: document.id)


def documents_of(snapshot: Snapshot, scope: Scope, ids: Sequence[str]) -> list[Record]:
    """The documents of the scope with these ids, in no order."""
    return [
        Record(id=id, text=document.text, metadata=document.metadata)
        for id, document in snapshot.reader.documents(ids).items()
        if scope.admits(document.metadata)
    ]


def with_their_vectors(snapshot: Snapshot, kept: list[tuple[Record, int]]) -> list[Record]:
    """The records with the vectors of their slots."""
    vectors = snapshot.vectors()
    has = snapshot.has_vector
    return [
        replace(record, vector=vectors[slot].copy())
        if vectors is not None and has[slot]
        else record
        for record, slot in kept
    ]
