"""Which documents answer the question best, read together with it by a cross-encoder?"""

from __future__ import annotations

from typing import Any

from langchain_core.cross_encoders import BaseCrossEncoder
from typing_extensions import override

from cormorant.errors import UsageError
from cormorant.langchain.retrievers.document_compressors.compressor import Call
from cormorant.langchain.retrievers.document_compressors.cross_encoder import (
    DEFAULT_MODEL,
    HuggingFaceCrossEncoder,
    as_relevance,
)
from cormorant.langchain.retrievers.document_compressors.ranking import check_scores
from cormorant.langchain.retrievers.document_compressors.reranker import Reranker

__all__ = ["CrossEncoderReranker"]


class CrossEncoderReranker(Reranker):
    """Scores each document together with the question, and keeps the best.

    Args:
        model: LangChain's BaseCrossEncoder. One whose ``scale`` says ``logit`` or
            ``probability`` also gives relevances.
        model_name: In its place, what sentence-transformers is to load, at first use: a name on
            the Hugging Face hub or a folder. Needs ``pip install 'cormorant[rerank]'``.
        top_n: Documents to keep; None: all. A call's ``top_n`` comes before it.
        min_rerank_score: The lowest score to keep, on the model's own scale.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        MissingDependency: If a model is to be loaded and sentence-transformers is not installed.
        UsageError: If both ``model`` and ``model_name`` are given, or ``model`` is no
            cross-encoder.

    Example:
        >>> from langchain_core.cross_encoders import BaseCrossEncoder
        >>> from langchain_core.documents import Document
        >>> class ByLength(BaseCrossEncoder):
        ...     def score(self, text_pairs):
        ...         return [len(passage) for _, passage in text_pairs]
        >>> reranker = CrossEncoderReranker(model=ByLength(), top_n=1)
        >>> documents = [Document("short"), Document("the longest")]
        >>> reranker.invoke({"query": "which?", "documents": documents})[0].page_content
        'the longest'
    """

    model: BaseCrossEncoder
    model_name: str | None = None

    def __init__(self, **values: Any) -> None:
        model, name = values.get("model"), values.get("model_name")
        if model is not None and name is not None:
            raise UsageError("CrossEncoderReranker takes model or model_name; got both.")
        if model is None:
            values["model"] = HuggingFaceCrossEncoder(DEFAULT_MODEL if name is None else name)
        elif not isinstance(model, BaseCrossEncoder):
            raise UsageError(
                f"model must be a BaseCrossEncoder; got {model!r}. The name of a model to load "
                "is given as model_name."
            )
        super().__init__(**values)

    @override
    def _scores(self, call: Call) -> dict[int, float]:
        pairs = [(call.query, document.page_content) for document in call.answer]
        scores = self.model.score(pairs)
        return check_scores(scores, len(pairs), f"{type(self.model).__name__}.score")

    @override
    def _relevance(self, score: float) -> float | None:
        return as_relevance(score, getattr(self.model, "scale", None))
