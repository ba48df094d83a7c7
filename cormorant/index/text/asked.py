"""One query, its terms looked up: what does every record score, and which score best?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.index.contract import LegResult, Mask
from cormorant.index.text.bm25 import Formula
from cormorant.index.text.lookup import QueryTerm, locate
from cormorant.index.text.rank import best
from cormorant.index.text.tally import Spread, Tally, distinct
from cormorant.model import TermMatch

__all__ = ["Asked"]

_FEW: Final = 0.3  # of all records: if fewer are allowed, the others are not scored at all
_COUNTED: Final = 4096  # postings whose records are counted


class Asked:
    """A text index asked one query; made by :meth:`TextIndex.ask`.

    The terms are looked up once. A search sums the postings it must, and what is asked about
    everyone sums the rest. For one thread, and not to be kept: it holds a number for each record.

    Args:
        terms: The query's, repeats kept: each counts.
        found: Those that live records have.
        formula: BM25 over the live records.
        alive: bool, shape (n,): who counts; None: everyone.
        n: Slots there are.
        segments: How many the index has; told in the counters.

    Attributes:
        bound: Σ count · idf: what no score reaches. Terms that no record has are in it too.
        unseen: The part of ``bound`` that belongs to terms no live record has.
    """

    __slots__ = ("_alive", "_formula", "_found", "_n", "_segments", "_spread", "_tally", "_terms",
                 "bound", "unseen")  # fmt: skip

    def __init__(
        self,
        terms: Sequence[str],
        found: list[QueryTerm],
        formula: Formula,
        *,
        alive: Mask | None,
        n: int,
        segments: int,
    ) -> None:
        self._terms = Counter(terms)
        self._found = found
        self._formula = formula
        self._alive = alive
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
        if mask is not None and self._tally is None and np.count_nonzero(mask) < _FEW * self._n:
            admits = mask if self._alive is None else mask & self._alive
            tally = Tally(self._found, self._formula, self._n, admits)
        else:
            tally = self._scored()
        found = best(tally, k, mask)
        held = sum(term.size for term in self._found)
        of = f"postings of {len(self._found)} of {len(self._terms)} terms"
        return LegResult(
            slots=found.slots,
            scores=found.scores,
            matched=self._matched(k),
            exact=True,
            counters={
                "terms": len(self._found),
                "postings": held,
                "postings_read": tally.read,
                "segments": self._segments,
                "candidates": found.candidates,
            },
            says=(
                f"text: BM25 over all {held:,} {of}"
                if tally.read == held
                else f"text: BM25 over {tally.read:,} of {held:,} {of}; in the others, only "
                f"records were looked up that could still be among the best {k}"
            ),
        )

    def _matched(self, k: int) -> int:
        """How many records have a term; where that is long to count, how many share one."""
        found = self._found
        most = max((term.df for term in found), default=0)
        if len(found) < 2 or (most > k and sum(term.df for term in found) > _COUNTED):
            return most
        slots = distinct(np.concatenate([part.slots for term in found for part in term.parts]))
        return len(slots) if self._alive is None else int(np.count_nonzero(self._alive.take(slots)))

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
        found: list[TermMatch] = []
        if self._alive is not None and not self._alive[slot]:
            return ()
        for term in self._found:
            idf = self._formula.idf(term.df)
            for part in term.parts:
                at, has = locate(part.slots, np.array([slot], np.int64))
                if len(has):
                    hit = part.at(at)
                    score = self._formula.saturation(hit, np.float32(term.times * idf))
                    found.append(
                        TermMatch(
                            term.term, float(score[0]), idf, int(hit.tf[0]), term.df, term.times
                        )
                    )
        return tuple(sorted(found, key=lambda match: -match.score))

    def _scored(self) -> Tally:
        if self._tally is None:
            self._tally = Tally(self._found, self._formula, self._n, self._alive)
        return self._tally
