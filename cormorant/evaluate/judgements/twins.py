"""Which records say nearly the same as this one?

A correct twin that counts as a miss punishes the system that found it: what is judged relevant
is judged so with its near-duplicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.judgements.words import words
from cormorant.model import Record

__all__ = ["Twins", "twins_of"]


class Twins:
    """Finds, record by record, those near to some texts.

    Args:
        texts: By name: what is looked for.
        likeness: Words in both over words in either, from which on two are near; above 0, at
            most 1.
        frequency: In how many records a word occurs, as far as that is known. It makes looking
            quicker, and changes no result.

    Source:
        Jaccard's coefficient of sets of words (Broder, On the resemblance and containment of
        documents, SEQUENCES 1997). Found exactly by prefix filtering: a set within ``t`` of S
        has one of any ⌊(1 - t)·|S|⌋ + 1 members of S (Bayardo, Ma and Srikant, WWW 2007), of
        which the rarest are asked for.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        *,
        likeness: float = defaults.TWIN_LIKENESS,
        frequency: Mapping[str, int] | None = None,
    ) -> None:
        number = isinstance(likeness, (int, float)) and not isinstance(likeness, bool)
        if not number or not 0 < likeness <= 1:
            raise UsageError(f"likeness must be above 0 and at most 1; got {likeness!r}.")
        self._likeness = likeness
        self._sets = {name: frozenset(words(text)) for name, text in texts.items()}
        if frequency is None:
            frequency = Counter(word for each in self._sets.values() for word in each)
        self._by_word: dict[str, list[str]] = {}
        for name, each in self._sets.items():
            rarest = sorted(each, key=lambda word: (frequency.get(word, 0), word))
            # A hair less, so that rounding never loses one that is exactly as near as asked.
            for word in rarest[: int((1 - likeness) * len(each) + 1e-9) + 1]:
                self._by_word.setdefault(word, []).append(name)

    def of(self, found: frozenset[str]) -> list[str]:
        """The names of the texts whose near-duplicate has these words, sorted."""
        near = {name for word in found for name in self._by_word.get(word, ())}
        return sorted(name for name in near if self._alike(self._sets[name], found))

    def _alike(self, one: frozenset[str], other: frozenset[str]) -> bool:
        common = len(one & other)
        return common >= self._likeness * (len(one) + len(other) - common) - 1e-9


def twins_of(
    texts: Mapping[str, str], records: Iterable[Record], *, likeness: float = defaults.TWIN_LIKENESS
) -> dict[str, tuple[str, ...]]:
    """The records near to each text, in the records' order.

    Args:
        texts: By name.
        records: To look among, such as ``store.records()``.
        likeness: See :class:`Twins`.

    Returns:
        By name: ids. A text without words has none.

    Example:
        >>> records = [
        ...     Record("a", "The tide turns at noon."), Record("b", "the tide turns at NOON")
        ... ]
        >>> twins_of({"x": "The tide turns at noon"}, records)
        {'x': ('a', 'b')}
    """
    looking = Twins(texts, likeness=likeness)
    found: dict[str, list[str]] = {name: [] for name in texts}
    for record in records:
        for name in looking.of(frozenset(words(record.text))):
            found[name].append(record.id)
    return {name: tuple(ids) for name, ids in found.items()}
