"""Which questions must a system answer well, and with which documents?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cormorant.errors import UsageError
from cormorant.evaluate.qrels import Qrels, check_grades

__all__ = ["Golden"]


@dataclass(frozen=True, slots=True)
class Golden:
    """Queries and their judgements.

    Attributes:
        queries: Query id to text; some may be without judgements.
        qrels: Query id to judged document ids and their grades; above 0 is relevant.
        by: The metadata field that the judgements name instead of a record's id, such as
            ``source``; None if they name ids.

    Raises:
        UsageError: If nothing is judged, a judged query has no text, or a grade is no finite
            number.

    Example:
        >>> golden = Golden({"1": "a fish?", "2": "a bird?"}, {"1": {"a": 1}})
        >>> golden.judged
        {'1': 'a fish?'}
    """

    queries: Mapping[str, str]
    qrels: Qrels
    by: str | None = None

    def __post_init__(self) -> None:
        if not self.qrels:
            raise UsageError("A golden set has no judgements: qrels is empty.")
        check_grades(self.qrels)
        without = [query for query in self.qrels if query not in self.queries]
        if without:
            raise UsageError(
                f"{len(without)} judged queries have no text, such as {without[0]!r}. Do the "
                "queries and the judgements belong together?"
            )

    @property
    def judged(self) -> dict[str, str]:
        """The queries that are judged, in the judgements' order: what a system is asked."""
        return {query: self.queries[query] for query in self.qrels}
