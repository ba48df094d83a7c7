"""What comes first, once something besides relevance counts?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables.utils import ConfigurableFieldSpec
from typing_extensions import override

from cormorant import defaults
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.provenance import Answer, journeyed
from cormorant.langchain.retrievers.asking.chain import check_retriever
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, cut, takes
from cormorant.langchain.retrievers.fusing.base import check_depth
from cormorant.langchain.retrievers.fusing.legs import own_k
from cormorant.langchain.retrievers.rescoring.relevance import relevances
from cormorant.model import Step

__all__ = ["Factor", "Rescoring"]


@dataclass(frozen=True, slots=True)
class Factor:
    """What a document's relevance is multiplied by.

    Attributes:
        value: At least 0; None drops the document.
        says: Why, as in ``2^(−12.0/30)``.
        note: What must be said of the whole answer because of it.
    """

    value: float | None
    says: str
    note: str | None = None


class Rescoring(Retriever):
    """Fetches candidates, and ranks them by relevance × factor.

    The base of FreshnessRetriever and BoostRetriever.
    """

    retriever: RetrieverLike
    k: int = defaults.RESCORE_K
    fetch_k: int = defaults.RESCORE_FETCH_K

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "fetch_k", "filter")
    stage: ClassVar[str]
    """The name of the step in a hit's journey."""

    def __init__(self, **values: Any) -> None:
        check_retriever(values.get("retriever"))
        fields = type(self).model_fields
        k = values.get("k", fields["k"].default)
        check_k(k)
        check_depth(k, values.get("fetch_k"))
        values.setdefault("fetch_k", max(k, fields["fetch_k"].default))
        super().__init__(**values)

    @abstractmethod
    def _factors(self, query: str) -> Callable[[Document], Factor]:
        """What each document's relevance is multiplied by, all by the same clock."""

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The retriever's configurable fields."""
        return self.retriever.config_specs

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call takes an argument of this name, and it reaches where it must."""
        return super().accepts(name) and (name != "filter" or takes(self.retriever, name))

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        k, arguments = self._depth(asked)
        found = run.call(self.retriever, query, tag="retriever", **arguments)
        return self._rescored(found, query, k)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        k, arguments = self._depth(asked)
        found = await run.acall(self.retriever, query, tag="retriever", **arguments)
        # In a thread: formulas are the user's, and may take their time.
        return await to_thread(self, self._rescored, found, query, k)

    def _depth(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        k = asked.get("k", self.k)
        fetch_k = asked.get("fetch_k", max(self.fetch_k, k))
        check_depth(k, fetch_k)
        arguments = {"filter": asked.get("filter")}
        if "fetch_k" in asked or takes(self.retriever, "k"):
            told = own_k(self.retriever)
            arguments["k"] = fetch_k if told is None else max(fetch_k, told)
        return k, arguments  # a retriever that takes no k brings what it brings

    def _rescored(self, found: Answer, query: str, k: int) -> Answer:
        worths, says = relevances(found)
        notes = dict.fromkeys([] if says is None else [says])
        factor_of = self._factors(query)
        scored: list[tuple[float, Document]] = []
        for document, relevance in zip(found, worths, strict=True):
            factor = factor_of(document)
            if factor.note is not None:
                notes[factor.note] = None
            if factor.value is None:
                continue
            score = relevance * factor.value
            says = f"Relevance {relevance:.4f} × {factor.says} = {score:.4f}."
            step = Step(self.stage, kept=True, says=says, value=score)
            scored.append((score, journeyed(document, step, score=score, method=self.stage)))
        ranked = found.of(_sorted(scored)).degrading(*notes)
        ranked.exact = False  # the best of the candidates, not of all
        ranked.plan = (*found.plan, f"{self.stage}: {len(scored)} of {len(found)} candidates")
        return cut(ranked, k)


def _sorted(scored: Sequence[tuple[float, Document]]) -> list[Document]:
    """Best first; ties in the retriever's order."""
    return [document for _, document in sorted(scored, key=lambda each: -each[0])]
