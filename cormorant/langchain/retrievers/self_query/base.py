"""Which part of a question is a filter, and what is found with it?"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelLike
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from langchain_core.structured_query import (
    Comparison,
    FilterDirective,
    Operation,
    StructuredQuery,
    Visitor,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import FilterError, RewriteError, UsageError
from cormorant.filters import describe, escape_field, parse
from cormorant.langchain.filtering import both
from cormorant.langchain.filters import CormorantTranslator
from cormorant.langchain.provenance import Answer
from cormorant.langchain.request import refuse_unknown
from cormorant.langchain.retrievers.asking.chain import check_chain, model_of
from cormorant.langchain.retrievers.asking.rewriting import (
    aask_model,
    ask_model,
    excuse,
    flaw,
    quoted,
    told,
)
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of
from cormorant.langchain.retrievers.fusing.duplicates import unique
from cormorant.langchain.retrievers.fusing.legs import OnError
from cormorant.langchain.retrievers.self_query.constructor import (
    AttributeInfo,
    attributes,
    query_constructor,
)
from cormorant.langchain.retrievers.self_query.typed import typed
from cormorant.langchain.retrievers.vectorstores import check_vectorstore
from cormorant.langchain.vectorstore import Cormorant
from cormorant.store import Store

__all__ = ["SelfQueryRetriever"]

logger = logging.getLogger(__name__)

_CHAIN_KWARGS: Final = ("allowed_comparators", "allowed_operators", "examples", "prompt")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is searched for: text, search arguments, and what must be said of them."""

    query: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


