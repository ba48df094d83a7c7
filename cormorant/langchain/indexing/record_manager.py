"""Which documents were indexed, of which source, and when? LangChain's RecordManager."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain_core.indexing import RecordManager
from typing_extensions import override

from cormorant.errors import UsageError
from cormorant.langchain.calls.pool import in_pool
from cormorant.langchain.indexing.entries import Entries, Entry, read
from cormorant.langchain.scopes.in_force import narrowed
from cormorant.langchain.vectorstore import Cormorant
from cormorant.model import Record
from cormorant.ranges import check_whole
from cormorant.store.door import Door

__all__ = ["CormorantRecordManager"]

T = TypeVar("T")


class CormorantRecordManager(RecordManager):
    """Keeps what ``langchain_core.indexing.index()`` has to know inside the store it indexes into.

    So a backup, a copy or a restored store has both, and they say the same. Each call is one
    transaction. No search, count or listing sees what is kept.

    Its clock is the wall clock, but never runs behind what is kept: a machine whose time was set
    back does not make ``index()`` take what it has just written for outdated.

    Args:
        store: An open store, a scope of one whose predicates are equalities, or a Cormorant
            vector store. It stays open.
        namespace: Keeps several indexes in one store apart.

    Raises:
        UsageError: On something else than a store, or a namespace that is no text.

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.indexing import index
        >>> from cormorant.langchain import Cormorant
        >>> with Cormorant(DeterministicFakeEmbedding(size=8)) as vs:
        ...     manager = CormorantRecordManager(vs, "wiki")
        ...     pages = [Document("a fish", metadata={"source": "fish.md"})]
        ...     how = {"cleanup": "incremental", "source_id_key": "source"}
        ...     first = index(pages, manager, vs, key_encoder="sha256", **how)
        ...     again = index(pages, manager, vs, key_encoder="sha256", **how)
        ...     first["num_added"], again["num_skipped"]
        (1, 1)
    """

    def __init__(self, store: Door | Cormorant, namespace: str) -> None:
        door = store.store if isinstance(store, Cormorant) else store
        if not isinstance(door, Door):
            raise UsageError(
                "CormorantRecordManager takes an open cormorant.Store, a scope of one, or a "
                f"Cormorant; got a {type(store).__name__}."
            )
        if not isinstance(namespace, str):
            raise UsageError(f"namespace takes a text; got a {type(namespace).__name__}.")
        super().__init__(namespace)
        self._base = door
        self._latest = 0.0

    @property
    def _door(self) -> Door:
        """The store, inside the scopes in force."""
        return narrowed(self._base)

    @override
    def create_schema(self) -> None:
        """Nothing to do: a store keeps documents from the start."""

    @override
    async def acreate_schema(self) -> None:
        """Nothing to do: a store keeps documents from the start."""

    @override
    def get_time(self) -> float:
        """Now, in seconds since the epoch; later than all that is kept."""
        door = self._door
        kept = door.documents([Entries(door, self.namespace).clock_id])
        high = math.nextafter(float(kept[0].text), math.inf) if kept else 0.0
        self._latest = max(time.time(), high, self._latest)
        return self._latest

    @override
    async def aget_time(self) -> float:
        """Like :meth:`get_time`, without holding the event loop."""
        return await self._in_pool(self.get_time)

    @override
    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Keep that these keys are indexed as of now.

        Args:
            keys: Of documents.
            group_ids: The source of each. Without, a key keeps the one it has: ``index()``
                refreshes keys without saying their sources, and if it is stopped after that,
                they must still be found by the next clean-up of their source.
            time_at_least: Refuse if the clock is behind this.

        Raises:
            UsageError: If there is not one group for each key, or the clock is behind.
        """
        self._update(keys, group_ids, time_at_least, self.get_time())

    def _update(
        self,
        keys: Sequence[str],
        group_ids: Sequence[str | None] | None,
        time_at_least: float | None,
        now: float,
    ) -> None:
        given = _texts(keys)
        if group_ids is not None and len(group_ids) != len(given):
            raise UsageError(
                f"update takes one group id per key; got {len(group_ids)} group ids and "
                f"{len(given)} keys. Nothing was changed."
            )
        if time_at_least is not None and time_at_least > now:
            raise UsageError(
                f"time_at_least is {time_at_least!r}, and the clock says {now!r}: it must not be "
                "in the future. Take it from get_time()."
            )
        if not given:
            return
        groups = None if group_ids is None else dict(zip(given, group_ids, strict=True))
        door = self._door
        entries = Entries(door, self.namespace)
        ids = [entries.entry_id(key) for key in dict.fromkeys(given)]
        before = [
            entries.signpost_id(each.group, each.key)
            for each in entries.read(ids)
            if each.group is not None
        ]

        def change(found: list[Record]) -> list[Record]:
            clock = [each for each in found if each.id == entries.clock_id]
            wanted = set(ids)
            known = {each.key: each for each in map(read, (e for e in found if e.id in wanted))}
            kept: list[Record] = []
            for key in dict.fromkeys(given):
                old = known[key].group if key in known else None
                group = old if groups is None else groups[key]
                kept += entries.written(Entry(key, group, now))
            high = max([now, *(float(each.text) for each in clock)])
            return [*kept, Record(entries.clock_id, repr(high))]

        door.revise_documents([*ids, *before, entries.clock_id], change)

    @override
    async def aupdate(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Like :meth:`update`, without holding the event loop."""
        now = await self.aget_time()
        await self._in_pool(self._update, keys, group_ids, time_at_least, now)

    @override
    def exists(self, keys: Sequence[str]) -> list[bool]:
        """For each key, whether it is kept."""
        given = _texts(keys)
        entries = Entries(self._door, self.namespace)
        known = {each.key for each in entries.read([entries.entry_id(key) for key in given])}
        return [key in known for key in given]

    @override
    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """Like :meth:`exists`, without holding the event loop."""
        return await self._in_pool(self.exists, keys)

    @override
    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str | None] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """The keys that satisfy all of this.

        Args:
            before: Updated before this, and not at it.
            after: Updated after this, and not at it.
            group_ids: Of one of these sources; None among them means keys without one.
            limit: At most so many.

        Raises:
            UsageError: If the limit is below 1.
        """
        if limit is not None:
            check_whole("limit", limit, error=UsageError)
        entries = Entries(self._door, self.namespace)
        wanted = None if group_ids is None else set(group_ids)
        named = [group for group in group_ids or () if group is not None]
        # Keys without a source have no signpost: all have to be looked at.
        ids = entries.ids(None if wanted is None or None in wanted else named)
        found: list[str] = []
        for each in entries.read(ids):
            if wanted is not None and each.group not in wanted:
                continue
            if before is not None and each.updated_at >= before:
                continue
            if after is not None and each.updated_at <= after:
                continue
            found.append(each.key)
            if len(found) == limit:
                break
        return found

    @override
    async def alist_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str | None] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Like :meth:`list_keys`, without holding the event loop."""
        return await self._in_pool(
            lambda: self.list_keys(before=before, after=after, group_ids=group_ids, limit=limit)
        )

    @override
    def delete_keys(self, keys: Sequence[str]) -> None:
        """Forget these keys; unknown ones are skipped."""
        entries = Entries(self._door, self.namespace)
        ids = [entries.entry_id(key) for key in _texts(keys)]
        posts = [
            entries.signpost_id(each.group, each.key)
            for each in entries.read(ids)
            if each.group is not None
        ]
        if ids:
            self._door.revise_documents([*ids, *posts], lambda _found: [])

    @override
    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """Like :meth:`delete_keys`, without holding the event loop."""
        await self._in_pool(self.delete_keys, keys)

    async def _in_pool(self, work: Callable[..., T], *args: Any) -> T:
        return await in_pool(self._base.executor, work, *args)

    def __repr__(self) -> str:
        return f"<CormorantRecordManager {self.namespace!r} {self._door!r}>"


def _texts(keys: Sequence[str]) -> list[str]:
    if isinstance(keys, (str, bytes)):
        raise UsageError(f"keys takes a list of texts; got {keys!r}. Put it in a list.")
    given = list(keys)
    for key in given:
        if not isinstance(key, str):
            raise UsageError(f"keys takes a list of texts; got a {type(key).__name__} in it.")
    return given
