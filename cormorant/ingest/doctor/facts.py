"""What do a store's records look like, all at once?

One pass over a bounded number of records; nothing is kept of a text but its length, its digest and
how it ends.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from cormorant.model import Record
from cormorant.store.door import Door

__all__ = ["Facts", "FieldFacts", "gather", "share"]

_VALUES: Final = 200  # different texts of a field, above which it is no enumeration
_VALUE: Final = 200  # characters of such a text
_COPIED: Final = 40  # characters from which a copy of a text is no coincidence
_LINE: Final = 40  # characters of a last line that may be a sentence; a shorter one is a heading
_ENDS: Final = frozenset(".!?…。！？｡:：;；\"'”’»)]}）】」』`|")
_UNIT: Final = 1e-3  # how far the length of a normalised vector may be from 1


@dataclass(slots=True)
class FieldFacts:
    """One metadata field.

    Attributes:
        present: Records that have it.
        values: Its texts and how often; None once they are too many to be an enumeration.
        copies: Ids of records whose text it repeats.
    """

    present: int = 0
    values: Counter[str] | None = field(default_factory=Counter)
    copies: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Facts:
    """What one pass found.

    Attributes:
        store: What was looked at.
        records, examined: How many there are, and how many were looked at.
        lengths: Characters of each text.
        empty, cut, bare, skewed: Ids of records without text; that end within a sentence; without
            a vector; whose vector is not of length 1.
        twins: Ids of records whose text an earlier one has.
        fields: By name.
        spans: Source, begin and end of each chunk that says them.
    """

    store: Door
    records: int
    examined: int = 0
    lengths: list[tuple[int, str]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    skewed: list[str] = field(default_factory=list)
    twins: list[str] = field(default_factory=list)
    fields: dict[str, FieldFacts] = field(default_factory=dict)
    spans: list[tuple[str, int, int]] = field(default_factory=list)

    def overlaps(self) -> list[int]:
        """By how many characters each chunk overlaps the one before it in its source."""
        found = []
        spans = sorted(set(self.spans))
        for (source, _, end), (following, start, _) in pairwise(spans):
            if source == following:
                found.append(end - start)
        return found


def gather(store: Door, limit: int) -> Facts:
    """Look at the oldest ``limit`` records of a store, or of a scope."""
    facts = Facts(store, store.count())
    seen: set[bytes] = set()
    for record in store.records(with_vectors=True):
        if facts.examined >= limit:
            break
        facts.examined += 1
        _text(facts, record, seen)
        _vector(facts, record)
        for name, value in record.metadata.items():
            _metadata(facts.fields.setdefault(name, FieldFacts()), record, value)
    return facts


def share(part: int, whole: int) -> float:
    """A part of a whole; 0 of nothing."""
    return part / whole if whole else 0.0


def _text(facts: Facts, record: Record, seen: set[bytes]) -> None:
    text = record.text.strip()
    facts.lengths.append((len(record.text), record.id))
    if not text:
        facts.empty.append(record.id)
        return
    digest = hashlib.sha256(text.encode()).digest()[:16]
    if digest in seen:
        facts.twins.append(record.id)
    seen.add(digest)
    last = text.rsplit("\n", 1)[-1]
    wide = any(unicodedata.east_asian_width(char) == "W" for char in last[-_LINE:])
    if len(last) >= (_LINE // 2 if wide else _LINE) and last[-1] not in _ENDS:
        facts.cut.append(record.id)
    source, start = record.metadata.get("source"), record.metadata.get("start_index")
    if isinstance(source, str) and isinstance(start, int):
        facts.spans.append((source, start, start + len(record.text)))


def _vector(facts: Facts, record: Record) -> None:
    if record.vector is None:
        facts.bare.append(record.id)
    elif abs(float(np.linalg.norm(np.asarray(record.vector, np.float64))) - 1.0) > _UNIT:
        facts.skewed.append(record.id)


def _metadata(facts: FieldFacts, record: Record, value: Any) -> None:
    if value is None:
        return
    facts.present += 1
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str):
            continue
        text = record.text.strip()
        if len(text) >= _COPIED and text in each:
            facts.copies.append(record.id)
        if facts.values is not None:
            facts.values[each[:_VALUE]] += 1
            if len(facts.values) > _VALUES or len(each) > _VALUE:
                facts.values = None
