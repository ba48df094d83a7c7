"""Which of these documents are worth keeping, in which order, and how much of each?

Names are handed on lazily: asking for one loads that one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Name to the module it lives in. One line per name, in alphabetical order.
_HOMES: dict[str, str] = {
    "CohereRerank": "cohere_rerank",
    "Compressor": "compressor",
    "CrossEncoderReranker": "cross_encoder_rerank",
    "DocumentCompressorPipeline": "base",
    "EmbeddingsFilter": "embeddings_filter",
    "HostedReranker": "hosted_rerank",
    "HuggingFaceCrossEncoder": "cross_encoder",
    "LLMChainExtractor": "chain_extract",
    "LLMChainFilter": "chain_filter",
    "LLMListwiseRerank": "listwise_rerank",
    "LLMPointwiseRerank": "pointwise_rerank",
    "RerankError": "compressor",
    "Reranker": "reranker",
    "TokenBudgetPacker": "token_budget",
    "estimate_tokens": "token_budget",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of names


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