class SelfQueryRetriever(Retriever):
    r"""A model splits the question into what to look for and a filter, and both are searched.

    The filter it makes is checked: every field must be one it was told of and, over a Cormorant,
    one that the store's documents have; values become the field's type. It is AND-ed with the
    filter in ``search_kwargs``, the call's and the scope's, so it can narrow them and never widen
    them. If the model fails, or its filter does not hold, the question as it was put is searched
    under the other filters, and ``degraded`` says so.

    Args:
        vectorstore: Any vector store.
        query_constructor: ``{"query"}`` to a StructuredQuery; also as ``llm_chain``.
        search_type: As in ``vectorstore.as_retriever``.
        search_kwargs: Likewise; its ``filter`` always holds.
        structured_query_translator: StructuredQuery to search arguments. Needed for stores other
            than Cormorant and InMemoryVectorStore.
        metadata_field_info: The fields a filter may name, and their types; None: those the
            store's documents have.
        use_original_query: Search the text as it was put, with the filter.
        k: Documents wanted; by default what ``search_kwargs`` says. A number in the question
            comes before it, up to ``max_limit``, and never beyond the call's ``k``.
        max_limit: The most documents a question can ask for.
        on_llm_error: ``raise`` hands on the model's failure, and refuses a filter that does
            not hold.
        verbose: Log what the model made.

    A call takes ``k`` and ``filter``.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from cormorant.langchain import Cormorant
        >>> vs = Cormorant.from_texts(["a gull", "a tern"], None, [{"year": 2019}, {"year": 2024}])
        >>> reply = '{"query": "gull or tern", "filter": "gte(\\"year\\", 2020)"}'
        >>> retriever = SelfQueryRetriever.from_llm(
        ...     FakeListChatModel(responses=[reply]), vs, "notes on birds", search_type="text"
        ... )
        >>> [doc.page_content for doc in retriever.invoke("gulls or terns since 2020")]
        ['a tern']
        >>> vs.close()
    """

    vectorstore: VectorStore
    query_constructor: Runnable[Any, Any]
    search_type: str = "similarity"
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    structured_query_translator: Visitor
    metadata_field_info: tuple[AttributeInfo, ...] | None = None
    use_original_query: bool = False
    k: int | None = None
    max_limit: int = defaults.SELF_QUERY_MAX_LIMIT
    on_llm_error: OnError = "degrade"
    verbose: bool = False

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")
    also_takes: ClassVar[tuple[str, ...]] = ("llm_chain",)

    def __init__(self, **values: Any) -> None:
        if "llm_chain" in values:
            values["query_constructor"] = values.pop("llm_chain")
        check_chain(values.get("query_constructor"), "query_constructor")
        store = check_vectorstore(values.get("vectorstore"))
        if values.get("structured_query_translator") is None:
            values["structured_query_translator"] = _translator(store)
        if values.get("metadata_field_info") is not None:
            values["metadata_field_info"] = attributes(values["metadata_field_info"])
        for name in ("k", "max_limit"):
            if values.get(name) is not None:
                check_k(values[name], name)
        super().__init__(**values)
        self._child()  # its own checks, before the first question

    @property
    def llm_chain(self) -> Runnable[Any, Any]:
        """The chain, under its older name."""
        return self.query_constructor

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the chain and the store's retriever."""
        below = (self.query_constructor, self._child())
        return get_unique_config_specs(spec for child in below for spec in child.config_specs)

    @classmethod
    def from_llm(
        cls,
        llm: LanguageModelLike,
        vectorstore: VectorStore,
        document_contents: str,
        metadata_field_info: Sequence[Any] | None = None,
        structured_query_translator: Visitor | None = None,
        chain_kwargs: Mapping[str, Any] | None = None,
        enable_limit: bool = False,  # noqa: FBT001, FBT002 - its place in langchain-classic
        use_original_query: bool = False,  # noqa: FBT001, FBT002 - likewise
        **kwargs: Any,
    ) -> SelfQueryRetriever:
        """Make one from a language model.

        Args:
            llm: The model.
            vectorstore: Any vector store.
            document_contents: What the documents are, in a few words.
            metadata_field_info: The fields it may filter by: AttributeInfos or dicts. None, for a
                Cormorant: the fields its documents have now.
            structured_query_translator: StructuredQuery to search arguments.
            chain_kwargs: ``allowed_comparators``, ``allowed_operators``, ``examples`` (questions
                and the JSON object each should become), ``prompt``.
            enable_limit: Let the model say how many documents are wanted.
            use_original_query: Search the text as it was put, with the filter.
            **kwargs: The class's other arguments.
        """
        model_of(llm, f"{cls.__name__}.from_llm(llm, vectorstore, document_contents)")
        check_vectorstore(vectorstore)
        translator = structured_query_translator or _translator(vectorstore)
        made = dict(chain_kwargs or {})
        refuse_unknown(made, _CHAIN_KWARGS, "chain_kwargs")
        for name in ("allowed_comparators", "allowed_operators"):
            if made.get(name) is None:
                made.pop(name, None)
                if getattr(translator, name) is not None:
                    made[name] = getattr(translator, name)
        fields = _fields(vectorstore) if metadata_field_info is None else metadata_field_info
        call = f"{cls.__name__}.from_llm(llm, vectorstore, document_contents)"
        chain = query_constructor(
            llm, document_contents, fields, enable_limit=enable_limit, call=call, **made
        )
        return cls(
            query_constructor=chain,
            vectorstore=vectorstore,
            structured_query_translator=translator,
            metadata_field_info=fields,
            use_original_query=use_original_query,
            **kwargs,
        )

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        try:
            made = ask_model(run, self.query_constructor, {"query": query}, "query_constructor")
            prepared = self._prepared(query, made, run)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            prepared = self._alone(query, error)
        text, arguments = self._call(prepared, asked)
        found = run.call(self._child(), text, tag="vectorstore", **arguments)
        return self._told(found, prepared)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        try:
            chain = self.query_constructor
            made = await aask_model(run, chain, {"query": query}, "query_constructor")
            prepared = await run_in_executor(None, self._prepared, query, made, run)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            prepared = self._alone(query, error)
        text, arguments = self._call(prepared, asked)
        found = await run.acall(self._child(), text, tag="vectorstore", **arguments)
        return self._told(found, prepared)

    def _child(self) -> Runnable[str, list[Document]]:
        settings = dict(self.search_kwargs)
        if self.k is not None:
            settings["k"] = self.k
        return self.vectorstore.as_retriever(search_type=self.search_type, search_kwargs=settings)

    def _alone(self, query: str, error: Exception) -> _Prepared:
        says = excuse(
            error, self.on_llm_error, "the question was searched as it was put, without a filter"
        )
        return _Prepared(query, degraded=(says,))

    def _prepared(self, query: str, made: Any, run: Run) -> _Prepared:
        """What the model made, checked and translated.

        Raises:
            RewriteError: If it does not hold.
        """
        if not isinstance(made, StructuredQuery):
            raise RewriteError(f"query_constructor must give a StructuredQuery; got {made!r:.200}")
        if self.verbose:
            logger.info("Generated query: %s", quoted(str(made)))
        if made.filter is not None:
            self._check_fields(made.filter, run)
            checked = typed(made.filter, self.metadata_field_info or ())
            made = StructuredQuery(query=made.query, filter=checked, limit=made.limit)
        try:
            text, arguments = self.structured_query_translator.visit_structured_query(made)
            arguments = dict(arguments)
            if isinstance(arguments.get("filter"), Mapping) and isinstance(
                self.vectorstore, (Cormorant, InMemoryVectorStore)
            ):
                parse(arguments["filter"])  # before the search, where it would be the caller's
            if isinstance(self.vectorstore, InMemoryVectorStore) and "filter" in arguments:
                arguments["filter"] = _predicate(arguments["filter"])
        except (FilterError, ValueError, TypeError) as error:
            raise RewriteError(f"the filter cannot be translated: {error}") from error
        if made.limit is not None:
            arguments["k"] = min(made.limit, self._most())
        if self.use_original_query or not text.strip():
            text = query
        elif (wrong := flaw(text)) is not None:
            raise RewriteError(f"its query cannot be searched for: {wrong}")
        return _Prepared(text, arguments)

    def _most(self) -> int:
        """How many documents a question may ask for."""
        fetch_k = self.search_kwargs.get("fetch_k")
        return self.max_limit if fetch_k is None else min(self.max_limit, fetch_k)

    def _check_fields(self, directive: FilterDirective, run: Run) -> None:
        named = _named(directive)
        if self.metadata_field_info is not None:
            known = [each.name for each in self.metadata_field_info]
            for name in named:
                if name not in known:
                    raise RewriteError(
                        f"the filter names {quoted(name)}; it may name "
                        f"{', '.join(known) or 'nothing'}"
                    )
        if isinstance(self.vectorstore, Cormorant):
            scope = scope_of(run.config)
            store = self.vectorstore.scope(**scope) if scope else self.vectorstore
            for name in named:
                # In the scope alone: what a tenant's model says must not tell of others' fields.
                if not store.store.count({escape_field(name): {"$exists": True}}):
                    raise RewriteError(
                        f"the filter names {quoted(name)}, which no document of the store has"
                    )

    def _call(self, prepared: _Prepared, asked: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The search; here the generated filter meets the others, and all of them hold."""
        arguments = dict(prepared.arguments)
        for name in arguments:
            if name not in {"filter", "k"} and self.search_kwargs.get(name) is not None:
                raise FilterError(
                    f"The translator gives {name}, and search_kwargs has one too, which must hold: "
                    "the two cannot be joined. Say the fixed one as filter, over a Cormorant."
                )
        if asked.get("filter") is not None:
            arguments["filter"] = both(asked["filter"], arguments.get("filter"))
        counts = [each for each in (arguments.get("k"), asked.get("k")) if each is not None]
        if counts:
            arguments["k"] = min(counts)
        return prepared.query, arguments

    def _told(self, found: Answer, prepared: _Prepared) -> Answer:
        once = found.of(unique(found))
        says = f"self-query: {prepared.query}"
        generated = prepared.arguments.get("filter")
        if generated is not None:
            says += f", where {_described(generated)}"
        return told(once, [says], prepared.degraded)


def _translator(store: VectorStore) -> Visitor:
    if isinstance(store, (Cormorant, InMemoryVectorStore)):
        return CormorantTranslator()
    raise UsageError(
        f"SelfQueryRetriever needs a structured_query_translator for a {type(store).__name__}: "
        "the one of the store's own package. Only Cormorant and InMemoryVectorStore do without."
    )


def _fields(store: VectorStore) -> list[AttributeInfo]:
    """The metadata fields a store's documents have, described by what is in them."""
    door = store.store if isinstance(store, Cormorant) else None
    if not isinstance(door, Store):
        raise UsageError(
            "metadata_field_info is needed: the fields a filter may name, as AttributeInfos. Only "
            "an unscoped Cormorant can be asked for them."
        )
    read = []
    for name, info in door.stats().fields.items():
        about = f"in {info.present} documents"
        if info.values:
            about += f"; such as {', '.join(map(repr, info.values))}"
        if info.low is not None:
            about += f"; from {info.low} to {info.high}"
        kinds = {"text": "string"}
        kind = " or ".join(kinds.get(each, each) for each in info.kinds if each != "null")
        read.append(AttributeInfo(name=name, description=about, type=kind or "string"))
    return read


def _named(directive: FilterDirective) -> list[str]:
    if isinstance(directive, Comparison):
        return [directive.attribute]
    if isinstance(directive, Operation):
        return [name for argument in directive.arguments for name in _named(argument)]
    raise RewriteError(f"the filter has a part that is no comparison: {directive!r}")


def _predicate(filter: Any) -> Any:
    """A filter dict as InMemoryVectorStore takes it: a function of a Document."""
    if not isinstance(filter, Mapping):
        return filter
    parsed = parse(filter)
    return lambda document: parsed.matches(document.metadata)


def _described(filter: Any) -> str:
    if isinstance(filter, Mapping):
        try:
            return describe(parse(filter))
        except FilterError:
            pass
    return repr(filter)
