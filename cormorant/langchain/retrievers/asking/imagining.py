"""Which vector stands for a question, between it and passages a model makes up for it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context
from langchain_core.runnables.utils import coro_with_context
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import RewriteError, UsageError
from cormorant.langchain.calls.blocking import aside, awaited, each, only_sync
from cormorant.langchain.calls.time_limit import time_left, to_thread
from cormorant.langchain.embedder import check_embedding
from cormorant.langchain.embeddings.naming import identity, uncached
from cormorant.langchain.embeddings.vectors import as_matrix
from cormorant.langchain.retrievers.asking.chain import chain_of, check_chain
from cormorant.langchain.retrievers.asking.rewriting import (
    excuse,
    passage,
    searchable,
)
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.calling import Run
from cormorant.langchain.retrievers.fusing.legs import OnError

__all__ = ["DEFAULT_PROMPT", "HypotheticalDocumentEmbedder"]

_TAG: Final = "llm_chain"

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
        vectors: list[list[float]]
        vectors = await awaited(self.base_embeddings, "embed_documents", texts)
        return vectors

    @override
    def embed_query(self, text: str) -> list[float]:
        """The mean vector for a question."""
        return self.imagine(text, self.config)[0]

    @override
    async def aembed_query(self, text: str) -> list[float]:
        """Like :meth:`embed_query`, awaiting model and base."""
        return (await self.aimagine(text, self.config))[0]

    def imagine(
        self, text: str, config: RunnableConfig | None = None, run: Run | None = None
    ) -> tuple[list[float], list[str], list[str]]:
        """The vector for a question, the passages in it, and what must be said of them.

        Args:
            text: The question.
            config: LangChain's, for the model's runs.
            run: Of the retriever that asks: the model's become its children, within its time.
        """
        try:
            passages, says = self._read(self._written(text, config, run))
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            passages, says = [], [self._alone(error)]
        base = self.base_embeddings
        vectors = base.embed_documents(passages) if passages else []
        if self.include_query or not passages:
            vectors = [*vectors, base.embed_query(text)]
        return self.combine_embeddings(vectors), passages, says

    async def aimagine(
        self, text: str, config: RunnableConfig | None = None, run: Run | None = None
    ) -> tuple[list[float], list[str], list[str]]:
        """Like :meth:`imagine`, awaiting model and base."""
        try:
            outputs = await self._awritten(text, config, run)
            passages, says = await aside("".join(map(str, outputs)), self._read, outputs)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            passages, says = [], [self._alone(error)]
        base = self.base_embeddings
        vectors = await awaited(base, "embed_documents", passages) if passages else []
        if self.include_query or not passages:
            vectors = [*vectors, await awaited(base, "embed_query", text)]
        return self.combine_embeddings(vectors), passages, says

    def _written(self, text: str, config: RunnableConfig | None, run: Run | None) -> list[Any]:
        chain = self.llm_chain

        def write(config: RunnableConfig) -> list[Any]:
            inputs = [text] * self.passages
            return each(chain, inputs, config, name=_TAG, return_exceptions=True)

        if run is not None:
            return run.within(write, _TAG, who=chain, name=_TAG, share=defaults.REWRITE_SHARE)
        config = ensure_config(config)
        with set_config_context(config) as context:
            return context.run(write, config)

    async def _awritten(
        self, text: str, config: RunnableConfig | None, run: Run | None
    ) -> list[Any]:
        chain = self.llm_chain
        if only_sync(chain) and time_left() is not None:
            return await to_thread(chain, self._written, text, config, run and run.sync)

        async def write(config: RunnableConfig) -> list[Any]:
            return await chain.abatch([text] * self.passages, config, return_exceptions=True)

        if run is not None:
            share = defaults.REWRITE_SHARE
            return await run.awithin(write, _TAG, who=chain, name=_TAG, share=share)
        config = ensure_config(config)
        with set_config_context(config) as context:
            coro = context.run(write, config)
            written: list[Any] = await coro_with_context(coro, context, create_task=True)
            return written

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

    def combine_embeddings(self, embeddings: list[list[float]]) -> list[float]:
        """The mean of the vectors."""
        name = identity(self.base_embeddings)
        matrix = as_matrix(embeddings, len(embeddings), model=name)
        mean: list[float] = matrix.mean(axis=0, dtype=np.float64).tolist()
        return mean
