"""Are these more documents than a model reads with care?

Models overlook what stands in the middle of a long context: with 10, 20 and 30 documents they
answer best from the first and the last.

Source: Liu et al., Lost in the Middle, TACL 12 (2024), figure 5.
"""

from __future__ import annotations

import logging
from contextvars import Context, ContextVar
from functools import lru_cache
from typing import Final

from cormorant import defaults
from cormorant.langchain.provenance import Answer, of

__all__ = ["advised", "mark_inner"]

logger = logging.getLogger(__name__)

_TENDED: Final = {"rerank", "reorder", "compress"}

_inner: ContextVar[bool] = ContextVar("cormorant_inner", default=False)


def mark_inner(context: Context) -> None:
    """What is called in this context hands its documents to another retriever, not to a model."""
    context.run(_inner.set, True)  # noqa: FBT003 - the variable's value


def advised(answer: Answer, who: str) -> Answer:
    """The Answer; with a sentence in its plan if it is long, and nothing reranked or reordered it.

    Nothing was left out, so it is not degraded. The log says it once for each retriever's name
    and number.

    Args:
        answer: What is returned.
        who: The retriever.
    """
    count = len(answer)
    if count <= defaults.LARGE_K or _inner.get():
        return answer
    if any(step.stage in _TENDED for step in of(answer[0]).journey):
        return answer
    says = (
        f"large k: {count} documents, neither reranked nor reordered; models overlook the middle "
        "of a long context. Ask for 4 to 6, or put a reranker or LongContextReorder after."
    )
    _log_once(who, says)
    told = answer.of(answer)
    told.plan = (*answer.plan, says)
    return told


@lru_cache(maxsize=256)
def _log_once(who: str, says: str) -> None:
    logger.warning("%s: %s", who, says)
