"""What is near to an answer that a model makes up?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import run_in_executor, set_config_context
from langchain_core.runnables.utils import ConfigurableFieldSpec, coro_with_context
from langchain_core.vectorstores import VectorStore
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import ConfigError, ScopeError, UsageError
from cormorant.langchain.embedder import check_embedding
from cormorant.langchain.embeddings import as_matrix, identity
from cormorant.langchain.embeddings.naming import uncached
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer, from_result
from cormorant.langchain.request import ACCEPTED, Request, refuse_unknown
from cormorant.langchain.retrievers.asking import chain_of, check_chain
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of
from cormorant.langchain.retrievers.legs import OnError
from cormorant.langchain.retrievers.rewriting import (
    RewriteError,
    excuse,
    passage,
    searchable,
    told,
)
from cormorant.langchain.vectorstore import Cormorant

__all__ = ["DEFAULT_PROMPT", "HyDERetriever", "HypotheticalDocumentEmbedder"]


DEFAULT_PROMPT: Final = PromptTemplate.from_template(
    """Write a passage of a few sentences as it could stand in a document that answers the \
question below, in the language of the question. If you do not know the answer, write what such a \
passage would say. Write the passage alone.

Question: {question}
Passage:"""
)


class HypotheticalDocumentEmbedder(Embeddings):
    """Embeds a question as the mean of passages a model makes up for it, and of itself.

    Refusals and empty replies are left out; if nothing else came, it is the question's own vector.

    Args:
        base_embeddings: Embeds the passages as documents, and the question as a query.
        llm_chain: The question to a passage.
        passages: How many are written, all at once; 3 by default.
        include_query: Whether the question itself counts as one of them.
        on_llm_error: ``degrade`` leaves the question alone when the model fails.
        config: LangChain's, for the model's runs; they join the run around them as they are.

    Source:
        Gao et al., Precise Zero-Shot Dense Retrieval without Relevance Labels, ACL 2023,
        arXiv:2212.10496, equation 8.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Cormorants eat fish."])
        >>> embedder = HypotheticalDocumentEmbedder.from_llm(
        ...     model, DeterministicFakeEmbedding(size=4), passages=1, include_query=False
        ... )
        >>> len(embedder.embed_query("What do cormorants eat?"))
        4
    """

    def __init__(
        self,
        *,
        base_embeddings: Embeddings,
        llm_chain: Runnable[Any, Any],
        passages: int = defaults.HYDE_PASSAGES,
        include_query: bool = True,
        on_llm_error: OnError = "degrade",
        config: RunnableConfig | None = None,
    ) -> None:
        check_embedding(base_embeddings)
        check_chain(llm_chain, "llm_chain")
        check_k(passages, "passages")
        self.base_embeddings = base_embeddings
        self.llm_chain = llm_chain
        self.passages = passages
        self.include_query = include_query
        self.on_llm_error = on_llm_error
        self.config = config

    @classmethod
    def from_llm(
        cls,
        llm: LanguageModelLike,
        base_embeddings: Embeddings,
        prompt_key: None = None,
        custom_prompt: BasePromptTemplate[Any] | None = None,
        **kwargs: Any,
    ) -> HypotheticalDocumentEmbedder:
        """Make one from a language model.

        Args:
            llm: The model.
            base_embeddings: Embeds passages and question.
            prompt_key: None: langchain-classic's prompts for benchmarks are not here.
            custom_prompt: Over one variable, the question.
            **kwargs: The class's other arguments.
        """
        if prompt_key is not None:
            raise UsageError(
                f"There is no prompt named {prompt_key!r}; give custom_prompt, or neither."
            )
        chain = chain_of(
            custom_prompt or DEFAULT_PROMPT,
            llm,
            StrOutputParser(),
            call=f"{cls.__name__}.from_llm(llm, base_embeddings)",
            gives=1,
        )
        return cls(base_embeddings=base_embeddings, llm_chain=chain, **kwargs)

    @property
    def embedding_identity(self) -> str:
        """The base's: that is what a store's vectors are made with."""
        return identity(self.base_embeddings)

    @property
    def uncached(self) -> Embeddings:
        """The base: a store probes it, and asks the model nothing."""
        return uncached(self.base_embeddings)  # type: ignore[no-any-return]

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """As the base does: documents are what they are."""
        return self.base_embeddings.embed_documents(texts)

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Like :meth:`embed_documents`, awaiting the base."""
        return await self.base_embeddings.aembed_documents(texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        """The mean vector for a question."""
        return self.imagine(text, self.config)[0]

    @override
    async def aembed_query(self, text: str) -> list[float]:
        """Like :meth:`embed_query`, awaiting model and base."""
        return (await self.aimagine(text, self.config))[0]

    def imagine(
        self, text: str, config: RunnableConfig | None = None
    ) -> tuple[list[float], list[str], list[str]]:
        """The vector for a question, the passages in it, and what must be said of them."""
        passages, says = self._written(text, config)
        return self._embedded(text, passages), passages, says

    async def aimagine(
        self, text: str, config: RunnableConfig | None = None
    ) -> tuple[list[float], list[str], list[str]]:
        """Like :meth:`imagine`, awaiting model and base."""
        config = ensure_config(config)
        try:
            with set_config_context(config) as context:
                batch = partial(self.llm_chain.abatch, return_exceptions=True)
                coro = context.run(batch, [text] * self.passages, config)
                outputs = await coro_with_context(coro, context, create_task=True)
            passages, says = self._read(outputs)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            passages, says = [], [self._alone(error)]
        base = self.base_embeddings
        vectors = await base.aembed_documents(passages) if passages else []
        if self.include_query or not passages:
            vectors = [*vectors, await base.aembed_query(text)]
        return self.combine_embeddings(vectors), passages, says

    def _written(self, text: str, config: RunnableConfig | None) -> tuple[list[str], list[str]]:
        config = ensure_config(config)
        try:
            with set_config_context(config) as context:
                batch = partial(self.llm_chain.batch, return_exceptions=True)
                outputs = context.run(batch, [text] * self.passages, config)
            return self._read(outputs)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            return [], [self._alone(error)]

    def _read(self, outputs: Sequence[Any]) -> tuple[list[str], list[str]]:
        failures = [output for output in outputs if isinstance(output, Exception)]
        if failures and (len(failures) == len(outputs) or self.on_llm_error == "raise"):
            raise failures[0]
        written = [
            passage(output, type(self).__name__)
            for output in outputs
            if not isinstance(output, Exception)
        ]
        passages, flaws = searchable([each for each in written if each], "passage")
        if not passages:
            raise RewriteError(" ".join(("it refused, or wrote nothing usable.", *flaws)))
        says = [excuse(each, "degrade", "a passage was left out") for each in failures]
        left = written.count("")
        if left:
            whole = len(outputs)
            says.append(f"The model refused to write, or left empty, {left} of {whole} passages.")
        return passages, [*says, *flaws]

    def _alone(self, error: Exception) -> str:
        return excuse(error, self.on_llm_error, "the question alone was embedded")

    def _embedded(self, text: str, passages: list[str]) -> list[float]:
        base = self.base_embeddings
        vectors = base.embed_documents(passages) if passages else []
        if self.include_query or not passages:
            vectors = [*vectors, base.embed_query(text)]
        return self.combine_embeddings(vectors)

    def combine_embeddings(self, embeddings: list[list[float]]) -> list[float]:
        """The mean of the vectors."""
        name = identity(self.base_embeddings)
        matrix = as_matrix(embeddings, len(embeddings), model=name)
        mean: list[float] = matrix.mean(axis=0, dtype=np.float64).tolist()
        return mean


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
        store = values.get("vectorstore")
        if not isinstance(store, VectorStore):
            raise ConfigError(f"vectorstore must be a LangChain VectorStore; got {store!r:.80}.")
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
        vector, passages, says = self._embedder().imagine(query, run.child_config("llm_chain"))
        return self._told(self._search(query, vector, run, asked), passages, says)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        self._refuse_scope(run)
        if isinstance(self.vectorstore, Cormorant) and self.embeddings is None:
            await self.vectorstore.averify_embedder()
        config = run.child_config("llm_chain")
        vector, passages, says = await self._embedder().aimagine(query, config)
        found = await run_in_executor(None, self._search, query, vector, run, asked)
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
