"""What did a system answer, whatever it returned?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from cormorant.errors import UsageError
from cormorant.evaluate.run import Ranking
from cormorant.model import Result

__all__ = ["Duplicates", "Reply", "field_of", "ranking_of"]

Duplicates = Literal["refuse", "first"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system may return to tell more than its hits.

    Attributes:
        hits: Anything a system may return: ids, pairs of id and score, hits, a Result.
        tokens: Tokens that models read and wrote for it.
        usd: Their price; 0 where no price is known.
        degraded: What was done in a lesser way, a sentence each.
    """

    hits: Any
    tokens: int = 0
    usd: float = 0.0
    degraded: tuple[str, ...] = ()


def ranking_of(
    hits: Any,
    k: int,
    *,
    by: str | Callable[[Any], str] | None = None,
    duplicates: Duplicates = "refuse",
) -> Ranking:
    """Ids and scores, best first, of what a system returned.

    The order says the rank. Where no scores come, or scores that do not fall from rank to rank
    (after MMR, say), the score is 1 / rank.

    Args:
        hits: A Result; or an iterable of ids, of pairs (id, score), or of objects with an
            ``id`` and perhaps a ``score``, best first; or a dict of id to score.
        k: Hits that count.
        by: What is judged instead of a hit's own id: the name of a field in its metadata, such
            as its document's id, or a function of the hit.
        duplicates: ``refuse`` an id that comes twice, or take the ``first`` place of it.

    Raises:
        UsageError: On something else, or an id that comes twice.
    """
    items = hits.hits if isinstance(hits, Result) else hits
    if isinstance(items, Mapping):
        if by is not None:
            raise UsageError("by reads the metadata of hits; the system returned a dict of scores.")
        items = sorted(items.items(), key=lambda pair: -pair[1])
    if isinstance(items, (str, bytes, AbstractSet)) or not isinstance(items, Iterable):
        raise UsageError(
            f"A system returns an iterable of hits, best first; got {type(items).__name__}. "
            f"{_ACCEPTED}"
        )
    found: dict[str, float | None] = {}
    for item in list(items)[:k]:
        doc, score = _pair(item, by)
        if doc not in found:
            found[doc] = score
        elif duplicates == "refuse":
            raise UsageError(
                f"The id {doc!r} was returned twice for one query. Return each once; or, where "
                "several hits belong to one document, say duplicates='first'."
            )
    return _scored(found)


_ACCEPTED = (
    "Accepted: ids, pairs of id and score, hits, a Result, a dict of scores, a Reply. For a "
    "LangChain retriever or chain see cormorant.langchain.evaluation.as_system."
)


def _pair(item: Any, by: str | Callable[[Any], str] | None) -> tuple[str, float | None]:
    score = None
    doc = item
    if isinstance(item, tuple) and len(item) == 2:
        doc, score = item
    elif not isinstance(item, str):
        doc, score = getattr(item, "id", None), getattr(item, "score", None)
    if callable(by):
        doc = by(item)
    elif by is not None:
        doc = field_of(item, by, doc)
    if not isinstance(doc, str) or not doc:
        raise UsageError(f"A hit's id must be a text; got {doc!r} in {item!r:.80}. {_ACCEPTED}")
    return doc, None if score is None else float(score)


def field_of(item: Any, by: str, name: Any) -> Any:
    """The metadata field that something is judged by.

    Args:
        item: A hit or a record.
        by: The field.
        name: What the item is called in the error.

    Raises:
        UsageError: If it has no such field.
    """
    metadata = getattr(item, "metadata", None)
    if not isinstance(metadata, Mapping) or by not in metadata:
        raise UsageError(f"A hit has no metadata field {by!r} to be judged by: {name!r}.")
    return metadata[by]


def _scored(found: Mapping[str, float | None]) -> Ranking:
    scores = [score for score in found.values() if score is not None]
    falls = all(a >= b for a, b in pairwise(scores)) and all(s == s for s in scores)  # noqa: PLR0124 - NaN
    if len(scores) == len(found) and falls:
        return tuple(zip(found, scores, strict=True))
    return tuple((doc, 1.0 / rank) for rank, doc in enumerate(found, start=1))
