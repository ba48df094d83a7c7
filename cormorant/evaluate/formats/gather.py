"""How do single judgements and single hits become qrels and rankings?"""

from __future__ import annotations

from cormorant.evaluate.formats.lines import wrong
from cormorant.evaluate.qrels import Qrels

__all__ = ["GatheredQrels", "GatheredRankings"]


class GatheredQrels:
    """Judgements of one file, pair by pair.

    Args:
        name: The file's, for errors.
    """

    def __init__(self, name: str) -> None:
        self.qrels: Qrels = {}
        self._name = name

    def put(self, query: str, doc: str, grade: float, line: int) -> None:
        """One more judgement; the same one again changes nothing.

        Raises:
            EvalFileError: If the pair was judged otherwise before.
        """
        before = self.qrels.setdefault(query, {}).setdefault(doc, grade)
        if before != grade:
            raise wrong(
                self._name,
                line,
                f"{query!r} and {doc!r} are judged twice, as {before} and as {grade}.",
            )


class GatheredRankings:
    """Hits of one file, one by one.

    Args:
        name: The file's, for errors.
    """

    def __init__(self, name: str) -> None:
        self.rankings: dict[str, dict[str, float]] = {}
        self._name = name

    def put(self, query: str, doc: str, score: float, line: int) -> None:
        """One more hit.

        Raises:
            EvalFileError: If the query has this document already.
        """
        hits = self.rankings.setdefault(query, {})
        if doc in hits:
            raise wrong(
                self._name,
                line,
                f"{doc!r} is ranked twice for query {query!r}; a ranking names each document once.",
            )
        hits[doc] = score
