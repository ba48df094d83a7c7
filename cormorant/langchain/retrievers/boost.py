"""What comes first by rules of one's own: priorities, titles, any formula?"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from langchain_core.documents import Document
from typing_extensions import override

from cormorant import defaults
from cormorant.analysis import Analyzer
from cormorant.errors import UsageError
from cormorant.langchain.retrievers.rescoring.base import Factor, Rescoring
from cormorant.ranges import is_number

__all__ = ["Boost", "BoostRetriever", "Priority", "TitleHit"]

Boost: TypeAlias = Callable[[str, Document], float]
"""Question and document to what its relevance is multiplied by: at least 0, 1 for no change."""


@dataclass(frozen=True)
class Priority:
    """A factor by the value of a metadata field.

    Args:
        field: The field's name.
        factors: Value to factor; of a list, the greatest factor of its values counts.
        default: For other values, and for none.

    Example:
        >>> Priority("source", {"manual": 1.5, "forum": 0.5})("why?", Document(
        ...     page_content="", metadata={"source": "manual"}))
        1.5
    """

    field: str
    factors: Mapping[Any, float]
    default: float = 1.0

    def __post_init__(self) -> None:
        _check_field(self.field, "Priority")
        if not isinstance(self.factors, Mapping):
            raise UsageError(
                "Priority's factors must be a dict of a field's values to numbers, such as "
                f"{{'manual': 1.5}}; got {self.factors!r}."
            )
        object.__setattr__(self, "factors", dict(self.factors))
        for factor in (*self.factors.values(), self.default):
            _check(factor, f"Priority({self.field!r})")

    def __call__(self, query: str, document: Document) -> float:  # noqa: ARG002 - a Boost
        """The factor for a document."""
        value = document.metadata.get(self.field)
        values = value if isinstance(value, (list, tuple)) else [value]
        found = [self.factors[each] for each in values if _known(each, self.factors)]
        return max(found, default=self.default)


@dataclass(frozen=True)
class TitleHit:
    """A factor by how much of the question the title has: 1 + weight × share of its terms.

    Args:
        field: The metadata field with the title.
        weight: What a title with every term of the question adds.
        language: Whose words are stemmed; Chinese is understood under any.

    Example:
        >>> title = Document(page_content="", metadata={"title": "Diving birds"})
        >>> TitleHit(weight=0.5)("which bird dives?", title)
        1.5
    """

    field: str = "title"
    weight: float = defaults.TITLE_WEIGHT
    language: str = "english"

    def __post_init__(self) -> None:
        _check_field(self.field, "TitleHit")
        _check(self.weight, "TitleHit's weight")
        if not isinstance(self.language, str):
            raise UsageError(
                f"TitleHit's language must be a name such as 'english'; got {self.language!r}."
            )
        _analyzer(self.language)

    def __call__(self, query: str, document: Document) -> float:
        """The factor for a document."""
        title = document.metadata.get(self.field)
        analyzer = _analyzer(self.language)
        wanted = set(analyzer.query_terms(query))
        if not isinstance(title, str) or not wanted:
            return 1.0
        return 1.0 + self.weight * len(wanted & set(analyzer.terms(title))) / len(wanted)


class BoostRetriever(Rescoring):
    """Ranks candidates by relevance × the product of boosts.

    Relevance is in [0, 1]; where a retriever tells none, its places stand for it, and
    ``degraded`` says so. A hit's journey shows every factor.

    Args:
        retriever: Any retriever or Runnable from a question to Documents.
        boosts: :class:`Priority`, :class:`TitleHit`, or any function of question and document
            that gives a number of at least 0. None of them leaves relevance as it is.
        k: Documents wanted, 5 by default.
        fetch_k: Candidates the retriever is asked for, 30 by default, at least ``k``.

    A call takes ``k``, ``fetch_k`` and ``filter``.

    Raises:
        UsageError: On an argument nobody reads, a value outside its range, or a boost that gives
            no such number.

    Example:
        >>> from cormorant.langchain.retrievers import BM25Retriever
        >>> base = BM25Retriever.from_texts(
        ...     ["fish, fish", "a fish of note"], [{"pin": False}, {"pin": True}]
        ... )
        >>> boosted = BoostRetriever(retriever=base, boosts=[Priority("pin", {True: 3})], k=1)
        >>> [doc.page_content for doc in boosted.invoke("fish")]
        ['a fish of note']
    """

    boosts: Sequence[Boost]

    stage: ClassVar[str] = "boost"

    def __init__(self, **values: Any) -> None:
        boosts = values.get("boosts")
        if not isinstance(boosts, (list, tuple)) or not all(map(callable, boosts)):
            raise UsageError(
                f"boosts must be a list of functions of question and document; got {boosts!r}."
            )
        super().__init__(**values)

    @override
    def _factors(self, query: str) -> Callable[[Document], Factor]:
        return functools.partial(self._factor, query)

    def _factor(self, query: str, document: Document) -> Factor:
        factors = []
        for boost in self.boosts:
            name = getattr(boost, "__name__", type(boost).__name__)
            factors.append((name, _check(boost(query, document), name)))
        says = " × ".join(f"{value:g} ({name})" for name, value in factors) or "1 (no boost)"
        return Factor(math.prod(value for _, value in factors), says)


@functools.cache
def _analyzer(language: str) -> Analyzer:
    """Not in the boost itself: it holds a lock, and boosts are pickled."""
    return Analyzer(language)


def _check_field(field: object, who: str) -> None:
    if not isinstance(field, str) or not field:
        raise UsageError(f"{who}'s field must be the name of a metadata field; got {field!r}.")


def _check(value: Any, who: str) -> float:
    if not is_number(value, 0):
        raise UsageError(f"{who} must give a number of at least 0; got {value!r}.")
    return float(value)


def _known(value: Any, factors: Mapping[Any, float]) -> bool:
    try:
        return value in factors
    except TypeError:  # a dict in the metadata
        return False
