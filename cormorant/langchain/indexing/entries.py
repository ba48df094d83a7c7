"""What is kept of an indexed key, and under which ids?

Documents of the package's own, so that scopes, backups and compaction take them along. Each key
has an entry, and a signpost under its group, so that the keys of a group are found by their ids'
beginning. A signpost may be left behind by a change of group: the entry alone says what holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cormorant.errors import CorruptionError
from cormorant.model import Record
from cormorant.store import OWN_DOCUMENTS, stamps_of
from cormorant.store.door import Door

__all__ = ["Entries", "Entry"]

_VERSION: Final = 1
_READ: Final = 256  # entries at once


@dataclass(frozen=True, slots=True)
class Entry:
    """One indexed key.

    Attributes:
        key: As it was given.
        group: Its source; None if it was never given one.
        updated_at: In seconds since the epoch.
    """

    key: str
    group: str | None
    updated_at: float


class Entries:
    """The ids and texts of one namespace's entries.

    Args:
        door: The store, or a scope of it.
        namespace: Keeps several indexes in one store apart.

    Raises:
        ScopeError: In a scope whose predicates are not all equalities.
    """

    def __init__(self, door: Door, namespace: str) -> None:
        self._door = door
        inside = stamps_of(door, "Records are managed in a store, or in a scope")
        self._prefix = f"{OWN_DOCUMENTS}index/{_digest(inside, namespace)}/"
        self.clock_id = f"{self._prefix}clock"

    def entry_id(self, key: str) -> str:
        """Where a key's entry is."""
        return f"{self._prefix}k/{_digest(key)}"

    def signpost_id(self, group: str, key: str) -> str:
        """Where a group's signpost to a key is."""
        return f"{self._prefix}g/{_digest(group)}/{_digest(key)}"

    def ids(self, groups: Sequence[str] | None) -> list[str]:
        """The ids of all entries, or of those that signposts of these groups point to."""
        if groups is None:
            return self._door.document_ids(f"{self._prefix}k/")
        found = [
            f"{self._prefix}k/{id.rsplit('/', 1)[1]}"
            for group in dict.fromkeys(groups)
            for id in self._door.document_ids(f"{self._prefix}g/{_digest(group)}/")
        ]
        return list(dict.fromkeys(found))

    def read(self, ids: Sequence[str]) -> Iterator[Entry]:
        """The entries of these ids, as far as there are any, a few in memory at a time."""
        for first in range(0, len(ids), _READ):
            for document in self._door.documents(ids[first : first + _READ]):
                yield read(document)

    def written(self, entry: Entry) -> list[Record]:
        """An entry and its signpost, to be kept."""
        fields = [_VERSION, entry.key, entry.group, entry.updated_at]
        records = [Record(self.entry_id(entry.key), json.dumps(fields, ensure_ascii=False))]
        if entry.group is not None:
            records.append(Record(self.signpost_id(entry.group, entry.key), ""))
        return records


def read(document: Record) -> Entry:
    """An entry as it was kept.

    Raises:
        CorruptionError: If it is something else.
    """
    try:
        fields: list[Any] = json.loads(document.text)
        version, *rest = fields
        if version != _VERSION:
            raise ValueError("it is of a version this release does not read")
        return Entry(*rest)
    except (ValueError, TypeError) as error:
        raise CorruptionError(
            f"What is kept of an indexed document cannot be read ({document.id}): {error!r}. "
            "Restore the store from a backup, or index into a new one."
        ) from error


def _digest(*parts: str) -> str:
    written = "\0".join(parts)
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()[:32]
