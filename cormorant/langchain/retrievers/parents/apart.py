"""How do parents and children get into two stores, and out of them, if one of them may fail?

In an order in which an error can be undone. What could not be undone is said in the notes of
the error, and the next call on the same documents finds it and clears it away.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from cormorant.errors import StoreError, UsageError
from cormorant.langchain.calls.steps import Steps, on
from cormorant.langchain.retrievers.parents.kin import (
    Parent,
    all_children,
    children_of,
    parts_of,
    remembering,
)
from cormorant.langchain.vectorstore import Cormorant

__all__ = ["Apart"]

logger = logging.getLogger(__name__)

Documents = dict[str, Document]


@dataclass(frozen=True, slots=True)
class Apart:
    """A store of children and a store of parents that share no transaction."""

    vectorstore: VectorStore
    docstore: BaseStore[str, Document]

    def put(
        self,
        ids: Sequence[str],
        parents: Sequence[Parent],
        children: Sequence[Document],
        *,
        parts: bool,
        keep_parents: bool,
        arguments: Mapping[str, Any],
    ) -> Steps[None]:
        """Put parents and children in place of what was there of these documents.

        Args:
            ids: Of the documents.
            parents: The documents, or their parts.
            children: All of theirs, in order, as they are stored.
            parts: Whether a document's parents are its parts, ``id#0``, ``id#1``, …
            keep_parents: Whether the parents are in the docstore already, and stay.
            arguments: Passed to ``vectorstore.add_documents``.
        """
        old = yield from self._stored(ids, parts=parts)
        stale = all_children(old.values())
        self._check_can_delete(stale)
        if not keep_parents:
            _warn_of_unknown(old)
        try:
            added = yield on(self.vectorstore, "add_documents", list(children), **arguments)
        except BaseException as error:
            error.add_note(
                "The parents are as they were. Children that the vector store took before it "
                "failed, if any, are still there."
            )
            raise
        fresh = [str(id) for id in added or []]
        new: Documents = {}
        try:
            new = self._to_keep(parents, old if keep_parents else None, fresh, parts=parts)
            yield on(self.docstore, "mset", list(new.items()))
            surplus = [] if keep_parents else [key for key in old if key not in new]
            if surplus:
                yield on(self.docstore, "mdelete", surplus)
        except BaseException as error:
            yield from self._undo(old, new, fresh, stale, error)
            raise
        try:
            yield from self._drop_children([id for id in stale if id not in set(fresh)])
        except BaseException as error:
            yield from self._owe(old, new, set(fresh), error)
            raise

    def remove(self, ids: Sequence[str], *, parts: bool) -> Steps[None]:
        """Remove documents with their parts and children; unknown ids are skipped."""
        old = yield from self._stored(ids, parts=parts)
        if parts:
            old.update((yield from self._stored(ids, parts=False)))
        if not old:
            return
        try:
            yield from self._drop_children(all_children(old.values()))
        except BaseException as error:
            error.add_note(
                "The parents are as they were; some of their children may be gone. Delete again."
            )
            raise
        firsts = [f"{id}#0" for id in ids] if parts else []
        rest = [key for key in old if key not in firsts]
        try:
            if rest:
                yield on(self.docstore, "mdelete", rest)
            # Last, because it knows how many parts there are to delete.
            if first := [key for key in firsts if key in old]:
                yield on(self.docstore, "mdelete", first)
        except BaseException as error:
            error.add_note(
                "The children are deleted, so no search finds these documents; the docstore may "
                "still have them. Delete again."
            )
            raise

    # What is kept

    def _to_keep(
        self,
        parents: Sequence[Parent],
        there: Documents | None,
        fresh: Sequence[str],
        *,
        parts: bool,
    ) -> Documents:
        """What the docstore is given, by key: parents that remember their families.

        Args:
            parents: With the documents to keep.
            there: The documents to keep instead, those the docstore has.
            fresh: The ids that the children were given, all of them in order.
            parts: Whether the parents are parts of documents.
        """
        total = sum(len(parent.children) for parent in parents)
        told = len(fresh) == total
        if not told:
            logger.warning(
                "%s returned %d ids for %d children, so these cannot be replaced or deleted with "
                "their documents.",
                type(self.vectorstore).__name__,
                len(fresh),
                total,
            )
        counts = Counter(p.id.rpartition("#")[0] for p in parents) if parts else {}
        new: Documents = {}
        first = 0
        for parent in parents:
            mine = fresh[first : first + len(parent.children)] if told else None
            first += len(parent.children)
            document = parent.document if there is None else there.get(parent.id)
            if document is None:
                continue  # the caller says it is there; it is not: nothing to remember it by
            metadata = copy.deepcopy(document.metadata)
            if isinstance(self.vectorstore, Cormorant):
                metadata = self.vectorstore.store.stamped(metadata, id=parent.id)
            source, _, number = parent.id.rpartition("#")
            new[parent.id] = remembering(
                document.model_copy(update={"metadata": metadata}),
                children=mine,
                parts=counts[source] if number == "0" and source in counts else None,
            )
        return new

    def _stored(self, ids: Sequence[str], *, parts: bool) -> Steps[Documents]:
        """The parents that these documents have in the docstore, by key."""
        found = yield from self._got([f"{id}#0" if parts else id for id in ids])
        if parts:
            more = [
                f"{id}#{number}"
                for id in ids
                if f"{id}#0" in found
                for number in range(1, parts_of(found[f"{id}#0"]))
            ]
            found.update((yield from self._got(more)))
        return found

    def _got(self, keys: Sequence[str]) -> Steps[Documents]:
        if not keys:
            return {}
        values = yield on(self.docstore, "mget", list(keys))
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    # After an error

    def _undo(
        self,
        old: Documents,
        new: Documents,
        fresh: Sequence[str],
        stale: Sequence[str],
        error: BaseException,
    ) -> Steps[None]:
        """Take back what was put; note on the error what could not be."""
        try:
            now = yield from self._got(list({**old, **new}))
            lost = [(key, document) for key, document in old.items() if now.get(key) != document]
            if lost:
                yield on(self.docstore, "mset", lost)
            if surplus := [key for key in now if key not in old]:
                yield on(self.docstore, "mdelete", surplus)
        except Exception as second:  # noqa: BLE001 - the first error is the one to raise
            error.add_note(
                f"The docstore could not be put back either ({second}): some of these documents "
                "may be there in their new version. Add them again."
            )
        # Children whose parents never came would be found, and lead nowhere.
        undone = [id for id in fresh if id not in set(stale)]
        try:
            yield from self._drop_children(undone)
        except Exception as second:  # noqa: BLE001 - the first error is the one to raise
            error.add_note(
                f"The {len(undone)} new children could not be deleted either ({second}); they are "
                f"still in the vector store: {', '.join(undone[:3])}{' …' if undone[3:] else ''}."
            )
        if overwritten := len(fresh) - len(undone):
            error.add_note(
                f"{overwritten} children have ids that their documents' old children had, and took "
                "their places; they lead to the old documents. Add these again."
            )

    def _owe(
        self, old: Documents, new: Documents, fresh: set[str], error: BaseException
    ) -> Steps[None]:
        """Have the new parents remember the old children that are still there."""
        owed: dict[str, list[str]] = {}
        for key, document in old.items():
            heir = key if key in new else f"{key.rpartition('#')[0]}#0"
            left = [id for id in all_children([document]) if id not in fresh]
            owed.setdefault(heir, []).extend(left)
        says = (
            f"The documents are stored; {sum(map(len, owed.values()))} old children of theirs are "
            "still in the vector store, and found. "
        )
        try:
            pairs = [(key, _owing(new[key], left)) for key, left in owed.items() if left]
            yield on(self.docstore, "mset", pairs)
        except Exception as second:  # noqa: BLE001 - the first error is the one to raise
            error.add_note(f"{says}Their ids could not be kept either: {second}")
        else:
            error.add_note(f"{says}Add the documents again, or delete them, and they go.")

    # Children

    def _drop_children(self, ids: Sequence[str]) -> Steps[None]:
        if not ids:
            return
        self._check_can_delete(ids)
        done = yield on(self.vectorstore, "delete", list(ids))
        if done is False:
            raise StoreError(
                f"{type(self.vectorstore).__name__} says that it did not delete {len(ids)} "
                f"children: {', '.join(ids[:3])}{' …' if ids[3:] else ''}."
            )

    def _check_can_delete(self, ids: Sequence[str]) -> None:
        if ids and type(self.vectorstore).delete is VectorStore.delete:
            raise UsageError(
                f"{type(self.vectorstore).__name__} cannot delete, so the {len(ids)} children "
                "that these documents have would stay and be found. Nothing was changed. Use a "
                "vector store that deletes."
            )


def _owing(parent: Document, left: Iterable[str]) -> Document:
    children = all_children([parent]) if children_of(parent) is not None else None
    parts = parts_of(parent)
    return remembering(
        parent, children=children, left=list(left), parts=parts if parts > 1 else None
    )


def _warn_of_unknown(old: Documents) -> None:
    """Say that parents from elsewhere may have children that are not known here."""
    unknown = [key for key, document in old.items() if children_of(document) is None]
    if unknown:
        logger.warning(
            "%d of the documents replaced, such as %r, do not say which children they have: they "
            "were stored by something else. Children of theirs in the vector store stay, and lead "
            "to the new documents.",
            len(unknown),
            unknown[0],
        )
