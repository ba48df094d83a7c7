"""Retrieve many, keep the few that are worth it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import ScopeError, UsageError
from cormorant.langchain.provenance import Answer, journeyed, of
from cormorant.langchain.retrievers.asking.chain import check_retriever
from cormorant.langchain.retrievers.base import Retriever
from cormorant.langchain.retrievers.calling import Run, cut, scope_of, takes
from cormorant.langchain.retrievers.document_compressors.base import acompressed, compressed
from cormorant.langchain.retrievers.document_compressors.compressor import Call
from cormorant.langchain.retrievers.document_compressors.foreign import as_compressor
from cormorant.langchain.retrievers.fusing.base import check_depth
from cormorant.langchain.retrievers.fusing.by_rank import ranked_step
from cormorant.langchain.retrievers.fusing.legs import LegCall, OnError, own_k
from cormorant.langchain.scopes.children import checked, innermost

__all__ = ["ContextualCompressionRetriever"]

logger = logging.getLogger(__name__)


class ContextualCompressionRetriever(Retriever):
    """Asks a retriever, and has a compressor rerank, filter or shorten what it finds.

    Args:
        base_compressor: A document compressor, a document transformer, or a Runnable that takes
            ``{"query", "documents"}``.
        base_retriever: Any retriever or Runnable from a question to Documents.
        k: Documents wanted; by default what the compressor keeps. It reaches a reranker as its
            ``top_n``.
        fetch_k: Candidates the retriever is asked for, at least ``k``. By default what it was made
            with, and at least ``k``; four times ``k`` if it was made with no number.
        on_error: ``degrade`` returns the retriever's own order if the compressor fails, and says
            so in ``degraded``. Wrong arguments always raise.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    A call takes ``k``, ``fetch_k`` and ``filter``. What cannot reach the retriever is refused.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.cross_encoders import BaseCrossEncoder
        >>> from cormorant.langchain.retrievers import BM25Retriever
        >>> from cormorant.langchain.retrievers.document_compressors import CrossEncoderReranker
        >>> class ByLength(BaseCrossEncoder):
        ...     def score(self, text_pairs):
        ...         return [len(passage) for _, passage in text_pairs]
        >>> retriever = ContextualCompressionRetriever(
        ...     base_compressor=CrossEncoderReranker(model=ByLength(), top_n=1),
        ...     base_retriever=BM25Retriever.from_texts(["a fish", "a fish and a boat"]),
        ... )
        >>> [(hit.text, hit.score) for hit in retriever.retrieve("fish")]
        [('a fish and a boat', 17.0)]
    """

    base_compressor: Any
    base_retriever: RetrieverLike
    k: int | None = None
    fetch_k: int | None = None
    on_error: OnError = "raise"

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "fetch_k", "filter")

    def __init__(self, **values: Any) -> None:
        if values.get("base_compressor") is None:
            raise UsageError("ContextualCompressionRetriever needs base_compressor.")
        as_compressor(values["base_compressor"])
        check_retriever(values.get("base_retriever"), "base_retriever")
        check_depth(values.get("k"), values.get("fetch_k"))
        super().__init__(**values)

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the retriever and the compressor."""
        below = (self.base_retriever, as_compressor(self.base_compressor))
        return get_unique_config_specs(spec for child in below for spec in child.config_specs)

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call's argument of this name reaches the retriever."""
        below = "k" if name == "fetch_k" else name
        reaches = name == "with_scores" or takes(self.base_retriever, below)
        return super().accepts(name) and reaches

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        k, leg = self._leg(asked)
        found = run.call(leg.child, query, tag="base_retriever", **leg.arguments)
        call = self._call(found, query, run, k)
        if not found:
            return found
        try:
            kept = run.within(
                lambda config: compressed([self.base_compressor], replace(call, config=config)),
                "base_compressor",
                who=self.base_compressor,
                name=self._compressor_name,
            )
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            return self._degraded(call.answer, k, error)
        return self._inside(kept, run)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        k, leg = self._leg(asked)
        found = await run.acall(leg.child, query, tag="base_retriever", **leg.arguments)
        call = await run_in_executor(None, self._call, found, query, run, k)
        if not found:
            return found
        try:
            kept = await run.awithin(
                lambda config: acompressed([self.base_compressor], replace(call, config=config)),
                "base_compressor",
                who=self.base_compressor,
                name=self._compressor_name,
            )
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            return self._degraded(call.answer, k, error)
        return self._inside(kept, run)

    def _inside(self, kept: Answer, run: Run) -> Answer:
        """What the compressor kept, if it brought nothing from outside the request's scope."""
        return checked(kept, as_compressor(self.base_compressor), {}, scope_of(run.config))

    @property
    def _compressor_name(self) -> str:
        return as_compressor(self.base_compressor).get_name()

    def _leg(self, asked: dict[str, Any]) -> tuple[int | None, LegCall]:
        """How many documents are wanted, and what the retriever is asked."""
        k, fetch_k = asked.get("k", self.k), asked.get("fetch_k", self.fetch_k)
        check_depth(k, fetch_k)
        asks = fetch_k
        if asks is None and k is not None and ("k" in asked or takes(self.base_retriever, "k")):
            told = own_k(self.base_retriever)
            asks = defaults.RERANK_CANDIDATES * k if told is None else max(told, k)
        arguments = {"filter": asked.get("filter"), "k": asks}
        return k, LegCall("base_retriever", self.base_retriever, arguments)

    def _call(self, found: Answer, query: str, run: Run, k: int | None) -> Call:
        begun = found.of([_begun(document, rank) for rank, document in enumerate(found, start=1)])
        return Call(begun, query, run.child_config("base_compressor"), k)

    def _degraded(self, found: Answer, k: int | None, error: Exception) -> Answer:
        if self.on_error == "raise" or isinstance(error, (UsageError, ScopeError)):
            raise error
        says = (
            f"{self._compressor_name} failed, the order is the retriever's own: "
            f"{type(error).__name__}: {error}"
        )
        logger.warning(says)
        wanted = getattr(innermost(self.base_compressor), "top_n", None) if k is None else k
        own = found.degrading(says)
        return own if not isinstance(wanted, int) else cut(own, wanted)


def _begun(document: Document, rank: int) -> Document:
    """The document with its rank before the compressor, if it does not tell of its way yet."""
    known = of(document)
    if known.journey:
        return document
    return journeyed(document, ranked_step(known.method or "retrieve", rank, known.score))
