"""How do a model's scores become an order, and what is kept of the order before?"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from cormorant.errors import RerankError
from cormorant.langchain.provenance import Answer, journeyed
from cormorant.model import Step

__all__ = ["check_scores", "number", "placed", "ranked"]

logger = logging.getLogger(__name__)


def check_scores(returned: Any, count: int, who: str) -> dict[int, float]:
    """A model's scores, one per document, by the document's position.

    Args:
        returned: A list or an array of numbers.
        count: How many documents were given.
        who: The model's name, for the message.

    Raises:
        RerankError: If there is not one finite number per document.
    """
    if returned is None or not hasattr(returned, "__len__") or isinstance(returned, (str, Mapping)):
        raise RerankError(
            f"{who} must return a list of numbers, one per document; it returned "
            f"{type(returned).__name__}."
        )
    if len(returned) != count:
        raise RerankError(
            f"{who} returned {len(returned)} scores for {count} documents; it must return one "
            "per document, in their order. Nothing was reordered."
        )
    return {position: number(score, position, who) for position, score in enumerate(returned)}


def number(score: Any, position: int, who: str) -> float:
    """A score as a finite float.

    Raises:
        RerankError: If it is none.
    """
    try:
        value = float(score)
    except (TypeError, ValueError, OverflowError) as error:
        raise RerankError(
            f"{who} must give numbers; that of document {position} is {score!r:.80}."
        ) from error
    if not math.isfinite(value):
        raise RerankError(
            f"{who} gave document {position} the score {value}; only finite numbers put "
            "documents in an order. Is its text empty, or the model run in half precision?"
        )
    return value


def ranked(
    answer: Answer,
    scores: Mapping[int, float],
    *,
    who: str,
    top_n: int | None,
    minimum: float | None = None,
    relevance: Callable[[float], float | None] = lambda _: None,
) -> Answer:
    """The scored documents, best first; ties stay in the order they came in.

    Args:
        answer: Best first, as the stage before ranked them.
        scores: By position in ``answer``; a document without one is left out.
        who: The stage's name.
        top_n: How many to keep; None: all.
        minimum: The lowest score to keep.
        relevance: Of a score, in [0, 1]; None leaves the earlier stage's.
    """
    order = sorted(scores, key=lambda position: (-scores[position], position))
    if minimum is not None:
        order = [position for position in order if scores[position] >= minimum]
        if scores and not order:
            logger.warning(
                "%s left no document: the best of %d scored %.4f, the minimum is %.4f.",
                who,
                len(scores),
                max(scores.values()),
                minimum,
            )
    kept = []
    for after, before in enumerate(order[:top_n], start=1):
        score = scores[before]
        says = f"{who}: score {score:.4f}, rank {before + 1} → {after} of {len(answer)}."
        detail = {"by": who, "before": before + 1, "after": after, "of": len(answer)}
        step = Step("rerank", kept=True, says=says, value=score, detail=detail)
        changes: dict[str, Any] = {"score": score, "rerank_score": score, "method": "rerank"}
        told = relevance(score)
        if told is not None:
            changes["relevance"] = told
        kept.append(journeyed(answer[before], step, **changes))
    return answer.of(kept)


def placed(answer: Answer, order: Sequence[int], *, who: str, top_n: int | None) -> Answer:
    """The documents in an order that came without scores.

    Args:
        answer: As in :func:`ranked`.
        order: Positions in ``answer``, best first.
        who: The stage's name.
        top_n: How many to keep; None: all.
    """
    kept: list[Document] = []
    for after, before in enumerate(order[:top_n], start=1):
        says = f"{who}: rank {before + 1} → {after} of {len(answer)}."
        detail = {"by": who, "before": before + 1, "after": after, "of": len(answer)}
        step = Step("rerank", kept=True, says=says, detail=detail)
        changes = {"score": None, "rerank_score": None, "method": "rerank"}
        kept.append(journeyed(answer[before], step, **changes))
    return answer.of(kept)
