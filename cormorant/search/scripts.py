"""What does the text leg know of a record in another script than the question's? Nothing.

A Chinese record cannot hold the words of an English question, and may well be what was asked for.
Taken at its word, the text leg says that it is worse than any record that shares a word. So in a
store of several scripts the text leg is measured among the records it can read, and of the
others it is taken to say what their vectors say, in part. Measured in docs/decisions/0014-trust.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.analysis.scripts import script_of
from cormorant.search.fuse import LegScores, standards_of
from cormorant.search.legs import Statistics
from cormorant.search.trust import IMAGINED, Trust, Weighing

if TYPE_CHECKING:
    from cormorant.model import Record

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of one query and its candidates beside the legs' scores.

    Attributes:
        trust: What the store learned.
        known: Part of the weight of the query's terms that belongs to terms the store has.
        beyond: bool, one a candidate: in another script than the query. None if the store has one
            script, or the query none.
        part: Of the store's records, those in the query's script, in [0, 1].
    """

    trust: Trust
    known: float
    beyond: NDArray[np.bool_] | None = None
    part: float = 0.0

    @classmethod
    def of(cls, trust: Trust, known: float, query: str, records: Sequence[Record]) -> Reading:
        """Look at the texts of the candidates; those without letters are in no script."""
        script = script_of(query)
        if script is None:
            return cls(trust, known)
        scripts = [script_of(record.text) for record in records]
        beyond = np.array([each not in {None, script} for each in scripts], dtype=np.bool_)
        return cls(trust, known, beyond, trust.scripts.get(script, 0.0))

    def take(self, places: NDArray[np.int64]) -> Reading:
        """The same of some of the candidates, in their order."""
        return self if self.beyond is None else replace(self, beyond=self.beyond[places])

    def weigh(
        self, vector: LegScores, text: LegScores, *, depth: int
    ) -> tuple[Weighing, LegScores]:
        """The query's weights, and the text leg's view where what it cannot read is imagined.

        Args:
            vector: The vector leg's view of the candidates.
            text: The text leg's view of the same.
            depth: Candidates each leg fetched.
        """
        own = text if self.beyond is None else _among(text, self.part)
        weighing = self.trust.weigh(vector, own, known=self.known, depth=depth, beyond=self.beyond)
        if self.beyond is None or not weighing.imagined:
            return weighing, text
        # The less is imagined, the less the leg is measured among its own.
        text = _among(text, 1.0 - (1.0 - self.part) * weighing.imagined / IMAGINED)
        (standards,) = standards_of([vector], fusion="z", rrf_k=0.0)
        least = np.where(self.beyond, weighing.imagined * standards, -np.inf)
        return weighing, replace(text, least=least, imagined=weighing.imagined)


def _among(text: LegScores, part: float) -> LegScores:
    """The text leg's view, with the statistics of the records in the query's script.

    The others are taken to score 0, so that the mean and the second moment of these are
    1 / ``part`` times those of all.
    """
    whole = text.statistics
    if whole is None or not 0.0 < part < 1.0:
        return text
    mean = whole.mean / part
    variance = (whole.std**2 + whole.mean**2) / part - mean**2
    if variance <= 0.0:  # the others score after all
        return text
    return replace(text, among=Statistics(mean, float(np.sqrt(variance))))
