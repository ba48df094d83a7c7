"""How did this document get here, and what must be said of the whole list?

LangChain hands documents from stage to stage as a list of Documents, which have no place for a
score. Here a document carries its provenance beside its fields, where neither equality, nor
dumps, nor prompts see it, but copies and pickles take it along; and a list that one of our
stages returns, an Answer, carries what holds for all of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langchain_core.documents import Document

from cormorant.langchain.documents import SCORES_KEY
from cormorant.model import Hit, Leg, Mode, Result, Stage, Step

__all__ = [
    "Answer",
    "Provenance",
    "attach",
    "from_result",
    "hit",
    "journeyed",
    "lifted",
    "of",
    "result",
    "with_scores",
]

_SLOT: Final = "_cormorant"  # in Document.__dict__; the underscore keeps it out of iteration


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is known of one document's way to where it is.

    Attributes:
        score: What the list is ranked by, higher is better; None if the stage gave none.
        relevance: In [0, 1]; None if unknown.
        method: The stage that gave the score: ``vector``, ``text``, ``hybrid``, ``rerank``, …
        fusion_score: What fusion gave, kept when a later stage scores anew.
        rerank_score: What the last reranker gave.
        legs: How each leg saw the document. A leg's score is NaN if it told none.
        contributions: Each leg's part in ``fusion_score``.
        journey: The stages so far, in order.
    """

    score: float | None = None
    relevance: float | None = None
    method: str | None = None
    fusion_score: float | None = None
    rerank_score: float | None = None
    legs: Mapping[str, Leg] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    journey: tuple[Step, ...] = ()

    def then(self, step: Step, **changes: Any) -> Provenance:
        """The same with one more step, and with ``changes`` to its other attributes."""
        return replace(self, journey=(*self.journey, step), **changes)


class Answer(list[Document]):
    """A stage's documents, best first, and what holds for all of them.

    An ordinary list to whoever does not ask.

    Args:
        documents: Best first.
        mode: What was run.
        stages: In the order they ran.
        exact: True only if the ranking is what a full scan would give.
        complete: False if fewer came back than were wanted though more might exist.
        degraded: What was left out or done in a lesser way, a sentence each.
        plan: How each part was run, one sentence each.
    """

    def __init__(
        self,
        documents: Iterable[Document] = (),
        *,
        mode: Mode = "hybrid",
        stages: Iterable[Stage] = (),
        exact: bool = False,
        complete: bool = True,
        degraded: Iterable[str] = (),
        plan: Iterable[str] = (),
    ) -> None:
        super().__init__(documents)
        self.mode = mode
        self.stages = tuple(stages)
        self.exact = exact
        self.complete = complete
        self.degraded = tuple(degraded)
        self.plan = tuple(plan)

    @classmethod
    def taken(cls, documents: Iterable[Document]) -> Answer:
        """Any stage's list as an Answer; one that is an Answer keeps what it says.

        Scores a stage wrote into metadata are moved to where the pipeline keeps them.
        """
        answer = cls()
        if isinstance(documents, Answer):
            answer.__dict__.update(documents.__dict__)
        said: dict[str, None] = dict.fromkeys(answer.degraded)
        exact = []
        for document in documents:
            written = document.metadata.get(SCORES_KEY)
            if isinstance(written, Mapping):
                said.update(dict.fromkeys(_sentences(written.get("degraded"))))
                exact.append(written.get("exact") is True)
            answer.append(lifted(document))
        answer.degraded = tuple(said)
        if not isinstance(documents, Answer):
            answer.exact = len(exact) == len(answer) > 0 and all(exact)
        return answer

    def of(self, documents: Iterable[Document]) -> Answer:
        """The same said of other documents: a later stage's."""
        answer = Answer(documents)
        answer.__dict__.update(self.__dict__)
        return answer

    def degrading(self, *sentences: str) -> Answer:
        """The same with further sentences in ``degraded``, each once."""
        answer = self.of(self)
        answer.degraded = tuple(dict.fromkeys((*self.degraded, *sentences)))
        return answer


def of(document: Document) -> Provenance:
    """The document's provenance; an empty one if it has none."""
    kept = document.__dict__.get(_SLOT)
    if isinstance(kept, Provenance):
        return kept
    return _read(document.metadata.get(SCORES_KEY))


def attach(document: Document, provenance: Provenance) -> Document:
    """A copy of the document that carries ``provenance``, its metadata copied too."""
    metadata = {
        name: _copied(value) for name, value in document.metadata.items() if name != SCORES_KEY
    }
    copy = document.model_copy(update={"metadata": metadata})
    copy.__dict__[_SLOT] = provenance
    return copy


def journeyed(document: Document, step: Step, **changes: Any) -> Document:
    """A copy of the document with one more step in its journey.

    Args:
        document: With or without provenance.
        step: What just happened to it.
        **changes: New values of the provenance's other attributes.
    """
    return attach(document, of(document).then(step, **changes))


