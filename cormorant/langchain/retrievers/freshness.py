"""What is relevant, and new?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError, UsageError
from cormorant.langchain.retrievers.rescoring.base import Factor, Rescoring
from cormorant.langchain.retrievers.rescoring.moments import moment, moment_in, utc_now
from cormorant.langchain.retrievers.rescoring.relevance import StoreRelevance
from cormorant.langchain.vectorstore import Cormorant
from cormorant.ranges import is_number

__all__ = ["FreshnessRetriever", "MissingDate"]

MissingDate: TypeAlias = Literal["half", "new", "drop", "raise"]
"""What a document without a readable date counts as."""

_MISSING: Final = ("half", "new", "drop", "raise")
_DAY: Final = timedelta(days=1)


class FreshnessRetriever(Rescoring):
    """Ranks candidates by relevance × 2^(−age / half-life).

    Relevance is in [0, 1], never a raw score or a distance: where a retriever tells none, its
    places stand for it, evenly from 1 down, and ``degraded`` says so. A date to come counts as
    now.

    Args:
        retriever: Any retriever or Runnable from a question to Documents.
        vectorstore: A vector store instead of it; with ``search_type`` and ``search_kwargs`` as in
            its ``as_retriever``.
        date_field: The metadata field with the date, dots reaching into what is nested: a date or
            datetime, seconds (or milli-, micro-, nanoseconds) since 1970, a year, ISO 8601,
            RFC 2822, ``2024/1/5``, ``2024年1月5日``, ``5 Jan 2024``, … Without an offset it is UTC;
            of a list, the latest counts.
        half_life_days: After how many days half the relevance is left.
        missing_date: A document without a readable date counts as one half-life old (``half``),
            as new (``new``), is left out (``drop``), or is an error (``raise``). The first three
            are said in ``degraded``.
        k: Documents wanted, 5 by default.
        fetch_k: Candidates the retriever is asked for, 30 by default, at least ``k``.
        clock: Gives the time now.

    A call takes ``k``, ``fetch_k`` and ``filter``.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from cormorant.langchain.retrievers import BM25Retriever
        >>> base = BM25Retriever.from_texts(
        ...     ["fish prices", "fish prices now"], [{"day": "2020-01-05"}, {"day": "2999-01-05"}]
        ... )
        >>> fresh = FreshnessRetriever(retriever=base, date_field="day", k=1)
        >>> [doc.page_content for doc in fresh.invoke("fish prices")]
        ['fish prices now']
    """

    date_field: str
    half_life_days: float = defaults.HALF_LIFE_DAYS
    missing_date: MissingDate = "half"
    clock: Callable[[], datetime] = utc_now

    stage: ClassVar[str] = "freshness"
    also_takes: ClassVar[tuple[str, ...]] = ("vectorstore", "search_type", "search_kwargs")

    def __init__(self, **values: Any) -> None:
        values["retriever"] = _retriever(values)
        field = values.get("date_field")
        if not isinstance(field, str) or not field:
            raise UsageError(
                f"date_field must name the metadata field with the date; got {field!r}."
            )
        life = values.get("half_life_days", defaults.HALF_LIFE_DAYS)
        if not is_number(life) or life <= 0:
            raise QueryError(f"half_life_days must be a number above 0; got {life!r}.")
        missing = values.get("missing_date", "half")
        if missing not in _MISSING:
            raise QueryError(f"missing_date must be one of {', '.join(_MISSING)}; got {missing!r}.")
        super().__init__(**values)

    @override
    def _factors(self, query: str) -> Callable[[Document], Factor]:
        now = moment(self.clock()) or utc_now()
        return functools.partial(self._factor, now)

    def _factor(self, now: datetime, document: Document) -> Factor:
        at = moment_in(document.metadata, self.date_field)
        if at is None:
            return self._missing(document)
        age = max(0.0, (now - at) / _DAY)
        factor = 2.0 ** (-age / self.half_life_days)
        return Factor(factor, f"2^(−{age:.1f}/{self.half_life_days:g} days)")

    def _missing(self, document: Document) -> Factor:
        if self.missing_date == "raise":
            raise UsageError(
                f"Document {document.id or document.page_content[:40]!r} has no date under "
                f"{self.date_field!r}: {document.metadata.get(self.date_field)!r}. Give it one, or "
                "say missing_date='half', 'new' or 'drop'."
            )
        value, says = {
            "half": (0.5, "count as one half-life old"),
            "new": (1.0, "count as new"),
            "drop": (None, "were left out"),
        }[self.missing_date]
        note = f"Documents without a date under {self.date_field!r} {says}."
        return Factor(value, f"{value or 0:g} (no date)", note)


def _retriever(values: dict[str, Any]) -> Any:
    """The retriever that was given, or one over the vector store that was."""
    store = values.pop("vectorstore", None)
    kind, settings = values.pop("search_type", None), values.pop("search_kwargs", None)
    given = values.get("retriever")
    if store is None:
        if kind is not None or settings is not None:
            raise UsageError("search_type and search_kwargs go with vectorstore; got none.")
        return given
    if given is not None:
        raise UsageError("Give a retriever or a vectorstore; got both.")
    if not isinstance(store, VectorStore):
        raise UsageError(f"vectorstore must be a LangChain VectorStore; got {store!r}.")
    if isinstance(store, Cormorant):
        return store.as_retriever(search_type=kind or "similarity", search_kwargs=settings or {})
    if kind not in {None, "similarity", "similarity_score_threshold"}:
        raise UsageError(
            f"search_type={kind!r} tells no relevance over a {type(store).__name__}. Leave it out, "
            "or use a Cormorant."
        )
    return StoreRelevance(vectorstore=store, search_kwargs=settings or {})
