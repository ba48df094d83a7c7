"""How do parents and their children get into their stores, and out of them again?"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from cormorant.errors import RecordError
from cormorant.langchain.calls.steps import Steps, on
from cormorant.langchain.request import refuse_unknown
from cormorant.langchain.retrievers.parents.apart import Apart
from cormorant.langchain.retrievers.parents.kin import Parent
from cormorant.langchain.storage.cormorant_store import CormorantDocstore, kept
from cormorant.langchain.vectorstore import Cormorant
from cormorant.store import Family

__all__ = ["Kinship"]


@dataclass(frozen=True, slots=True)
class Kinship:
    """The two stores, and the metadata key by which a child names its parent.

    Where both are one Cormorant store, each call is one transaction. Elsewhere it is several
    steps: see :class:`Apart`.
    """

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
        children = list(self._children(parents))
        if store is not None:
            refuse_unknown(arguments, ("batch_size",), "add_documents over a Cormorant")
            family = Family(ids, self.id_key, parts=parts, keep=keep_parents)
            documents = [] if keep_parents else [kept(p.id, p.document) for p in parents]
            yield on(store, "add_family", children, documents, family)
        elif parents:
            apart = Apart(self.vectorstore, self.docstore)
            yield from apart.put(
                ids, parents, children, parts=parts, keep_parents=keep_parents, arguments=arguments
            )

    def remove(self, ids: Sequence[str], *, parts: bool) -> Steps[None]:
        """Remove documents with their parts and children; unknown ids are skipped."""
        store = self.one_store
        if store is not None:
            yield on(store, "delete_family", Family(ids, self.id_key, parts=parts))
        else:
            yield from Apart(self.vectorstore, self.docstore).remove(ids, parts=parts)

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
