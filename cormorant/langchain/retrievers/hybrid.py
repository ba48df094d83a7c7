"""What do the vectors and the words say together?"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import Runnable
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.langchain.retrievers.asking.chain import check_retriever
from cormorant.langchain.retrievers.calling import takes
from cormorant.langchain.retrievers.fusing.base import (
    FusingRetriever,
    Fusion,
    check_depth,
)
from cormorant.langchain.retrievers.fusing.by_rank import check_rrf_k, check_weights
from cormorant.langchain.retrievers.fusing.legs import LegCall, own_k

__all__ = ["HybridRetriever"]

_NAMES: Final = ("vector", "text")


class HybridRetriever(FusingRetriever):
    """A vector retriever and a keyword retriever, fused by weighted reciprocal ranks.

    Over one Cormorant the store fuses in one call, with the same ranking.

    Args:
        vector_retriever: Any retriever or Runnable from a question to Documents.
        keyword_retriever: Likewise.
        vector_weight: Trust in the first, .7 by default; at least 0.
        keyword_weight: Trust in the second, .3 by default; not both 0.
        top_k: Documents wanted, 5 by default; ``k`` is another name for it.
        rrf_k: The formula's constant, 60 by default.
        fetch_k: Documents each retriever is asked for, at least ``top_k``. By default as many
            as it was made to bring; one that was not told, max(50, 4 × top_k), if it takes ``k``.
        id_key: Metadata key that tells documents apart.
        on_error: ``degrade`` leaves a failing retriever out, and says so in ``degraded``.

    A call takes ``k`` (the same as ``top_k``), ``filter`` and ``fetch_k``; what cannot reach
    both retrievers is refused.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from cormorant.langchain import Cormorant
        >>> from cormorant.langchain.retrievers import HybridRetriever
        >>> vs = Cormorant.from_texts(["a fish", "a boat"], DeterministicFakeEmbedding(size=8))
        >>> hybrid = HybridRetriever(
        ...     vector_retriever=vs.as_retriever(),
        ...     keyword_retriever=vs.as_retriever(search_type="text"),
        ...     top_k=1,
        ... )
        >>> hybrid.retrieve("fish").hits[0].legs["text"].rank
        1
        >>> vs.close()
    """

    vector_retriever: RetrieverLike
    keyword_retriever: RetrieverLike
    vector_weight: float = defaults.HYBRID_VECTOR_WEIGHT
    keyword_weight: float = defaults.HYBRID_KEYWORD_WEIGHT
    top_k: int = defaults.HYBRID_TOP_K
    rrf_k: float = defaults.RRF_K

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "top_k", "filter", "fetch_k")
    also_takes: ClassVar[tuple[str, ...]] = ("k",)

    def __init__(self, **values: Any) -> None:
        if "k" in values:
            values["top_k"] = _one_number(values.pop("k"), values.get("top_k"))
        for name in ("vector_retriever", "keyword_retriever"):
            if isinstance(values.get(name), Runnable):  # what is none, the field's type refuses
                check_retriever(values[name], name)
        check_weights(
            [
                values.get("vector_weight", defaults.HYBRID_VECTOR_WEIGHT),
                values.get("keyword_weight", defaults.HYBRID_KEYWORD_WEIGHT),
            ],
            2,
            "vector_weight and keyword_weight",
        )
        check_rrf_k(values.get("rrf_k", defaults.RRF_K), "rrf_k")
        check_depth(values.get("top_k", defaults.HYBRID_TOP_K), values.get("fetch_k"), "top_k")
        super().__init__(**values)

    @override
    def _children(self) -> list[RetrieverLike]:
        return [self.vector_retriever, self.keyword_retriever]

    @override
    def _decide(self, asked: dict[str, Any]) -> Fusion:
        called = _one_number(asked.get("k"), asked.get("top_k"))
        k = self.top_k if called is None else called
        fetch_k = asked.get("fetch_k", self.fetch_k)
        check_depth(k, fetch_k, "top_k")
        legs = []
        for name, child in zip(_NAMES, self._children(), strict=True):
            depth = fetch_k
            told = own_k(child)
            if depth is None and (called is not None or told is None):
                depth = defaults.leg_fetch_k(k) if told is None else max(k, told)
            if depth is not None and called is None and fetch_k is None and not takes(child, "k"):
                depth = None  # nobody asked for it: the retriever brings what it brings
            legs.append(LegCall(name, child, {"filter": asked.get("filter"), "k": depth}))
        return Fusion(legs, [self.vector_weight, self.keyword_weight], self.rrf_k, k)


def _one_number(k: Any, top_k: Any) -> Any:
    """Of two names for one number, that which was given."""
    if k is not None and top_k is not None and k != top_k:
        raise QueryError(
            f"k and top_k are the same thing; got k={k!r} and top_k={top_k!r}. Give one."
        )
    return top_k if k is None else k
