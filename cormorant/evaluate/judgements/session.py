"""What is to be judged next, and what becomes of the answer?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cormorant.errors import UsageError
from cormorant.evaluate.judgements.ledger import Ledger

__all__ = ["GRADES", "Item", "JudgingSession"]

GRADES = (0, 1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Item:
    """One pair to judge.

    Attributes:
        query: The query's id.
        doc: The document's.
        number: Its place among the pairs of this session, from 1.
    """

    query: str
    doc: str
    number: int


class JudgingSession:
    """Pairs one after another; each answer is written down before the next is asked.

    Args:
        pool: Query id to document ids, in the order they are asked.
        ledger: Takes the judgements. Pairs that are judged there already are not asked.

    Example:
        >>> from cormorant.evaluate.judgements.ledger import JudgementFile
        >>> with JudgementFile("mine.jsonl") as ledger:
        ...     session = JudgingSession({"1": ("x", "y")}, ledger)
        ...     session.grade(1)
        ...     session.current.doc
        'y'
    """

    def __init__(self, pool: Mapping[str, Sequence[str]], ledger: Ledger) -> None:
        self._ledger = ledger
        judged = ledger.qrels
        pairs = [
            (query, doc)
            for query, docs in pool.items()
            for doc in docs
            if doc not in judged.get(query, {})
        ]
        self._items = [Item(query, doc, number) for number, (query, doc) in enumerate(pairs, 1)]
        self._given: list[int | None] = []  # None: skipped

    def __len__(self) -> int:
        return len(self._items)

    @property
    def current(self) -> Item | None:
        """What is to be judged now; None if all are done."""
        at = len(self._given)
        return self._items[at] if at < len(self._items) else None

    @property
    def judged(self) -> int:
        """Judgements given in this session."""
        return sum(grade is not None for grade in self._given)

    @property
    def skipped(self) -> int:
        """Pairs passed over; they are asked again another time."""
        return sum(grade is None for grade in self._given)

    @property
    def by_grade(self) -> dict[int, int]:
        """Each grade, and how often it was given in this session."""
        return {grade: self._given.count(grade) for grade in GRADES}

    def grade(self, grade: int) -> None:
        """Judge the current pair; on return that survives a crash.

        Raises:
            UsageError: If nothing is left, or the grade is none of 0 to 4.
        """
        item = self._now()
        if isinstance(grade, bool) or grade not in GRADES:
            raise UsageError(f"A grade is one of {', '.join(map(str, GRADES))}; got {grade!r}.")
        self._ledger.put(item.query, item.doc, grade)
        self._given.append(grade)

    def skip(self) -> None:
        """Leave the current pair for another time.

        Raises:
            UsageError: If nothing is left.
        """
        self._now()
        self._given.append(None)

    def undo(self) -> Item | None:
        """Take the last answer of this session back, so that its pair is the current one again.

        Returns:
            The pair; None if there is no answer to take back.
        """
        if not self._given:
            return None
        item = self._items[len(self._given) - 1]
        if self._given[-1] is not None:
            self._ledger.take_back(item.query, item.doc)
        self._given.pop()
        return item

    def _now(self) -> Item:
        item = self.current
        if item is None:
            raise UsageError("Everything is judged.")
        return item
