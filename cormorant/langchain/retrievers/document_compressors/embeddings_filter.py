"""Which documents are near the question, by their embeddings?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.index.vector.metric import relevance
from cormorant.langchain.embedder import check_embedding
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.document_compressors.compressor import Call, Compressor
from cormorant.langchain.retrievers.document_compressors.ranking import check_scores, ranked
from cormorant.langchain.retrievers.document_compressors.reranker import check_minimum
from cormorant.langchain.retrievers.document_compressors.vectors import (
    aembed,
    aembed_query,
    cosines,
    embed,
    embed_query,
)

__all__ = ["EmbeddingsFilter"]


class EmbeddingsFilter(Compressor):
    """Keeps the documents most like the question, most like first.

    Args:
        embeddings: Any LangChain Embeddings.
        similarity_fn: Two matrices, shapes (1, dim) and (n, dim), to their similarities, shape
            (1, n), higher is nearer; cosine by default.
        k: Documents to keep; None: all that ``similarity_threshold`` admits. A call's ``top_n``
            comes before it.
        similarity_threshold: The lowest similarity to keep.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        QueryError: If neither ``k`` nor ``similarity_threshold`` is given.
    """

    embeddings: Embeddings
    similarity_fn: Callable[[Any, Any], Any] = Field(default=cosines)
    k: int | None = defaults.EMBEDDINGS_FILTER_K
    similarity_threshold: float | None = None

    call_arguments: ClassVar[tuple[str, ...]] = ("top_n",)

    def __init__(self, **values: Any) -> None:
        check_embedding(values.get("embeddings"), "embeddings", needed=True)
        k = values.get("k", defaults.EMBEDDINGS_FILTER_K)
        check_minimum(values.get("similarity_threshold"), "similarity_threshold")
        if k is not None:
            check_k(k)
        elif values.get("similarity_threshold") is None:
            raise QueryError(
                "EmbeddingsFilter needs k or similarity_threshold; with neither it keeps all."
            )
        super().__init__(**values)

    @override
    def room_for(self, k: int) -> int:
        return k if self.k is None else max(k, self.k)

    @override
    def _compress(self, call: Call) -> Answer:
        documents = embed(self.embeddings, [doc.page_content for doc in call.answer])
        return self._nearest(call, embed_query(self.embeddings, call.query), documents)

    @override
    async def _acompress(self, call: Call) -> Answer:
        documents = await aembed(self.embeddings, [doc.page_content for doc in call.answer])
        query = await aembed_query(self.embeddings, call.query)
        return await run_in_executor(call.config, self._nearest, call, query, documents)

    def _nearest(
        self, call: Call, query: NDArray[np.float32], documents: NDArray[np.float32]
    ) -> Answer:
        found = np.asarray(self.similarity_fn(query[None, :], documents))
        scores = check_scores(found[0] if found.ndim == 2 else found, len(documents), "similarity")
        return ranked(
            call.answer,
            scores,
            who=self.get_name(),
            top_n=self.k if call.top_n is None else call.top_n,
            minimum=self.similarity_threshold,
            relevance=_cosine_relevance if self.similarity_fn is cosines else lambda _: None,
        )


def _cosine_relevance(cosine: float) -> float:
    return float(relevance(np.asarray(cosine), "cosine"))
