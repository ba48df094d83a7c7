"""Which questions rise and fall together, and how does a group of them count once?

Paraphrases of one question, or several questions made of one record, are no independent
witnesses. By groups, a test gives the whole group one sign, and an interval draws whole groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.store.door import Door

__all__ = ["Grouping", "Groups", "by_field", "by_records", "group_names", "grouping"]

Groups: TypeAlias = Mapping[str, str] | Literal["records"]
"""Query id to the name of its group; or ``records``: questions with a relevant record in common."""

_AT_ONCE: Final = 500
"""Records read in one call."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The queries of a comparison, in groups.

    Attributes:
        numbers: int64, shape (queries,): each query's group, from 0.
        count: How many groups there are.
    """

    numbers: NDArray[np.int64]
    count: int

    def totals(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each group's sum, shape (count,): what a test of the mean gives one sign."""
        made: NDArray[np.float64] = np.bincount(
            self.numbers, weights=values, minlength=self.count
        ).astype(np.float64)
        return made

    def witnesses(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """One value a group, whose mean is the queries' mean and whose spread that of the mean.

        ``mean + (total - mean · size) / (mean size)``, the linearised ratio of the groups' totals
        to their sizes; with groups of one size, their means.

        Args:
            values: One a query, shape (queries,).

        Returns:
            Shape (count,).

        Source:
            Cochran, Sampling Techniques, 3rd ed. 1977, section 6.3 (the ratio estimate's
            variance); drawing whole groups: Field and Welsh, "Bootstrapping clustered data", J. R.
            Statist. Soc. B 69(3), 2007, doi:10.1111/j.1467-9868.2007.00593.x.
        """
        sizes = np.bincount(self.numbers, minlength=self.count)
        mean = float(values.mean())
        made: NDArray[np.float64] = mean + (self.totals(values) - mean * sizes) / sizes.mean()
        return made

    def part(self, places: NDArray[np.int64]) -> Grouping:
        """The groups of some of the queries."""
        found, numbers = np.unique(self.numbers[places], return_inverse=True)
        return Grouping(numbers.astype(np.int64), len(found))

    def any(self, marked: NDArray[np.bool_]) -> int:
        """How many groups hold a query that is marked."""
        return int(np.count_nonzero(self.totals(marked.astype(np.float64))))


def grouping(
    queries: Sequence[str], groups: Groups | None, qrels: Mapping[str, Mapping[str, float]]
) -> Grouping | None:
    """Number the groups of these queries; None if each stands for itself.

    Args:
        queries: In the order of the values.
        groups: As the caller gave them; a query that is not in the mapping is its own group.
        qrels: Read for ``records``.

    Raises:
        UsageError: If ``groups`` is something else, names none of the queries, has them all in
            one, or asks for records where the judgements are not known.
    """
    if groups is None:
        return None
    if isinstance(groups, str):
        if groups != "records":
            raise UsageError(
                f"groups is 'records' or maps query ids to groups; got {groups!r:.80}."
            )
        if not qrels:
            raise UsageError(
                "groups='records' needs the judgements, and they are not known here. Judge with "
                "judge(run, qrels, …), or give a mapping."
            )
        groups = by_records(qrels)
    if not isinstance(groups, Mapping):
        raise UsageError(
            f"groups is 'records' or maps query ids to groups; got {type(groups).__name__}."
        )
    if not any(query in groups for query in queries):
        raise UsageError(
            f"groups names none of the {len(queries)} queries; it has {list(groups)[:3]!r}, and "
            f"they are {list(queries)[:3]!r}. Are these the groups of another set?"
        )
    # A query that has none is apart from all that have one, whatever they are called.
    numbers: dict[tuple[bool, str], int] = {}
    made = [
        numbers.setdefault((query in groups, groups.get(query, query)), len(numbers))
        for query in queries
    ]
    if len(numbers) < 2:
        raise UsageError(
            f"The {len(queries)} queries are in one group, and at least 2 are needed. Judge "
            "questions about more records, or leave groups out."
        )
    return Grouping(np.array(made, dtype=np.int64), len(numbers))


def group_names(
    queries: Sequence[str], groups: Groups | None, qrels: Mapping[str, Mapping[str, float]]
) -> dict[str, str] | None:
    """Each of these queries with the name of its group; None if each stands for itself.

    Args:
        queries: Whose.
        groups: As the caller gave them.
        qrels: Read for ``records``.

    Raises:
        UsageError: As :func:`grouping`.
    """
    made = grouping(queries, groups, qrels)
    if made is None:
        return None
    return dict(zip(queries, map(str, made.numbers.tolist()), strict=True))


def by_records(qrels: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Groups of questions that have a relevant record in common, directly or through others.

    Args:
        qrels: Grades above 0 are relevant.

    Returns:
        Query id to the first of its group, for queries with something relevant.

    Example:
        >>> by_records({"q1": {"a": 1}, "q2": {"a": 1, "b": 1}, "q3": {"c": 1}})
        {'q1': 'q1', 'q2': 'q1', 'q3': 'q3'}
    """
    names = list(qrels)
    parent = list(range(len(names)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[str, int] = {}
    able = []
    for place, grades in enumerate(qrels.values()):
        relevant = [record for record, grade in grades.items() if grade > 0]
        if relevant:
            able.append(place)
        for record in relevant:
            # The lower place stays the root, so that a group is called by its first query.
            low, high = sorted((root(place), root(first.setdefault(record, place))))
            parent[high] = low
    return {names[place]: names[root(place)] for place in able}


def by_field(store: Door, qrels: Mapping[str, Mapping[str, float]], field: str) -> dict[str, str]:
    """Groups of questions whose relevant records have a metadata value in common.

    Args:
        store: A store, or a scoped view, that has the records; one that is not there, or has no
            such field, stands for itself.
        qrels: Grades above 0 are relevant.
        field: Such as that of the document a record was cut from.

    Returns:
        As :func:`by_records`.

    Raises:
        UsageError: If no relevant record has the field.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> _ = store.add({"id": id, "text": "x", "metadata": {"of": "page"}} for id in "ab")
        >>> by_field(store, {"q1": {"a": 1}, "q2": {"b": 1}}, "of")
        {'q1': 'q1', 'q2': 'q1'}
    """
    relevant = list(
        dict.fromkeys(id for grades in qrels.values() for id, grade in grades.items() if grade > 0)
    )
    values: dict[str, Any] = {}
    for start in range(0, len(relevant), _AT_ONCE):
        for record in store.get(relevant[start : start + _AT_ONCE]):
            if field in record.metadata:
                values[record.id] = record.metadata[field]
    if not values:
        raise UsageError(
            f"None of the {len(relevant)} relevant records has a metadata field {field!r} to group "
            "questions by. Name another field, or give groups='records'."
        )
    # Pairs, so that a value is never taken for the id of a record.
    named = {id: repr((True, values[id]) if id in values else (False, id)) for id in relevant}
    return by_records(
        {
            query: {named[id]: 1 for id, grade in grades.items() if grade > 0}
            for query, grades in qrels.items()
        }
    )
