"""Which documents hold the words of the question? BM25, over any language, kept up to date."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from langchain_core.documents import Document
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.langchain.documents import listed_documents, listed_texts, record_document
from cormorant.langchain.filtering import LangChainFilter, both
from cormorant.langchain.provenance import Answer, from_result
from cormorant.langchain.request import Request
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of
from cormorant.langchain.retrievers.preprocessed import Preprocessed
from cormorant.langchain.vectorstore import Cormorant
from cormorant.model import Result
from cormorant.store import Store

__all__ = ["BM25Retriever"]

Preprocess = Callable[[str], list[str]]

_UNNAMED: Final = "unnamed-"  # begins the id of a document that came without one
_PARAMETERS: Final = {"k1": "bm25_k1", "b": "bm25_b"}
_OPTIONS: Final = ("language", "bm25_k1", "bm25_b", "require_scope", "pool_size", "read_only")


class BM25Retriever(Retriever):
    """Documents ranked by BM25 (Lucene's formula), in memory or in a store.

    Chinese, identifiers and English are analysed without further ado. A document that holds no
    word of the question is not returned. Documents can be added and deleted at any time, and
    found with a filter.

    Made by :meth:`from_texts` or :meth:`from_documents`; or, over what is stored already, by
    ``BM25Retriever(path="kb")`` or ``BM25Retriever(vectorstore=vs)``.

    Args:
        vectorstore: A Cormorant, whose text leg is asked; no embedder is needed.
        store: Instead, an open store or a scope of one.
        path: Instead, a folder, made if missing. None of the three: in memory.
        k: Documents wanted, 4 by default.
        filter: AND-ed under every call's.
        score_threshold: Lowest relevance kept, in [0, 1].
        preprocess_func: Text to words, instead of the analyzer; in memory only.
        **options: ``language``, ``bm25_k1``, ``bm25_b``, ``require_scope``, ``pool_size``.

    A call takes ``k``, ``filter`` and ``score_threshold``.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> retriever = BM25Retriever.from_texts(["鸬鹚潜入水中捕鱼", "two fishes", "a boat"], k=2)
        >>> [doc.page_content for doc in retriever.invoke("fish")]
        ['two fishes']
        >>> [doc.page_content for doc in retriever.invoke("捕鱼")]
        ['鸬鹚潜入水中捕鱼']
    """

    vectorstore: Cormorant
    k: int = defaults.LANGCHAIN_K
    filter: Any = None
    score_threshold: float | None = None
    preprocess_func: Preprocess | None = None

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter", "score_threshold")
    ranks_by: ClassVar[str] = "text"
    also_takes: ClassVar[tuple[str, ...]] = ("store", "path", *_OPTIONS)

    def __init__(self, **values: Any) -> None:
        where = {name: values.pop(name, None) for name in ("vectorstore", "store", "path")}
        options: dict[str, Any] = {name: values.pop(name) for name in _OPTIONS if name in values}
        if "k" in values:
            check_k(values["k"])
        self._request(values)
        values["vectorstore"] = _opened(where, options, values.get("preprocess_func"))
        super().__init__(**values)

    # Making one

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        ids: Iterable[str | None] | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Preprocess | None = None,
        **kwargs: Any,
    ) -> Self:
        """A retriever over these texts.

        Args:
            texts: Any iterable, read once; none is fine.
            metadatas: One per text.
            ids: One per text; a text without one is returned without one.
            bm25_params: ``k1`` and ``b``.
            preprocess_func: Text to words, instead of the analyzer.
            **kwargs: The constructor's.
        """
        made = cls(
            **({} if preprocess_func is None else {"preprocess_func": preprocess_func}),
            **_parameters(bm25_params),
            **kwargs,
        )
        made.add_texts(texts, metadatas, ids)
        return made

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Preprocess | None = None,
        **kwargs: Any,
    ) -> Self:
        """A retriever over these documents; see :meth:`from_texts`."""
        made = cls(
            **({} if preprocess_func is None else {"preprocess_func": preprocess_func}),
            **_parameters(bm25_params),
            **kwargs,
        )
        made.add_documents(documents)
        return made

    # What is in it

    @property
    def docs(self) -> list[Document]:
        """Copies of all documents, oldest first."""
        return [_bare(record_document(record)) for record in self.vectorstore.store.records()]

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        ids: Iterable[str | None] | None = None,
    ) -> list[str]:
        """Add texts, or replace those whose id exists, in one transaction.

        Returns:
            The ids to delete them by, made up where none was given.
        """
        given = listed_texts(texts)
        named = [None] * len(given) if ids is None else list(ids)
        return self.vectorstore.add_texts(given, metadatas, ids=[_name(id_) for id_ in named])

    def add_documents(
        self, documents: Iterable[Document], ids: Iterable[str | None] | None = None
    ) -> list[str]:
        """Add documents, or replace those whose id exists; see :meth:`add_texts`.

        Args:
            documents: Any iterable, read once.
            ids: One per document; beats ``Document.id``.
        """
        given = listed_documents(documents, "For plain strings use add_texts, or from_texts.")
        named = [document.id for document in given] if ids is None else ids
        return self.vectorstore.add_documents(given, ids=[_name(id_) for id_ in named])

    def delete(
        self, ids: Iterable[str] | None = None, *, filter: LangChainFilter | None = None
    ) -> bool:
        """Delete documents by ids, by filter, or those of the ids that satisfy the filter."""
        return self.vectorstore.delete(ids, filter=filter)

    # Asking

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        vectorstore, arguments = self._search(run, asked)
        return _answer(vectorstore.search_result(query, "text", **arguments))

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        vectorstore, arguments = self._search(run, asked)
        return _answer(await vectorstore.asearch_result(query, "text", **arguments))

    def _search(self, run: Run, asked: dict[str, Any]) -> tuple[Cormorant, dict[str, Any]]:
        scope = scope_of(run.config)
        vectorstore = self.vectorstore.scope(**scope) if scope else self.vectorstore
        own = {"k": self.k, "score_threshold": self.score_threshold}
        narrowed = both(self.filter, asked.get("filter"))
        return vectorstore, {**own, **asked, "filter": narrowed}

    @staticmethod
    def _request(values: Mapping[str, Any]) -> None:
        """Refuse values outside their range."""
        checked = ("k", "filter", "score_threshold")
        Request.build("text", {name: values[name] for name in checked if name in values})

    # Pickling

    @override
    def __reduce_ex__(self, protocol: Any) -> Any:
        """In memory: the documents and the settings. A store in a folder is opened again."""
        store = self.vectorstore.store
        if not isinstance(store, Store) or store.path is not None or store.dim is not None:
            return super().__reduce_ex__(protocol)
        settings = {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name != "vectorstore" and name in self.model_fields_set
        }
        config = store.config
        settings |= {"bm25_k1": config.bm25_k1, "bm25_b": config.bm25_b}
        if self.preprocess_func is None:
            settings["language"] = (config.analyzer or {}).get("language")
        records = [(record.id, record.text, dict(record.metadata)) for record in store.records()]
        return _rebuilt, (type(self), settings, records)

    @override
    def __repr__(self) -> str:
        return f"<cormorant BM25Retriever k={self.k} {self.vectorstore.store!r}>"


def _rebuilt(
    kind: type[BM25Retriever], settings: dict[str, Any], records: Sequence[tuple[str, str, Any]]
) -> BM25Retriever:
    made = kind(**settings)
    if records:
        ids, texts, metadatas = zip(*records, strict=True)
        made.add_texts(texts, metadatas, ids)
    return made


def _opened(
    where: Mapping[str, Any], options: Mapping[str, Any], function: Preprocess | None
) -> Cormorant:
    given = [name for name, value in where.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"Give one of vectorstore, store and path; got {' and '.join(given)}.")
    if function is None:
        if where["vectorstore"] is not None:
            return _as_given(where["vectorstore"], options)
        return Cormorant(None, store=where["store"], path=where["path"], **options)
    if not callable(function):
        raise UsageError(f"preprocess_func must be callable; got {function!r}.")
    if given or "language" in options:
        raise UsageError(
            "preprocess_func works on documents in memory: a store keeps its analyzer, and a "
            f"function cannot be kept; got {' and '.join([*given, *options])} too. Leave "
            "preprocess_func out: the analyzer knows Chinese, identifiers and stems."
        )
    return _by_function(function, options)


def _as_given(vectorstore: object, options: Mapping[str, Any]) -> Cormorant:
    if not isinstance(vectorstore, Cormorant):
        raise UsageError(f"vectorstore must be a Cormorant; got {type(vectorstore).__name__}.")
    if options:
        raise UsageError(
            "vectorstore is already open, so the options of Store.open have no effect; got "
            f"{', '.join(options)}. Give one or the other."
        )
    return vectorstore


def _by_function(function: Preprocess, options: Mapping[str, Any]) -> Cormorant:
    made = Cormorant(None, language="none", **options)
    # Nobody else has this store yet, and it ends with the process: its analyzer may be one
    # that could not be written down.
    made.store._core.analyzer = Preprocessed(function)  # noqa: SLF001
    return made


def _parameters(given: Mapping[str, Any] | None) -> dict[str, Any]:
    unknown = [name for name in given or () if name not in _PARAMETERS]
    if unknown:
        raise UsageError(
            f"bm25_params takes k1 and b; got {', '.join(unknown)}. The formula is Lucene's, "
            "whose idf is never negative and needs no epsilon."
        )
    return {_PARAMETERS[name]: value for name, value in (given or {}).items()}


def _name(id_: str | None) -> str:
    return f"{_UNNAMED}{uuid.uuid4()}" if id_ is None else id_


def _bare(document: Document) -> Document:
    """The document without an id, if it came without one."""
    if document.id is not None and document.id.startswith(_UNNAMED):
        return document.model_copy(update={"id": None})
    return document


def _answer(result: Result) -> Answer:
    answer = from_result(result)
    return answer.of(_bare(document) for document in answer)
