"""When was a record of a store last asked for, and which records came last?

Access times are documents of the store, beside its records, so that a reading neither rewrites
a record nor brings back one that was deleted meanwhile. Each scope has its own: what one tenant
reads shows in nobody else's ranking.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from langchain_core.documents import Document

from cormorant.langchain.documents import record_document
from cormorant.langchain.filtering import both, engine_filter
from cormorant.langchain.retrievers.rescoring.moments import moment
from cormorant.model import Record
from cormorant.store.door import Door
from cormorant.store.family import Family

__all__ = ["Accesses"]

_PREFIX: Final = "accessed:"
_AT: Final = "at"


class Accesses:
    """The access times of one store, or of one scope of it.

    Args:
        door: The store.
        index: The metadata field that numbers records in the order they were added.
    """

    def __init__(self, door: Door, index: str) -> None:
        self._door = door
        self._index = index

    def next_index(self) -> int:
        """The number of the next record."""
        # Another process may take the same one: that ties two records, and loses neither.
        highest = self._highest(1, {})
        return 0 if highest is None else highest + 1

    def latest(self, count: int, filter: Any = None) -> list[Document]:
        """The ``count`` records that were added last, the last first."""
        least = self._highest(count, filter) if count else None
        if least is None:
            return []
        found = self._door.records(self._since(least, filter))
        documents = [record_document(record) for record in found]
        documents.sort(key=lambda each: each.metadata[self._index], reverse=True)
        return documents[:count]

    def _highest(self, count: int, filter: Any) -> int | None:
        """The highest number that at least ``count`` records reach, or all if they are fewer."""
        total = self._door.count(self._since(0, filter))
        if not total:
            return None
        wanted = min(count, total)
        low, high = 0, 1
        while self._door.count(self._since(high, filter)) >= wanted:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            if self._door.count(self._since(middle, filter)) >= wanted:
                low = middle
            else:
                high = middle
        return low

    def _since(self, least: int, filter: Any) -> Any:
        since = {self._index: {"$gte": least}}
        joined = since if filter is None else both(since, filter)
        return engine_filter(since if joined is None else joined)

    def times(self, ids: Sequence[str]) -> dict[str, datetime]:
        """When the records with these ids were last asked for; those that never were, left out."""
        keys = {self._key(id): id for id in ids}
        found = {}
        for document in self._door.documents(list(keys)):
            at = moment(document.metadata.get(_AT))
            if at is not None:
                found[keys[document.id]] = at
        return found

    def touch(self, documents: Sequence[Document], at: datetime) -> None:
        """Remember that these records were asked for, in one transaction."""
        kept = [
            Record(id=self._key(str(each.id)), metadata={**self._bound(each.metadata), _AT: at})
            for each in documents
        ]
        self._door.add([], documents=kept)

    def forget(self, ids: Sequence[str]) -> None:
        """Delete the access times of records, as far as the scope sees them."""
        keys = [key for id in ids for key in self._door.document_ids(_about(id))]
        if keys:
            self._door.delete(family=Family(keys, None))

    def _bound(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Of the metadata, what the scope looks at, and nothing else: it outlives the record."""
        scope = self._door.within
        fields = frozenset() if scope.filter is None else scope.filter.fields
        tops = {field if field in metadata else field.split(".")[0] for field in fields}
        return {name: metadata[name] for name in tops if name in metadata}

    def _key(self, id: str) -> str:
        return _about(id) + _digest(repr(self._door.within))[:16]


def _about(id: str) -> str:
    """What the keys of one record's access times begin with, whoever asked for it."""
    return f"{_PREFIX}{_digest(id)[:32]}:"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
