"""What is common to the retrievers that fuse others' lists?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from typing_extensions import override

from cormorant.errors import QueryError
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, cut, takes
from cormorant.langchain.retrievers.fusing import in_store
from cormorant.langchain.retrievers.fusing.by_rank import fused
from cormorant.langchain.retrievers.fusing.legs import LegCall, OnError, aask_all, ask_all

__all__ = ["FusingRetriever", "Fusion", "check_depth"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """One call, decided.

    Attributes:
        legs: What is asked.
        weights: One per leg.
        rrf_k: The formula's constant.
        k: Documents wanted; None for all.
    """

    legs: Sequence[LegCall]
    weights: Sequence[float]
    rrf_k: float
    k: int | None


class FusingRetriever(Retriever):
    """Asks the legs, or the store under them, and fuses.

    To make one, write ``_children`` and ``_decide``.
    """

    fetch_k: int | None = None
    id_key: str | None = None
    on_error: OnError = "raise"

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter", "fetch_k")

    def _children(self) -> list[RetrieverLike]:
        raise NotImplementedError

    def _decide(self, asked: dict[str, Any]) -> Fusion:
        """What the call's arguments come to."""
        raise NotImplementedError

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the legs."""
        return get_unique_config_specs(
            spec for child in self._children() for spec in child.config_specs
        )

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call's argument of this name reaches every leg."""
        if not super().accepts(name) or name == "with_scores":
            return super().accepts(name)
        reaching = "filter" if name == "filter" else "k"
        return all(takes(child, reaching) for child in self._children())

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        fusion = self._decide(asked)
        inside = in_store.plan(fusion.legs, fusion.weights, rrf_k=fusion.rrf_k, k=fusion.k)
        answer = None if inside is None else inside.ask(run, query, self.on_error)
        if answer is None:
            answer = self._fused(fusion, ask_all(run, fusion.legs, query, self.on_error))
        return answer

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        fusion = self._decide(asked)
        inside = in_store.plan(fusion.legs, fusion.weights, rrf_k=fusion.rrf_k, k=fusion.k)
        answer = None if inside is None else await inside.aask(run, query, self.on_error)
        if answer is None:
            answers = await aask_all(run, fusion.legs, query, self.on_error)
            # Long lists take tens of milliseconds, which the event loop need not wait for.
            answer = await run_in_executor(None, self._fused, fusion, answers)
        return answer

    def _fused(self, fusion: Fusion, answers: Sequence[Answer]) -> Answer:
        names = [leg.name for leg in fusion.legs]
        answer = fused(answers, fusion.weights, names, rrf_k=fusion.rrf_k, id_key=self.id_key)
        return answer if fusion.k is None else cut(answer, fusion.k)


def check_depth(k: Any, fetch_k: Any, name: str = "k") -> None:
    """Refuse numbers of documents that are none, or that contradict each other.

    Raises:
        QueryError: If one is not a whole number of at least 1, or fetch_k is less than k.
    """
    if k is not None:
        check_k(k, name)
    if fetch_k is not None:
        check_k(fetch_k, "fetch_k")
    if k is not None and fetch_k is not None and fetch_k < k:
        raise QueryError(
            f"fetch_k must be at least {name}; got fetch_k={fetch_k} and {name}={k}. "
            "Raise fetch_k, or leave it out."
        )
