"""Which documents say nothing that a better one does not say already?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError, RerankError
from cormorant.langchain.document_transformers.transformer import Transformer
from cormorant.langchain.embedder import check_embedding
from cormorant.langchain.provenance import journeyed
from cormorant.langchain.retrievers.document_compressors.compressor import Call
from cormorant.langchain.retrievers.document_compressors.reranker import check_minimum
from cormorant.langchain.retrievers.document_compressors.vectors import aembed, cosines, embed
from cormorant.model import Step

__all__ = ["EmbeddingsRedundantFilter"]


class EmbeddingsRedundantFilter(Transformer):
    """Drops a document that is too much like a better-ranked one that is kept.

    Args:
        embeddings: Any LangChain Embeddings.
        similarity_fn: Two matrices, shapes (1, dim) and (n, dim), to their similarities, shape
            (1, n), higher is nearer; cosine by default.
        similarity_threshold: Two documents more alike than this are twins; the first stays.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.
    """

    embeddings: Embeddings
    similarity_fn: Callable[[Any, Any], Any] = Field(default=cosines)
    similarity_threshold: float = defaults.REDUNDANT_SIMILARITY

    needs_query: ClassVar[bool] = False

    def __init__(self, **values: Any) -> None:
        check_embedding(values.get("embeddings"), "embeddings", needed=True)
        threshold = values.get("similarity_threshold", defaults.REDUNDANT_SIMILARITY)
        check_minimum(threshold, "similarity_threshold")
        if threshold is None:
            raise QueryError("similarity_threshold must be a number; got None.")
        super().__init__(**values)

    @override
    def _compress(self, call: Call) -> list[Document]:
        texts = [document.page_content for document in call.answer]
        return self._without_twins(call, embed(self.embeddings, texts))

    @override
    async def _acompress(self, call: Call) -> list[Document]:
        texts = [document.page_content for document in call.answer]
        vectors = await aembed(self.embeddings, texts)
        return await run_in_executor(call.config, self._without_twins, call, vectors)

    def _without_twins(self, call: Call, vectors: NDArray[np.float32]) -> list[Document]:
        twins: dict[int, list[int]] = {}  # a kept document's position to those it stands for
        standing = np.ones(len(vectors), dtype=np.bool_)
        for position in range(len(vectors)):
            if not standing[position]:
                continue
            twins[position] = []
            later = position + 1 + np.flatnonzero(standing[position + 1 :])
            if not len(later):
                continue
            alike = later[self._likeness(vectors, position, later) > self.similarity_threshold]
            twins[position] = [int(other) for other in alike]
            standing[alike] = False
        return [
            journeyed(call.answer[position], self._step(call, others))
            for position, others in twins.items()
        ]

    def _likeness(
        self, vectors: NDArray[np.float32], position: int, later: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        found = np.asarray(
            self.similarity_fn(vectors[position : position + 1], vectors[later]), dtype=np.float64
        ).reshape(-1)
        if len(found) != len(later) or not np.isfinite(found).all():
            raise RerankError(
                f"similarity_fn must return {len(later)} finite numbers; got {found!r}."
            )
        return found

    def _step(self, call: Call, others: list[int]) -> Step:
        names = [call.answer[other].id or f"rank {other + 1}" for other in others]
        says = f"{self.get_name()}: no better-ranked document is like it."
        if names:
            says += f" It stands for {', '.join(names)}."
        return Step("redundant", kept=True, says=says, detail={"twins": names})