def lifted(document: Document) -> Document:
    """A copy without scores in its metadata; they are in its provenance."""
    return attach(document, of(document))


def with_scores(answer: Answer) -> Answer:
    """The documents with their scores under one metadata key, JSON values alone."""
    shown = []
    for rank, document in enumerate(answer, start=1):
        copy = lifted(document)
        copy.metadata[SCORES_KEY] = _written(of(document), rank, answer)
        shown.append(copy)
    return answer.of(shown)


def hit(document: Document, rank: int) -> Hit:
    """A document as a Hit; its id is empty if it has none, its score NaN if none is known."""
    known = of(document)
    return Hit(
        id=document.id or "",
        score=_number(known.score),
        rank=rank,
        relevance=_number(known.relevance),
        text=document.page_content,
        metadata={
            name: _copied(value) for name, value in document.metadata.items() if name != SCORES_KEY
        },
        legs=dict(known.legs),
        contributions=dict(known.contributions),
        journey=known.journey,
    )


def from_result(found: Result) -> Answer:
    """The engine's Result as an Answer."""
    fused = found.mode == "hybrid"
    documents = []
    for hit_ in found:
        says = f"Rank {hit_.rank} in {found.mode}, score {hit_.score:.4f}."
        known = Provenance(
            score=hit_.score,
            relevance=hit_.relevance,
            method=found.mode,
            fusion_score=hit_.score if fused else None,
            legs=dict(hit_.legs),
            contributions=dict(hit_.contributions),
            journey=hit_.journey or (Step(found.mode, kept=True, says=says, value=hit_.score),),
        )
        document = Document(id=hit_.id, page_content=hit_.text, metadata=dict(hit_.metadata))
        document.__dict__[_SLOT] = known  # nobody else holds it: no copy, as attach makes
        documents.append(document)
    return Answer(
        documents,
        mode=found.mode,
        stages=found.stages,
        exact=found.exact,
        complete=found.complete,
        degraded=found.degraded,
        plan=found.plan,
    )


def result(answer: Answer) -> Result:
    """An Answer as the engine's Result."""
    return Result(
        hits=tuple(hit(document, rank) for rank, document in enumerate(answer, start=1)),
        mode=answer.mode,
        stages=answer.stages,
        exact=answer.exact,
        complete=answer.complete,
        degraded=answer.degraded,
        plan=answer.plan,
    )


def _written(known: Provenance, rank: int, answer: Answer) -> dict[str, Any]:
    return {
        "score": _finite(known.score),
        "relevance": _finite(known.relevance),
        "rank": rank,
        "retrieval_method": known.method,
        "fusion_score": _finite(known.fusion_score),
        "rerank_score": _finite(known.rerank_score),
        "legs": {
            name: {"score": _finite(leg.score), "rank": leg.rank}
            for name, leg in known.legs.items()
        },
        "contributions": {name: _finite(part) for name, part in known.contributions.items()},
        "journey": [
            {
                "stage": step.stage,
                "kept": step.kept,
                "says": step.says,
                "value": _finite(step.value),
            }
            for step in known.journey
        ],
        "exact": answer.exact,
        "degraded": list(answer.degraded),
    }


def _read(written: object) -> Provenance:
    """Provenance from what ``with_scores=True`` wrote; what is of another shape is nobody's."""
    if not isinstance(written, Mapping):
        return Provenance()
    method, legs = written.get("retrieval_method"), written.get("legs")
    contributions, journey = written.get("contributions"), written.get("journey")
    return Provenance(
        score=_told(written.get("score")),
        relevance=_told(written.get("relevance")),
        method=method if isinstance(method, str) else None,
        fusion_score=_told(written.get("fusion_score")),
        rerank_score=_told(written.get("rerank_score")),
        legs={
            str(name): Leg(score=_number(_told(leg.get("score"))), rank=_rank(leg.get("rank")))
            for name, leg in (legs.items() if isinstance(legs, Mapping) else ())
            if isinstance(leg, Mapping)
        },
        contributions={
            str(name): _number(_told(part))
            for name, part in (contributions.items() if isinstance(contributions, Mapping) else ())
        },
        journey=tuple(
            Step(step["stage"], bool(step.get("kept")), step["says"], _told(step.get("value")))
            for step in (journey if isinstance(journey, (list, tuple)) else ())
            if isinstance(step, Mapping)
            and isinstance(step.get("stage"), str)
            and isinstance(step.get("says"), str)
        ),
    )


def _sentences(written: object) -> list[str]:
    listed = written if isinstance(written, (list, tuple)) else ()
    return [each for each in listed if isinstance(each, str)]


def _told(value: object) -> float | None:
    """A number as a float; None if it is none that a float can hold."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or abs(value) > sys.float_info.max:  # type: ignore[arg-type]
        return None
    return float(value)  # type: ignore[arg-type]


def _rank(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _copied(value: Any) -> Any:
    """Containers anew; what else metadata may hold is shared."""
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
