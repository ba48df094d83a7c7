"""One query, its terms looked up: what does every record score, and which score best?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import LegResult, Mask
from cormorant.index.text.bm25 import Formula
from cormorant.index.text.lookup import QueryTerm, locate
from cormorant.index.text.rank import Spread, Tally
from cormorant.model import TermMatch

__all__ = ["Asked"]


class Asked:
    """A text index asked one query; made by :meth:`TextIndex.ask`.

    The terms are looked up once, and every record is scored once, when first needed; all
    that is asked afterwards reads those scores. For one thread, and not to be kept: it
    holds a number for each record.

    Args:
        terms: The query's, repeats kept: each counts.
        found: Those that live records have.
        formula: BM25 over the live records.
        n: Slots there are.
        segments: How many the index has; told in the counters.

    Attributes:
        bound: Σ count · idf: what no score reaches. Terms that no record has are in it too.
        unseen: The part of ``bound`` that belongs to terms no live record has.
    """

    __slots__ = ("_formula", "_found", "_n", "_segments", "_spread", "_tally", "_terms", "bound",
                 "unseen")  # fmt: skip

    def __init__(
        self,
        terms: Sequence[str],
        found: list[QueryTerm],
        formula: Formula,
        *,
        n: int,
        segments: int,
    ) -> None:
        self._terms = Counter(terms)
        self._found = found
        self._formula = formula
        self._n = n
        self._segments = segments
        self._tally: Tally | None = None
        self._spread: Spread | None = None
        df = {term.term: term.df for term in found}
        self.bound = sum(
            count * formula.idf(df.get(term, 0)) for term, count in self._terms.items()
        )
        absent = sum(count for term, count in self._terms.items() if term not in df)
        self.unseen = absent * formula.idf(0)

    def search(self, *, k: int, mask: Mask | None = None) -> LegResult:
        """The ``k`` records that match best.

        Args:
            k: At least 1.
            mask: bool, shape (n,): who may be returned; applied before ranking. It leaves
                out the dead.

        Returns:
            Records that have at least one term.
        """
        tally = self._scored()
        best = tally.best(k, mask)
        read = sum(len(part.slots) for term in self._found for part in term.parts)
        return LegResult(
            slots=best.slots,
            scores=best.scores,
            matched=tally.matched,
            exact=True,
            counters={
                "terms": len(self._found),
                "postings": read,
                "segments": self._segments,
                "candidates": best.candidates,
            },
            says=(
                f"text: BM25 over all {read:,} postings of {len(self._found)} of "
                f"{len(self._terms)} terms"
            ),
        )

    def score(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores :meth:`search` gives; 0 where no term occurs, and for the dead.

        Args:
            slots: int64, shape (m,), in any order.

        Returns:
            float32, shape (m,).
        """
        return self._scored().of(slots)

    def spread(self) -> Spread:
        """Mean and deviation over all live records, whatever a search was masked with."""
        if self._spread is None:
            self._spread = self._scored().spread(self._formula.records)
        return self._spread

    def matches(self, slot: int) -> tuple[TermMatch, ...]:
        """Each matched term's part in a record's score, the largest first."""
        found = []
        for term in self._found:
            idf = self._formula.idf(term.df)
            for part in term.parts:
                at, has = locate(part.slots, np.array([slot], np.int64))
                if len(has):
                    hit = part.at(at)
                    score = self._formula.saturation(hit, term.times * idf)
                    found.append(
                        TermMatch(
                            term.term, float(score[0]), idf, int(hit.tf[0]), term.df, term.times
                        )
                    )
        return tuple(sorted(found, key=lambda match: -match.score))

    def _scored(self) -> Tally:
        if self._tally is None:
            tally = Tally(self._n)
            for term in self._found:
                postings = term.postings()
                weight = term.times * self._formula.idf(term.df)
                tally.add(postings.slots, self._formula.saturation(postings, weight))
            self._tally = tally
        return self._tally
