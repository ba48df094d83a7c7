"""How does a chain ask the vector store? The retriever."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ConfigDict, ValidationError, model_validator
from typing_extensions import override

from cormorant.errors import QueryError, UsageError
from cormorant.langchain.filtering import both
from cormorant.langchain.large_k import advised
from cormorant.langchain.provenance import Answer
from cormorant.langchain.request import ACCEPTED, SEARCH_TYPES, Request, refuse_unknown
from cormorant.langchain.scopes.in_force import of_call
from cormorant.langchain.vectorstore import Cormorant
from cormorant.langchain.wrappers import Retrieving

__all__ = ["CormorantRetriever"]

_ARGUMENTS = tuple(dict.fromkeys(name for names in ACCEPTED.values() for name in names))


class CormorantRetriever(Retrieving, VectorStoreRetriever):
    """Query to documents, by any search type.

    Search arguments are fields of the retriever (``k=5``), or stand in ``search_kwargs`` as
    LangChain has it, or come with the call (``invoke(q, k=3)``). The call's beat the
    retriever's, except for ``filter``: all filters are AND-ed, wherever they came from.

    A request's scope, ``config["configurable"]["scope"]``, narrows the store for that
    request. Scopes of the chains around it stay in force; ``docs/langchain.md`` says what
    LangChain keeps from us.

    Args:
        vectorstore: The Cormorant to ask.
        search_type: ``similarity``, ``similarity_score_threshold``, ``mmr``, ``hybrid``, ``text``.
        search_kwargs: Search arguments, LangChain's way.
        k: Documents wanted, 4 by default.
        fetch_k: Candidates per leg, or for MMR.
        exact: Compare with every vector, whatever index there is.
        filter: A dict, a callable on a Document, or a StructuredQuery.
        score_threshold: Lowest relevance kept, in [0, 1].
        lambda_mult: 1 is relevance alone, 0 diversity alone; ``mmr`` and ``hybrid``.
        with_scores: Put scores into ``metadata["_cormorant"]``.
        vector_weight, keyword_weight, fusion, rrf_k: How ``hybrid`` fuses.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.
    """

    k: int | None = None
    fetch_k: int | None = None
    exact: bool | None = None
    filter: Any = None
    score_threshold: float | None = None
    lambda_mult: float | None = None
    with_scores: bool | None = None
    vector_weight: float | None = None
    keyword_weight: float | None = None
    fusion: str | None = None
    rrf_k: float | None = None

    allowed_search_types: ClassVar[Collection[str]] = SEARCH_TYPES

    filters_itself: ClassVar[bool] = True
    """What it returns need not be compared with the filter and the scope again."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        # Before pydantic, so that the error is the package's own.
        refuse_unknown(values, type(self).model_fields, "CormorantRetriever")
        if not isinstance(values.get("vectorstore"), Cormorant):
            raise UsageError(
                "vectorstore must be a Cormorant; got "
                f"{type(values.get('vectorstore')).__name__}. Use Cormorant(…).as_retriever(…)."
            )
        # None is what an option not set looks like, as for the search arguments.
        values = {name: value for name, value in values.items() if value is not None}
        search_type = values.get("search_type", "similarity")
        fixed = _fixed(values.get("search_kwargs", {}), values)
        Request.build(search_type, fixed)
        if search_type == "similarity_score_threshold" and fixed.get("score_threshold") is None:
            raise QueryError(
                "search_type='similarity_score_threshold' needs a score_threshold in [0, 1]; "
                "got none."
            )
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(
                f"CormorantRetriever cannot take {where}: {first['msg']}; got {first['input']!r}."
            ) from error

    @model_validator(mode="before")
    @classmethod
    @override
    def validate_search_type(cls, values: dict[str, Any]) -> Any:
        """Nothing more: the constructor has checked all of it."""
        return values

    def accepts(self, name: str) -> bool:  # noqa: ARG002 - whoever asks a retriever gives one
        """Yes: no argument of a call is dropped; one it does not take it refuses by itself."""
        return True

    @property
    def _cormorant(self) -> Cormorant:
        store = self.vectorstore
        if not isinstance(store, Cormorant):
            raise UsageError(f"vectorstore must be a Cormorant; got {type(store).__name__}.")
        return store

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        _check_search_kwargs(self.search_kwargs)  # it can be set on a living retriever
        params = super()._get_ls_params(**kwargs)
        params["ls_embedding_model"] = self._cormorant.embedding_model
        return params

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Find documents.

        Args:
            input: The question.
            config: LangChain's; ``configurable["scope"]`` narrows the store.
            **kwargs: Search arguments for this call.

        Returns:
            Documents, best first.
        """
        with of_call(config):
            return super().invoke(input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Like :meth:`invoke`, without holding the event loop."""
        with of_call(config):
            return await super().ainvoke(input, config, **kwargs)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        store, arguments = self._asked(kwargs)
        with of_call(None):  # a wrapper may come past invoke
            return self._told(store.search(query, self.search_type, **arguments))

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        store, arguments = self._asked(kwargs)
        with of_call(None):
            return self._told(await store.asearch(query, self.search_type, **arguments))

    def _told(self, found: list[Document]) -> list[Document]:
        return advised(found, self.get_name()) if isinstance(found, Answer) else found

    def _asked(self, call: dict[str, Any]) -> tuple[Cormorant, dict[str, Any]]:
        """The store of this request, and all arguments of its search."""
        store = self._cormorant
        call = dict(call)
        call.pop("verbose", None)  # LangChain reads it, and passes it on
        # As they are now: fields can be set on a living retriever.
        values = {name: getattr(self, name) for name in _ARGUMENTS}
        arguments = _fixed(self.search_kwargs, values)
        narrowed = both(arguments.get("filter"), call.get("filter"))
        arguments.update({name: value for name, value in call.items() if value is not None})
        return store, {**arguments, "filter": narrowed}


def _check_search_kwargs(search_kwargs: object) -> None:
    if not isinstance(search_kwargs, Mapping):
        raise UsageError(
            "search_kwargs must be a dict of search arguments, such as {'k': 5}; got "
            f"{search_kwargs!r}."
        )


def _fixed(search_kwargs: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The retriever's own search arguments, from both places they can stand in."""
    _check_search_kwargs(search_kwargs)
    fields = {name: values[name] for name in _ARGUMENTS if values.get(name) is not None}
    twice = [
        name
        for name in fields
        if name != "filter"
        and search_kwargs.get(name) is not None
        and search_kwargs[name] != fields[name]
    ]
    if twice:
        raise UsageError(
            f"{twice[0]} was given twice: {fields[twice[0]]!r}, and "
            f"{search_kwargs[twice[0]]!r} in search_kwargs. Give it once."
        )
    narrowed = both(search_kwargs.get("filter"), fields.get("filter"))
    return {**search_kwargs, **fields, **({} if narrowed is None else {"filter": narrowed})}
