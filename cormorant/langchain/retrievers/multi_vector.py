"""Which documents do the best children belong to?

Children are searched: chunks, summaries, questions a document answers. What is returned are
the documents, their parents.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError, RecordError, UsageError
from cormorant.langchain.calls import steps as stepping
from cormorant.langchain.calls.steps import Call, Steps, beside
from cormorant.langchain.documents import listed_documents
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retriever import CormorantRetriever
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of
from cormorant.langchain.retrievers.parents.child_search import (
    SearchType,
    check_threshold,
    child_retriever,
)
from cormorant.langchain.retrievers.parents.families import Families
from cormorant.langchain.retrievers.parents.kin import Parent
from cormorant.langchain.retrievers.parents.kinship import Kinship
from cormorant.langchain.retrievers.vectorstores import check_vectorstore
from cormorant.langchain.storage._lc_store import create_kv_docstore
from cormorant.langchain.storage.cormorant_store import CormorantDocstore
from cormorant.langchain.vectorstore import Cormorant
from cormorant.store.intake import check_ids

__all__ = ["MultiVectorRetriever", "SearchType"]

_FIRST: Final = 20  # children asked for at least
_PER_PARENT: Final = 5  # and for each parent wanted
_GROWTH: Final = 4
_MOST: Final = 10_000  # where found ones cannot be left out, no more are asked for at once


class MultiVectorRetriever(Retriever):
    """Searches children, returns their parents.

    ``k`` counts parents: children are asked for until there are ``k`` parents, or no more. A
    parent's place and score are its best child's. Over a Cormorant that keeps both, adding,
    replacing and deleting a family is one transaction.

    Args:
        vectorstore: Where children are searched; any LangChain vector store.
        docstore: Where parents are kept by key. Without it, and without ``byte_store``, a
            Cormorant keeps them too.
        byte_store: Instead of ``docstore``: keeps them as bytes.
        id_key: The metadata field in which a child names its parent.
        search_type: ``similarity``, ``similarity_score_threshold`` or ``mmr``; over a Cormorant
            also ``hybrid`` and ``text``.
        search_kwargs: What the search takes: ``filter``, ``score_threshold``, ``fetch_k``, … A
            filter is about children.
        k: Parents wanted, 4 by default.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        UsageError: On an argument nobody reads, or stores that do not fit.
        QueryError: On a value outside its range.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from cormorant.langchain import Cormorant
        >>> vs = Cormorant(DeterministicFakeEmbedding(size=8))
        >>> retriever = MultiVectorRetriever(vectorstore=vs, search_type="text")
        >>> retriever.add(
        ...     [Document("A long report on cormorants.", id="report")],
        ...     [["How do birds hunt fish?", "Do wings get wet?"]],
        ... )
        ['report']
        >>> [found.page_content for found in retriever.invoke("hunting fish")]
        ['A long report on cormorants.']
        >>> vs.close()
    """

    vectorstore: VectorStore
    docstore: BaseStore[str, Document]
    byte_store: BaseStore[str, bytes] | None = None
    id_key: str = "doc_id"
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    search_type: SearchType = SearchType.similarity
    k: int | None = None

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter", "score_threshold")
    also_takes: ClassVar[tuple[str, ...]] = ("doc_id",)

    def __init__(self, **values: Any) -> None:
        _check_doc_id(values)
        store = check_vectorstore(values.get("vectorstore"))
        values["docstore"] = _docstore(store, values.get("byte_store"), values.get("docstore"))
        if values.get("search_type", "similarity") not in list(SearchType):
            raise QueryError(
                f"search_type must be one of {', '.join(SearchType)}; got "
                f"{values['search_type']!r}."
            )
        if values.get("search_kwargs") is None:
            values.pop("search_kwargs", None)
        super().__init__(**values)
        self._child()  # refuses what does not fit, now
        self._wanted(None)

    # Searching

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Iterable[Document]:
        return stepping.run(self._search(query, run, **asked))

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Iterable[Document]:
        return await stepping.arun(self._search(query, run, **asked))

    def _search(
        self, query: str, run: Run, *, k: int | None = None, filter: Any = None, **asked: Any
    ) -> Steps[Answer]:
        wanted = self._wanted(k)
        self._check_asked(asked)
        child = self._child()
        said: dict[str, None] = {}
        families = self._families(run)
        width = self._width(wanted)
        while True:
            seen = families.exclusion() if self._leaves_out(child) else None
            narrowed = filter if seen is None else both(filter, seen)
            arguments = {"k": width, "filter": narrowed, **self._candidates(width), **asked}
            answer: Answer = yield _ask(run, child, query, arguments)
            yield beside(answer, partial(families.take, answer, more=seen is not None))
            said.update(dict.fromkeys(answer.degraded))
            yield from families.fetch()
            found: list[Document] = yield from self._chosen(families, wanted)
            exhausted = len(answer) < width
            if len(found) >= wanted or exhausted or width >= _MOST:
                told = families.told(answer, found[:wanted]).degrading(*said)
                told.complete = len(found) >= wanted or exhausted
                return told
            width = min(width * _GROWTH, _MOST)

    def _check_asked(self, asked: Mapping[str, Any]) -> None:
        if "score_threshold" in asked:
            check_threshold(self.vectorstore, self.search_type, asked["score_threshold"])

    def _chosen(self, families: Families, wanted: int) -> Steps[list[Document]]:
        """What is returned of the families found, best first; the best ``wanted`` suffice."""
        best = list(families)[:wanted]
        found: list[Document] = yield beside(best, lambda: [family.told() for family in best])
        return found

    def _width(self, wanted: int) -> int:
        """How many children are asked for at first."""
        return max(_FIRST, _PER_PARENT * wanted, self._given("fetch_k") or 0)

    def _leaves_out(self, child: BaseRetriever) -> bool:
        """Whether children of families that were found can be left out of further searches."""
        return isinstance(child, CormorantRetriever)

    def _candidates(self, width: int) -> dict[str, int]:
        given = self._given("fetch_k")
        if given is None and self.search_type != SearchType.mmr:
            return {}
        return {"fetch_k": max(given or defaults.MMR_FETCH_K, width)}

    def _given(self, name: str) -> int | None:
        value = self.search_kwargs.get(name)
        if value is not None:
            check_k(value, name)
        return value

    def _wanted(self, k: int | None) -> int:
        own = self._given("k")
        if self.k is not None:
            check_k(self.k)
            if own not in {None, self.k}:
                raise UsageError(
                    f"k was given twice: {self.k}, and {own} in search_kwargs. Give it once."
                )
        return k or self.k or own or defaults.LANGCHAIN_K

    def _child(self) -> BaseRetriever:
        """The retriever over the children, of the fields as they are now."""
        return child_retriever(self.vectorstore, self.search_type, self.search_kwargs)

    def _families(self, run: Run) -> Families:
        """What is found for one call, inside its scope."""
        store, docs = self.vectorstore, self.docstore
        if not isinstance(store, Cormorant):
            return Families(docs, self.id_key, None)
        door = store.scope(**(scope_of(run.config) or {})).store
        if self._kinship.one_store is not None:
            docs = CormorantDocstore(door)
        return Families(docs, self.id_key, door)

    # Adding and deleting

    def add(
        self,
        documents: Iterable[Document],
        children: Iterable[Iterable[Document | str]],
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents with their children, in place of those they had.

        Args:
            documents: What is returned.
            children: For each document what is searched: chunks, summaries, questions. Strings
                get the document's metadata.
            ids: One per document; beats ``Document.id``. None becomes a random UUID.
            **kwargs: Passed to ``vectorstore.add_documents``.

        Returns:
            The documents' ids, in input order.

        Raises:
            RecordError: On a document without children, an id twice, and whatever cannot be
                stored; nothing is.
        """
        return stepping.run(self._adding(documents, children, ids, kwargs))

    async def aadd(
        self,
        documents: Iterable[Document],
        children: Iterable[Iterable[Document | str]],
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Like :meth:`add`, without holding the event loop."""
        return await stepping.arun(self._adding(documents, children, ids, kwargs))

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents with their children; unknown ids are skipped."""
        stepping.run(self._deleting(ids))

    async def adelete(self, ids: Iterable[str]) -> None:
        """Like :meth:`delete`, without holding the event loop."""
        await stepping.arun(self._deleting(ids))

    def _adding(
        self,
        documents: Iterable[Document],
        children: Iterable[Iterable[Document | str]],
        ids: Iterable[str | None] | None,
        arguments: dict[str, Any],
    ) -> Steps[list[str]]:
        taken = listed_documents(documents)
        keys = document_ids(taken, ids)
        families = _listed_children(children)
        if len(families) != len(taken):
            raise RecordError(
                f"children must be as many lists as documents; got {len(families)} and "
                f"{len(taken)}."
            )
        parents = [
            Parent(key, _as_kept(document, key), [_as_child(each, document) for each in some])
            for key, document, some in zip(keys, taken, families, strict=True)
        ]
        yield from self._kinship.put(
            keys, parents, parts=False, keep_parents=False, arguments=arguments
        )
        return keys

    def _deleting(self, ids: Iterable[str]) -> Steps[None]:
        wanted = check_ids(ids)
        if wanted:
            yield from self._kinship.remove(wanted, parts=self._parts_of_documents)

    @property
    def _parts_of_documents(self) -> bool:
        """Whether parents are parts of what was added."""
        return False

    @property
    def _kinship(self) -> Kinship:
        return Kinship(self.vectorstore, self.docstore, self.id_key)


def document_ids(
    documents: Sequence[Document], ids: Iterable[str | None] | None = None
) -> list[str]:
    """The ids that documents are added under.

    Raises:
        RecordError: If they are not as many as the documents, or one comes twice.
    """
    if isinstance(ids, str) or not isinstance(ids, Iterable | None):
        raise RecordError(f"ids takes a list of ids; got {ids!r}. Put it in a list.")
    given = [document.id for document in documents] if ids is None else list(ids)
    if len(given) != len(documents):
        raise RecordError(
            f"The number of ids must match the number of documents; got {len(given)} ids and "
            f"{len(documents)} documents. Nothing was stored."
        )
    keys = [str(uuid.uuid4()) if id is None else id for id in given]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RecordError(
            f"The id {twice!r} comes twice in one call. Give each document its own id, or add "
            "them in two calls."
        )
    return keys


def _ask(run: Run, child: BaseRetriever, query: str, arguments: dict[str, Any]) -> Call:
    return Call(
        lambda: run.call(child, query, tag="children", **arguments),
        lambda: run.acall(child, query, tag="children", **arguments),
    )


def _as_kept(document: Document, key: str) -> Document:
    return document if document.id == key else document.model_copy(update={"id": key})


def _listed_children(children: Iterable[Iterable[Document | str]]) -> list[list[Document | str]]:
    """Lists, whatever iterables came; a string is one child, not a list of letters."""
    families: list[list[Document | str]] = []
    if isinstance(children, (str, Document)) or not isinstance(children, Iterable):
        raise RecordError(
            "children takes a list of lists, one for each document; got a "
            f"{type(children).__name__}."
        )
    for position, some in enumerate(children):
        # A Document is iterable too, as pydantic's models are.
        if isinstance(some, (str, bytes, Document)) or not isinstance(some, Iterable):
            raise RecordError(
                "children takes for each document a list of strings or Documents; for the "
                f"document at position {position} it got a {type(some).__name__}. Put it in a list."
            )
        family = list(some)
        for child in family:
            if not isinstance(child, (str, Document)):
                raise RecordError(
                    f"A child is a string or a Document; among those of the document at position "
                    f"{position} is a {type(child).__name__}."
                )
        families.append(family)
    return families


def _as_child(child: Document | str, parent: Document) -> Document:
    if isinstance(child, str):
        return Document(child, metadata=parent.metadata)
    return child


def _check_doc_id(values: dict[str, Any]) -> None:
    """LangChain's own examples give ``doc_id``, which nobody read; ``id_key`` is meant."""
    given = values.pop("doc_id", None)
    own = values.get("id_key", "doc_id")
    if given is not None and given != own:
        raise UsageError(
            f"doc_id={given!r} has no effect in LangChain; the metadata field in which a child "
            f"names its parent is id_key, here {own!r}. Say id_key={given!r} if that is meant."
        )


def _docstore(store: VectorStore, byte_store: object, docstore: object) -> BaseStore[str, Document]:
    if byte_store is not None and docstore is not None:
        raise UsageError("Both byte_store and docstore were given; give one of them.")
    if byte_store is not None:
        if not isinstance(byte_store, BaseStore):
            raise UsageError(
                f"byte_store must be a LangChain BaseStore; got {type(byte_store).__name__}."
            )
        return create_kv_docstore(byte_store)
    if docstore is not None:
        if not isinstance(docstore, BaseStore):
            raise UsageError(
                f"docstore must be a LangChain BaseStore; got {type(docstore).__name__}."
            )
        return docstore
    if isinstance(store, Cormorant):
        return CormorantDocstore(store)
    raise UsageError(
        f"{type(store).__name__} keeps no parents: give docstore= or byte_store=. Over a Cormorant "
        "neither is needed."
    )
