"""What is near to an answer that a model makes up?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.runnables.utils import ConfigurableFieldSpec
from langchain_core.vectorstores import VectorStore
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import ScopeError, UsageError
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer, from_result
from cormorant.langchain.request import ACCEPTED, Request, refuse_unknown
from cormorant.langchain.retrievers.asking.chain import chain_of, check_chain
from cormorant.langchain.retrievers.asking.imagining import (
    DEFAULT_PROMPT,
    HypotheticalDocumentEmbedder,
)
from cormorant.langchain.retrievers.asking.rewriting import told
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of
from cormorant.langchain.retrievers.fusing.legs import OnError
from cormorant.langchain.retrievers.vectorstores import check_vectorstore
from cormorant.langchain.vectorstore import Cormorant

__all__ = ["DEFAULT_PROMPT", "HyDERetriever", "HypotheticalDocumentEmbedder"]


class HyDERetriever(Retriever):
    """Searches for what is near to passages a model makes up as answers, and to the question.

    The passages are looked for, never returned. Refusals are left out; if the model fails, the
    question alone is searched, and ``degraded`` says so.

    Args:
        vectorstore: Any vector store that can be searched by vector.
        llm_chain: The question to a passage.
        embeddings: Embeds passages and question; by default the store's own.
        passages: How many are written, all at once; 3 by default.
        include_query: Whether the question itself counts as one of them.
        k: Documents wanted, 4 by default.
        search_type: Over a Cormorant ``similarity``, ``mmr``, or ``hybrid``, whose text leg looks
            for the question's own words.
        search_kwargs: Of the search; its ``filter`` always holds.
        on_llm_error: ``raise`` hands on the model's failure.

    A call takes ``k`` and ``filter``.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.language_models import FakeListChatModel
        >>> texts = ["Cormorants eat fish.", "Gulls eat bread."]
        >>> with Cormorant.from_texts(texts, DeterministicFakeEmbedding(size=8)) as vs:
        ...     model = FakeListChatModel(responses=["Cormorants eat fish."])
        ...     HyDERetriever.from_llm(model, vs, k=1).invoke("What feeds them?")[0].page_content
        'Cormorants eat fish.'
    """

    vectorstore: VectorStore
    llm_chain: Runnable[Any, Any]
    embeddings: Any = None
    passages: int = defaults.HYDE_PASSAGES
    include_query: bool = True
    k: int = defaults.LANGCHAIN_K
    search_type: str = "similarity"
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    on_llm_error: OnError = "degrade"

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")

    def __init__(self, **values: Any) -> None:
        store = check_vectorstore(values.get("vectorstore"))
        check_chain(values.get("llm_chain"), "llm_chain")
        check_k(values.get("k", defaults.LANGCHAIN_K))
        kind = values.get("search_type", "similarity")
        kinds = ("similarity", "mmr", "hybrid") if isinstance(store, Cormorant) else ("similarity",)
        if kind not in kinds:
            raise UsageError(f"search_type must be one of {', '.join(kinds)}; got {kind!r}.")
        settings = values.get("search_kwargs") or {}
        if not isinstance(settings, Mapping):
            raise UsageError(f"search_kwargs must be a dict of search arguments; got {settings!r}.")
        if isinstance(store, Cormorant):
            accepted = [each for each in ACCEPTED[kind] if each not in {"k", "with_scores"}]
            refuse_unknown(settings, accepted, "search_kwargs")
        super().__init__(**values)
        self._embedder()  # its own checks

    @classmethod
    def from_llm(
        cls,
        llm: LanguageModelLike,
        vectorstore: VectorStore,
        prompt: BasePromptTemplate[Any] | None = None,
        **kwargs: Any,
    ) -> HyDERetriever:
        """Make one from a language model.

        Args:
            llm: The model.
            vectorstore: Any vector store that can be searched by vector.
            prompt: Over one variable, the question.
            **kwargs: The class's other arguments.
        """
        chain = chain_of(
            prompt or DEFAULT_PROMPT,
            llm,
            StrOutputParser(),
            call=f"{cls.__name__}.from_llm(llm, vectorstore)",
            gives=1,
        )
        return cls(llm_chain=chain, vectorstore=vectorstore, **kwargs)

    def _embedder(self) -> HypotheticalDocumentEmbedder:
        base: Any = self.vectorstore.embeddings if self.embeddings is None else self.embeddings
        return HypotheticalDocumentEmbedder(
            base_embeddings=base,
            llm_chain=self.llm_chain,
            passages=self.passages,
            include_query=self.include_query,
            on_llm_error=self.on_llm_error,
        )

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the chain."""
        return self.llm_chain.config_specs

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        self._refuse_scope(run)
        if isinstance(self.vectorstore, Cormorant) and self.embeddings is None:
            self.vectorstore.verify_embedder()
        vector, passages, says = self._embedder().imagine(query, run=run)
        return self._told(self._search(query, vector, run, asked), passages, says)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        self._refuse_scope(run)
        if isinstance(self.vectorstore, Cormorant) and self.embeddings is None:
            await self.vectorstore.averify_embedder()
        vector, passages, says = await self._embedder().aimagine(query, run=run)
        found = await to_thread(self.vectorstore, self._search, query, vector, run, asked)
        return self._told(found, passages, says)

    def _refuse_scope(self, run: Run) -> None:
        if scope_of(run.config) and not isinstance(self.vectorstore, Cormorant):
            raise ScopeError(
                f"The request has a scope, and a {type(self.vectorstore).__name__} cannot see it. "
                "Use a Cormorant, or leave this retriever out of scoped requests."
            )

    def _search(
        self, query: str, vector: list[float], run: Run, asked: Mapping[str, Any]
    ) -> Answer:
        arguments = {"k": self.k, **self.search_kwargs, **asked}
        joined = both(self.search_kwargs.get("filter"), asked.get("filter"))
        if joined is not None:
            arguments["filter"] = joined
        if not isinstance(self.vectorstore, Cormorant):
            found = self.vectorstore.similarity_search_by_vector(vector, **arguments)
            return Answer.taken(found)
        scope = scope_of(run.config)
        store = self.vectorstore.scope(**scope) if scope else self.vectorstore
        request = Request.build(self.search_type, arguments)
        return from_result(store.store.search(request.query(query, vector)))

    def _told(self, found: Answer, passages: Sequence[str], says: Sequence[str]) -> Answer:
        written = [f"passage {number}: {each}" for number, each in enumerate(passages, start=1)]
        return told(found, written, says)
