"""What stands at each place of each ranking, and what could have stood there?

All metrics of a judgement share one of these: a ranking's documents are looked up once, and a
metric is arithmetic over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.evaluate.qrels import check_grades

__all__ = ["Places"]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Rankings of several queries against their judgements, as arrays.

    A grade above 0 is relevant, 0 is judged and not relevant. One below 0 gains nothing; bpref
    takes it for unjudged, as trec_eval does.

    Attributes:
        grades: float64, shape (queries, depth): the grade at each place, 0 where there is none.
        judged: bool, the same shape: whether the document there was judged, whatever its grade.
        returned: int64, shape (queries,): how many documents each ranking has.
        ideal: float64, shape (queries, most): grades above 0 of all judged documents, falling,
            filled up with 0.
        relevant: int64, shape (queries,): how many documents were judged relevant.
        refuted: int64, shape (queries,): how many were judged 0.
    """

    grades: NDArray[np.float64]
    judged: NDArray[np.bool_]
    returned: NDArray[np.int64]
    ideal: NDArray[np.float64]
    relevant: NDArray[np.int64]
    refuted: NDArray[np.int64]

    @classmethod
    def of(
        cls, rankings: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, float]]
    ) -> Self:
        """Look every ranked document up, for each judged query in the judgements' order.

        Args:
            rankings: Query id to document ids, best first, each once. A judged query that is
                missing counts as one with no documents.
            qrels: Query id to grades.

        Raises:
            UsageError: If there are no judgements, or a grade is no finite number.
        """
        if not qrels:
            raise UsageError("There are no judgements: qrels is empty. Read some with read_qrels.")
        check_grades(qrels)
        ranked = [rankings.get(query, ()) for query in qrels]
        depth = max(map(len, ranked))
        grades = np.full((len(ranked), depth), np.nan)
        for row, ids, judged in zip(grades, ranked, qrels.values(), strict=True):
            row[: len(ids)] = [judged.get(doc, np.nan) for doc in ids]
        positive = [
            sorted((grade for grade in judged.values() if grade > 0), reverse=True)
            for judged in qrels.values()
        ]
        ideal = np.zeros((len(ranked), max(map(len, positive))))
        for row, best in zip(ideal, positive, strict=True):
            row[: len(best)] = best
        judged_at = ~np.isnan(grades)
        return cls(
            grades=np.where(judged_at, grades, 0.0),
            judged=judged_at,
            returned=np.array([len(ids) for ids in ranked], np.int64),
            ideal=ideal,
            relevant=np.array([len(best) for best in positive], np.int64),
            refuted=np.array(
                [sum(grade == 0 for grade in judged.values()) for judged in qrels.values()],
                np.int64,
            ),
        )

    def hits(self, k: int | None = None) -> NDArray[np.bool_]:
        """Whether a relevant document stands at each of the first ``k`` places."""
        return self.grades[:, :k] > 0

    def share(
        self, parts: NDArray[np.number], wholes: NDArray[np.number] | int
    ) -> NDArray[np.float64]:
        """``parts / wholes``, shape (queries,); 0 where the whole is 0."""
        whole = np.broadcast_to(np.asarray(wholes, np.float64), parts.shape)
        out = np.zeros(parts.shape)
        np.divide(parts, whole, out=out, where=whole > 0)
        return out
