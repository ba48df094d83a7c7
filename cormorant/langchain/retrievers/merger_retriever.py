"""What do several retrievers find, taken in turns?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables.config import run_in_executor
from typing_extensions import override

from cormorant.langchain.provenance import Answer, Provenance, attach, of
from cormorant.langchain.retrievers.asking.chain import check_retrievers
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, cut, takes
from cormorant.langchain.retrievers.fusing.by_rank import ranked_step
from cormorant.langchain.retrievers.fusing.duplicates import grouped
from cormorant.langchain.retrievers.fusing.legs import (
    LegCall,
    OnError,
    aask_all,
    ask_all,
    named,
    with_k,
)
from cormorant.model import Leg, Step

__all__ = ["MergerRetriever"]


class MergerRetriever(Retriever):
    """Retrievers asked at once, their documents taken in turns: each one's first, second, ….

    Args:
        retrievers: Any retrievers or Runnables from a question to Documents.
        deduplicate: Return a document that several bring once, where it comes first. Two are
            the same as in :class:`~cormorant.langchain.retrievers.EnsembleRetriever`.
        id_key: Metadata key that tells documents apart.
        k: Documents wanted; by default all that any retriever returned.
        on_error: ``degrade`` leaves a failing retriever out, and says so in ``degraded``.

    A call takes ``k`` and ``filter``. ``k`` also asks each retriever for as many, unless it was
    made to bring more. What cannot reach every retriever is refused.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from cormorant.langchain.retrievers import BM25Retriever, MergerRetriever
        >>> one = BM25Retriever.from_texts(["a fish", "fish, two of them"])
        >>> two = BM25Retriever.from_texts(["a boat with a fish", "a fish"])
        >>> [doc.page_content for doc in MergerRetriever(retrievers=[one, two]).invoke("fish")]
        ['a fish', 'fish, two of them', 'a boat with a fish']
    """

    retrievers: list[RetrieverLike]
    deduplicate: bool = True
    id_key: str | None = None
    k: int | None = None
    on_error: OnError = "raise"

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")

    def __init__(self, **values: Any) -> None:
        check_retrievers(values.get("retrievers"))
        if values.get("k") is not None:
            check_k(values["k"])
        super().__init__(**values)

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call's argument of this name reaches every retriever."""
        reaches = name == "with_scores" or all(takes(child, name) for child in self.retrievers)
        return super().accepts(name) and reaches

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        legs = self._legs(asked)
        return self._merged(ask_all(run, legs, query, self.on_error), legs, asked)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        legs = self._legs(asked)
        answers = await aask_all(run, legs, query, self.on_error)
        # Long lists take tens of milliseconds, which the event loop need not wait for.
        return await run_in_executor(None, self._merged, answers, legs, asked)

    def _legs(self, asked: dict[str, Any]) -> list[LegCall]:
        return [
            with_k(LegCall(name, child, {"filter": asked.get("filter")}), asked.get("k"))
            for name, child in zip(named(self.retrievers), self.retrievers, strict=True)
        ]

    def _merged(
        self, answers: Sequence[Answer], legs: Sequence[LegCall], asked: dict[str, Any]
    ) -> Answer:
        ranked = [
            [_ranked(document, leg.name, rank) for rank, document in enumerate(answer, start=1)]
            for answer, leg in zip(answers, legs, strict=True)
        ]
        turns = [doc for turn in zip_longest(*ranked) for doc in turn if doc is not None]
        if self.deduplicate:
            turns = _once(turns, self.id_key)
        documents = [
            attach(document, of(document).then(_placed(place, len(turns))))
            for place, document in enumerate(turns, start=1)
        ]
        merged = Answer(
            documents,
            stages=[stage for answer in answers for stage in answer.stages],
            exact=all(answer.exact for answer in answers),
            complete=all(answer.complete for answer in answers),
            degraded=dict.fromkeys(says for answer in answers for says in answer.degraded),
            plan=[says for answer in answers for says in answer.plan],
        )
        k = asked.get("k", self.k)
        return merged if k is None else cut(merged, k)


def _ranked(document: Document, name: str, rank: int) -> Document:
    """The document with its leg's view; taking turns gives no score of its own."""
    known = of(document)
    score = float("nan") if known.score is None else known.score
    return attach(
        document,
        Provenance(
            relevance=known.relevance,
            method="merge",
            legs={name: Leg(score=score, rank=rank)},
            journey=(*known.journey, ranked_step(name, rank, known.score)),
        ),
    )


def _once(turns: Sequence[Document], id_key: str | None) -> list[Document]:
    """Each document where it comes first, with every leg's view of it."""
    # Every place is a list of its own, so that a group keeps all of its views.
    documents = []
    for group in grouped([[document] for document in turns], id_key):
        legs: dict[str, Leg] = {}
        journey: list[Step] = []
        for view in group.views.values():
            known = of(view)
            for name, leg in known.legs.items():
                legs.setdefault(name, leg)
            journey.extend(known.journey)
        first = group.document
        told = of(first)
        documents.append(
            attach(
                first,
                Provenance(
                    relevance=told.relevance,
                    method=told.method,
                    legs=legs,
                    journey=tuple(journey),
                ),
            )
        )
    return documents


def _placed(place: int, count: int) -> Step:
    return Step("merge", kept=True, says=f"Taken in turns: place {place} of {count}.", value=place)
