"""How do parents and their children get into two stores, and out of them again?

Where both are one Cormorant store, each call is one transaction. Elsewhere it is several
steps, in an order that an error can be undone in; what children a parent has is remembered
with the parent.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from cormorant.errors import RecordError, UsageError
from cormorant.langchain.request import refuse_unknown
from cormorant.langchain.retrievers.steps import Steps, on
from cormorant.langchain.storage.cormorant_store import CormorantDocstore, kept
from cormorant.langchain.vectorstore import Cormorant
from cormorant.store import Family

__all__ = ["Kinship", "Parent", "children_of", "plain"]

FAMILY: Final = "_family"
"""The metadata key under which a parent in another store remembers its family."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A document as it is kept, and what of it is searched.

    Attributes:
        id: Its key.
        document: Kept under that key.
        children: Searched; each gets the key in its metadata.
    """

    id: str
    document: Document
    children: Sequence[Document] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Kinship:
    """The two stores, and the metadata key by which a child names its parent."""

    vectorstore: VectorStore
    docstore: BaseStore[str, Document]
    id_key: str

    @property
    def one_store(self) -> Cormorant | None:
        """The Cormorant that holds both, if one does."""
        store, docs = self.vectorstore, self.docstore
        if isinstance(store, Cormorant) and isinstance(docs, CormorantDocstore):
            return store if docs.store is store.store else None
        return None

    def put(
        self,
        ids: Sequence[str],
        parents: Sequence[Parent],
        *,
        parts: bool,
        keep_parents: bool,
        arguments: Mapping[str, Any],
    ) -> Steps[None]:
        """Put parents and children in place of what was there of these documents.

        Args:
            ids: Of the documents.
            parents: The documents, or their parts.
            parts: Whether a document's parents are its parts, ``id#0``, ``id#1``, …
            keep_parents: Whether the parents are in the docstore already, and stay.
            arguments: Passed to ``vectorstore.add_documents``.
        """
        refused = [parent.id for parent in parents if not parent.children]
        if refused:
            raise RecordError(
                f"The document {refused[0]!r} has no children, so no search could ever find it; "
                f"{len(refused)} of {len(parents)} are like that. Nothing was stored. Leave out "
                "documents without text, or have the splitter return something of each."
            )
        store = self.one_store
        if store is not None:
            refuse_unknown(arguments, ("batch_size",), "add_documents over a Cormorant")
            family = Family(ids, self.id_key, parts=parts, keep=keep_parents)
            documents = [] if keep_parents else [kept(p.id, p.document) for p in parents]
            yield on(store, "add_family", list(self._children(parents)), documents, family)
        else:
            yield from self._put_apart(ids, parents, parts, keep_parents, arguments)

    def remove(self, ids: Sequence[str], *, parts: bool) -> Steps[None]:
        """Remove documents with their parts and children; unknown ids are skipped."""
        store = self.one_store
        if store is not None:
            yield on(store, "delete_family", Family(ids, self.id_key, parts=parts))
            return
        old = yield from self._stored(ids, parts=parts)
        if parts:
            old.update((yield from self._stored(ids, parts=False)))
        yield from self._drop_children(_all_children(old.values()))
        if old:
            yield on(self.docstore, "mdelete", list(old))

    # Two stores

    def _put_apart(
        self,
        ids: Sequence[str],
        parents: Sequence[Parent],
        parts: bool,  # noqa: FBT001 - put's own, handed on
        keep_parents: bool,  # noqa: FBT001 - the same
        arguments: Mapping[str, Any],
    ) -> Steps[None]:
        old = yield from self._stored(ids, parts=parts)
        stale = _all_children(old.values())
        self._check_can_delete(stale)
        added = yield on(
            self.vectorstore, "add_documents", list(self._children(parents)), **arguments
        )
        fresh = [str(id) for id in added or []]
        counts = Counter(p.id.rpartition("#")[0] for p in parents) if parts else {}
        pairs = self._pairs(parents, old if keep_parents else None, fresh, counts)
        try:
            yield on(self.docstore, "mset", pairs)
            surplus = [] if keep_parents else [key for key in old if key not in _keys(parents)]
            if surplus:
                yield on(self.docstore, "mdelete", surplus)
        except BaseException:
            # Children whose parents never came would be found, and lead nowhere.
            undone = [id for id in fresh if id not in stale]
            if undone:
                with contextlib.suppress(Exception):
                    yield on(self.vectorstore, "delete", undone)
            raise
        yield from self._drop_children([id for id in stale if id not in fresh])

    def _children(self, parents: Iterable[Parent]) -> Iterable[Document]:
        """Copies of the children that name their parents."""
        numbered = self.one_store is not None
        for parent in parents:
            for number, child in enumerate(parent.children):
                metadata = copy.deepcopy(child.metadata)
                metadata[self.id_key] = parent.id
                update: dict[str, Any] = {"metadata": metadata}
                if numbered and child.id is None:
                    update["id"] = f"{parent.id}#{number}"
                yield child.model_copy(update=update)

    def _pairs(
        self,
        parents: Sequence[Parent],
        there: Mapping[str, Document] | None,
        fresh: Sequence[str],
        counts: Mapping[str, int],
    ) -> list[tuple[str, Document]]:
        """What the docstore is given: parents that remember their families.

        Args:
            parents: With the documents to keep.
            there: The documents to keep instead, those the docstore has.
            fresh: The ids that the children were given, all of them in order.
            counts: Of how many parts a document is.
        """
        total = sum(len(parent.children) for parent in parents)
        known = list(fresh) if len(fresh) == total else []
        pairs = []
        for parent in parents:
            document = parent.document if there is None else there.get(parent.id)
            children, known = known[: len(parent.children)], known[len(parent.children) :]
            if document is None:
                continue  # the caller says it is there; it is not: nothing to remember it by
            metadata = copy.deepcopy(document.metadata)
            if isinstance(self.vectorstore, Cormorant):
                metadata = self.vectorstore.store.stamped(metadata, id=parent.id)
            family: dict[str, Any] = {"children": children}
            source, _, number = parent.id.rpartition("#")
            if number == "0" and source in counts:
                family["parts"] = counts[source]
            metadata[FAMILY] = family
            pairs.append((parent.id, document.model_copy(update={"metadata": metadata})))
        return pairs

    def _stored(self, ids: Sequence[str], *, parts: bool) -> Steps[dict[str, Document]]:
        """The parents that these documents have in the docstore, by key."""
        keys = [f"{id}#0" if parts else id for id in ids]
        found = yield from self._got(keys)
        if parts:
            more = []
            for id in ids:
                first = found.get(f"{id}#0")
                count = 0 if first is None else _family(first).get("parts", 1)
                more += [f"{id}#{number}" for number in range(1, count)]
            found.update((yield from self._got(more)))
        return found

    def _got(self, keys: Sequence[str]) -> Steps[dict[str, Document]]:
        if not keys:
            return {}
        values = yield on(self.docstore, "mget", list(keys))
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    def _drop_children(self, ids: Sequence[str]) -> Steps[None]:
        if ids:
            self._check_can_delete(ids)
            yield on(self.vectorstore, "delete", list(ids))

    def _check_can_delete(self, ids: Sequence[str]) -> None:
        if ids and type(self.vectorstore).delete is VectorStore.delete:
            raise UsageError(
                f"{type(self.vectorstore).__name__} cannot delete, so the {len(ids)} children "
                "that these documents have would stay and be found. Nothing was changed. Use a "
                "vector store that deletes."
            )


def children_of(parent: Document) -> int | None:
    """How many children a parent from another store remembers; None if it does not say."""
    return len(_family(parent)["children"]) if "children" in _family(parent) else None


def plain(key: str, parent: Document) -> Document:
    """A copy of a parent as it was given, with its key for an id if it has none."""
    metadata = {name: value for name, value in parent.metadata.items() if name != FAMILY}
    update: dict[str, Any] = {"metadata": copy.deepcopy(metadata)}
    if parent.id is None:
        update["id"] = key
    return parent.model_copy(update=update)


def _family(parent: Document) -> Mapping[str, Any]:
    found = parent.metadata.get(FAMILY)
    return found if isinstance(found, Mapping) else {}


def _all_children(parents: Iterable[Document]) -> list[str]:
    return [id for parent in parents for id in _family(parent).get("children", ())]


def _keys(parents: Iterable[Parent]) -> set[str]:
    return {parent.id for parent in parents}
