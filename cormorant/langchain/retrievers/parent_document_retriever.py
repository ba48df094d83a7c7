"""Which documents do the best chunks belong to? Small ones are searched, large ones returned."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from cormorant.errors import UsageError
from cormorant.langchain.calls import steps as stepping
from cormorant.langchain.calls.steps import Steps, in_thread
from cormorant.langchain.documents import listed_documents
from cormorant.langchain.retrievers.multi_vector import MultiVectorRetriever, document_ids
from cormorant.langchain.retrievers.parents.kin import Parent
from cormorant.langchain.retrievers.parents.parent_store import ParentStore

__all__ = ["ParentDocumentRetriever"]


class ParentDocumentRetriever(MultiVectorRetriever):
    """Cuts documents into chunks, searches the chunks, returns the documents.

    Args:
        child_splitter: Anything with ``split_documents``, such as LangChain's text splitters:
            makes the chunks that are searched.
        parent_splitter: Makes the parts that are returned; None returns whole documents. The
            parts of document ``a`` are ``a#0``, ``a#1``, …; adding or deleting ``a`` means all.
        child_metadata_fields: The metadata that chunks keep; None keeps all. A field that a
            document does not have is skipped.
        **values: Those of :class:`MultiVectorRetriever`.

    Raises:
        UsageError: On an argument nobody reads, or stores that do not fit.
        QueryError: On a value outside its range.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from cormorant.langchain import Cormorant
        >>> from cormorant.langchain.retrievers import SentenceSplitter
        >>> vs = Cormorant(DeterministicFakeEmbedding(size=8))
        >>> retriever = ParentDocumentRetriever(
        ...     vectorstore=vs, child_splitter=SentenceSplitter(), search_type="text"
        ... )
        >>> retriever.add_documents([Document("Birds fish. Wings get wet.", id="a")])
        ['a']
        >>> [found.page_content for found in retriever.invoke("wings")]
        ['Birds fish. Wings get wet.']
        >>> retriever.delete(["a"])
        >>> retriever.invoke("wings")
        []
        >>> vs.close()
    """

    child_splitter: Any
    parent_splitter: Any = None
    child_metadata_fields: Sequence[str] | None = None

    def __init__(self, **values: Any) -> None:
        _check_splitter("child_splitter", values.get("child_splitter"), required=True)
        _check_splitter("parent_splitter", values.get("parent_splitter"), required=False)
        if isinstance(values.get("child_metadata_fields"), str):
            raise UsageError(
                "child_metadata_fields takes a list of names; got the string "
                f"{values['child_metadata_fields']!r}. Put it in a list."
            )
        super().__init__(**values)

    def add_documents(
        self,
        documents: Iterable[Document],
        ids: Iterable[str | None] | None = None,
        add_to_docstore: bool = True,  # noqa: FBT001, FBT002 - LangChain's own signature
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, cut, in place of what was there under their ids.

        Args:
            documents: Copied, not changed.
            ids: One per document; beats ``Document.id``. None becomes a random UUID.
            add_to_docstore: False if the docstore has them already, under their ``ids``.
            **kwargs: Passed to ``vectorstore.add_documents``.

        Returns:
            The documents' ids, in input order.

        Raises:
            RecordError: On a document of which the splitter makes nothing, an id twice, and
                whatever cannot be stored; nothing is.
        """
        return stepping.run(
            self._adding_documents(documents, ids, add_to_docstore=add_to_docstore, given=kwargs)
        )

    async def aadd_documents(
        self,
        documents: Iterable[Document],
        ids: Iterable[str | None] | None = None,
        add_to_docstore: bool = True,  # noqa: FBT001, FBT002 - LangChain's own signature
        **kwargs: Any,
    ) -> list[str]:
        """Like :meth:`add_documents`, without holding the event loop."""
        return await stepping.arun(
            self._adding_documents(documents, ids, add_to_docstore=add_to_docstore, given=kwargs)
        )

    def as_vectorstore(self) -> VectorStore:
        """This retriever as a vector store of parents, for LangChain's ``index()``.

        Adding, deleting, getting and searching are about parents.
        """
        return ParentStore(self)

    def _adding_documents(
        self,
        documents: Iterable[Document],
        ids: Iterable[str | None] | None,
        *,
        add_to_docstore: bool,
        given: Mapping[str, Any],
    ) -> Steps[list[str]]:
        taken = listed_documents(documents)
        chosen = list(ids) if isinstance(ids, Iterator) else ids
        keys = document_ids(taken, chosen)
        if not add_to_docstore and (chosen is None or None in chosen):
            raise UsageError(
                "add_to_docstore=False says that the documents are in the docstore already; give "
                "the ids they have there."
            )
        parents = yield in_thread(lambda: list(self._cut(taken, keys)))
        yield from self._kinship.put(
            keys,
            parents,
            parts=self._parts_of_documents,
            keep_parents=not add_to_docstore,
            arguments=given,
        )
        return keys

    def _cut(self, documents: Sequence[Document], keys: Sequence[str]) -> Iterable[Parent]:
        for key, document in zip(keys, documents, strict=True):
            parts = [(key, document)]
            if self.parent_splitter is not None:
                made = self.parent_splitter.split_documents([_copied(document)])
                parts = [(f"{key}#{number}", part) for number, part in enumerate(made)]
                # One that comes to nothing is refused where one without children is.
                parts = parts or [(f"{key}#0", document)]
            for part_key, part in parts:
                kept = part.model_copy(update={"id": part_key})
                yield Parent(part_key, kept, list(self._children(part)))

    def _children(self, parent: Document) -> Iterable[Document]:
        for child in self.child_splitter.split_documents([_copied(parent)]):
            metadata = child.metadata
            if self.child_metadata_fields is not None:
                wanted = self.child_metadata_fields
                metadata = {name: metadata[name] for name in wanted if name in metadata}
            # Another id than the parent's: a splitter may hand that on.
            yield child.model_copy(update={"id": None, "metadata": metadata})

    @property
    def _parts_of_documents(self) -> bool:
        return self.parent_splitter is not None


def _copied(document: Document) -> Document:
    """What a splitter may change without anybody else's harm."""
    return document.model_copy(update={"metadata": copy.deepcopy(document.metadata)})


def _check_splitter(name: str, splitter: object, *, required: bool) -> None:
    if splitter is None and not required:
        return
    if isinstance(splitter, type):
        raise UsageError(f"{name} must be a splitter; got the class {splitter.__name__}. Make one.")
    if not callable(getattr(splitter, "split_documents", None)):
        raise UsageError(
            f"{name} must have a method split_documents, as LangChain's text splitters do; got "
            f"{type(splitter).__name__}."
        )
