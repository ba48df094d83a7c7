"""Which questions can be asked whose answer is known, when nobody judged anything?

Each question is made from a record, which must then be found: its title, a heading, one of its
sentences with words left out, its rarest words, its common ones. No model is needed.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.golden import Golden
from cormorant.evaluate.judgements.asking import (
    KINDS,
    Candidate,
    candidates,
    chosen_words,
    headings,
    title,
    with_words_out,
)
from cormorant.evaluate.judgements.twins import Twins
from cormorant.evaluate.judgements.words import folded, number_of, words
from cormorant.model import FilterLike, Record
from cormorant.store.door import Door

__all__ = ["KnownItems", "known_items"]

_MANY: Final = 20  # records that answer a question: more, and it asks for none of them
_WORDS: Final = {"rare": (3,), "common": (4, 6, 8)}  # asked with more where fewer fit too many
_SPARE: Final = 4  # times what is wanted: some turn out to be answered by too many records


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Questions made from records, and the records that answer them.

    Attributes:
        golden: The questions, and grade 1 for every record that answers one: that it was made
            from, others that have the same title, heading, sentence or words, and
            near-duplicates.
        kinds: By question: ``title``, ``heading``, ``sentence``, ``rare`` or ``common``.
        sources: By question: the record it was made from.
        notes: Which kinds gave fewer questions than were wanted, and why, a sentence each.
    """

    golden: Golden
    kinds: Mapping[str, str]
    sources: Mapping[str, str]
    notes: tuple[str, ...]

    def of(self, kind: str) -> Golden:
        """The questions of one kind alone.

        Raises:
            UsageError: If there are none.
        """
        names = [name for name, each in self.kinds.items() if each == kind]
        return Golden(
            {name: self.golden.queries[name] for name in names},
            {name: self.golden.qrels[name] for name in names},
        )


@dataclass(slots=True)
class _Item:
    """A question in the making."""

    kind: str
    key: str
    stratum: str
    made_from: str
    record: Record
    asks: str = ""
    asked_words: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()


def known_items(
    store: Door,
    *,
    per_kind: int = 50,
    kinds: Sequence[str] = KINDS,
    stratify: str | None = None,
    title_fields: Sequence[str] = ("title",),
    drop: float = 0.3,
    twin: float = defaults.TWIN_LIKENESS,
    filter: FilterLike | None = None,
    seed: int = 0,
) -> KnownItems:
    """Make questions from a store's own records, no two alike.

    What they measure is whether records are found by what they say. Titles and headings are
    close to what people type. A sentence stays in its record: whole (``drop=0``) it asks
    whether a copy is found, which any text index can; with words left out it asks for the
    rest. Rare words favour the text leg; common ones ask for a combination. None of them has
    other words than its record, as people's questions do: a vector leg that understands more
    gets no credit for it.

    Args:
        store: A store or a scoped view.
        per_kind: Questions wanted of each kind.
        kinds: Some of ``title``, ``heading``, ``sentence``, ``rare`` and ``common``.
        stratify: A metadata field; as many questions are made from each of its values, as far
            as there are records.
        title_fields: Metadata fields that hold a title, the first one found counts.
        drop: Share of a sentence's words that are left out, from 0 to below 1.
        twin: Share of common words from which on a record counts as a near-duplicate of another.
        filter: Make questions from the records that satisfy it; any record may answer.
        seed: Of the choice. The same store and seed give the same questions, in whatever order
            the records were added, as long as no two have the same text.

    Returns:
        The questions, kind by kind; their ids begin with the kind.

    Raises:
        UsageError: On arguments out of range, or if no question could be made.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> _ = store.add([
        ...     {"id": "a", "text": "The tide turns at noon.", "metadata": {"title": "Tides"}},
        ...     {"id": "b", "text": "A cormorant dives.", "metadata": {"title": "Birds"}}])
        >>> made = known_items(store, kinds=["title"])
        >>> sorted(made.golden.queries.values())
        ['Birds', 'Tides']
    """
    _check(per_kind, kinds, drop, seed)
    if isinstance(title_fields, str):
        raise UsageError(
            f"title_fields is a list of metadata fields; got {title_fields!r}. Put it in a list."
        )
    frequency: Counter[str] = Counter()
    records = 0
    drawn = _Drawn(per_kind * _SPARE, seed)
    for record in store.records():
        frequency.update(set(words(record.text)))
        records += 1
        if filter is None:
            drawn.take(record, kinds, title_fields, stratify)
    if filter is not None:
        for record in store.records(filter):
            drawn.take(record, kinds, title_fields, stratify)
    items = drawn.items()
    _ask(items, frequency, records, drop, seed)
    _answer(items, store.records(), frequency, twin, title_fields)
    return _chosen(items, per_kind, kinds, seed)


class _Drawn:
    """Candidates, as many of each kind and stratum as are needed, those with the lowest numbers."""

    def __init__(self, wanted: int, seed: int) -> None:
        self._wanted = wanted
        self._seed = seed
        self._kept: dict[tuple[str, str], dict[str, tuple[int, _Item]]] = {}

    def take(
        self,
        record: Record,
        kinds: Sequence[str],
        title_fields: Sequence[str],
        stratify: str | None,
    ) -> None:
        """Look at one record."""
        stratum = "" if stratify is None else _written(record.metadata.get(stratify))
        for each in candidates(record, kinds, title_fields, self._seed):
            self._put(each, stratum, record)

    def _put(self, each: Candidate, stratum: str, record: Record) -> None:
        kept = self._kept.setdefault((each.kind, stratum), {})
        number = number_of(self._seed, each.kind, each.key)
        before = kept.get(each.key)
        if before is None or record.id < before[1].record.id:
            bare = Record(record.id, record.text)
            kept[each.key] = number, _Item(each.kind, each.key, stratum, each.text, bare)
        if len(kept) > 2 * self._wanted:
            few = heapq.nsmallest(self._wanted, kept.items(), key=lambda one: one[1][0])
            self._kept[each.kind, stratum] = dict(few)

    def items(self) -> list[_Item]:
        """As many as are needed of each kind, in turn from its strata, no question twice."""
        found: dict[str, dict[str, _Item]] = {}
        for (kind, _), kept in sorted(self._kept.items(), key=lambda one: one[0]):
            few = heapq.nsmallest(self._wanted, kept.values(), key=lambda one: one[0])
            for _, item in few:
                # Strata may share titles.
                found.setdefault(kind, {}).setdefault(item.key, item)
        return [
            item
            for of_kind in found.values()
            for item in islice(_spread(list(of_kind.values()), self._seed), self._wanted)
        ]


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _ask(
    items: Iterable[_Item], frequency: Mapping[str, int], records: int, drop: float, seed: int
) -> None:
    """Word each question; those by words stay open until it is known how many records fit."""
    for item in items:
        if item.kind == "sentence":
            item.asks = with_words_out(item.made_from, drop, seed)
        elif item.kind in _WORDS:
            most = _WORDS[item.kind][-1]
            item.made_from = " ".join(
                chosen_words(item.record.text, item.kind, frequency, records, most)
            )
        else:
            item.asks = item.made_from


def _answer(
    items: Sequence[_Item],
    records: Iterable[Record],
    frequency: Mapping[str, int],
    twin: float,
    title_fields: Sequence[str],
) -> None:
    """Find which records answer each question."""
    rules = _Rules(items, frequency)
    texts = {item.record.id: item.record.text for item in items}
    near = Twins(texts, likeness=twin, frequency=frequency)
    from_record: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        from_record.setdefault(item.record.id, []).append(at)
    answers: list[dict[str, None]] = [{} for _ in items]
    twins: list[dict[str, None]] = [{} for _ in items]
    asked_with: dict[int, dict[int, dict[str, None]]] = {}
    for record in records:
        found = frozenset(words(record.text))
        for name in near.of(found):
            for at in from_record[name]:
                twins[at][record.id] = None
        for at in rules.same(record, found, title_fields):
            answers[at][record.id] = None
        for at, count in rules.worded(found):
            asked_with.setdefault(at, {}).setdefault(count, {})[record.id] = None
    for at, item in enumerate(items):
        if item.kind in _WORDS:
            _settle(item, frequency, asked_with.get(at, {}))
            own = dict.fromkeys(item.answers)
        else:
            own = answers[at]
        too_many = len(own) > _MANY or item.record.id not in own
        item.answers = () if too_many else tuple(own | twins[at])


def _settle(
    item: _Item, frequency: Mapping[str, int], fits: Mapping[int, Mapping[str, None]]
) -> None:
    """Ask with as few words as leave few enough records."""
    for count in _WORDS[item.kind]:
        ids = fits.get(count, {})
        if item.record.id in ids and len(ids) <= _MANY:
            item.asks = " ".join(_first(item, count, frequency))
            item.answers = tuple(ids)
            return


def _first(item: _Item, count: int, frequency: Mapping[str, int]) -> list[str]:
    """The ``count`` words that come first by rarity, or by being common, in the text's order."""
    told = item.made_from.split(" ")
    sign = 1 if item.kind == "rare" else -1
    kept = set(sorted(told, key=lambda word: (sign * frequency[word], word))[:count])
    return [word for word in told if word in kept]


class _Rules:
    """Which questions does a record answer by what they were made of?"""

    def __init__(self, items: Sequence[_Item], frequency: Mapping[str, int]) -> None:
        self._title = {item.key: at for at, item in enumerate(items) if item.kind == "title"}
        self._heading = {item.key: at for at, item in enumerate(items) if item.kind == "heading"}
        self._sentence: dict[str, list[tuple[int, str]]] = {}
        self._words: dict[str, list[tuple[int, int, frozenset[str]]]] = {}
        for at, item in enumerate(items):
            if item.kind == "sentence":
                told = words(item.made_from)
                rarest = min(told, key=lambda word: (frequency.get(word, 0), word))
                self._sentence.setdefault(rarest, []).append((at, item.key))
            elif item.kind in _WORDS and item.made_from:
                for count in _WORDS[item.kind]:
                    asked = frozenset(_first(item, count, frequency))
                    # Fewer words than that: asked with all it has, at the count before.
                    if len(asked) < count and count > _WORDS[item.kind][0]:
                        continue
                    rarest = min(asked, key=lambda word: (frequency[word], word))
                    self._words.setdefault(rarest, []).append((at, count, asked))

    def same(
        self, record: Record, found: frozenset[str], title_fields: Sequence[str]
    ) -> Iterator[int]:
        """Those whose title, heading or sentence the record has."""
        if self._title:
            named = title(record.metadata, title_fields)
            if named is not None and folded(named) in self._title:
                yield self._title[folded(named)]
        if self._heading and "#" in record.text:
            for heading in headings(record.text):
                if folded(heading) in self._heading:
                    yield self._heading[folded(heading)]
        asked = [each for word in found for each in self._sentence.get(word, ())]
        if asked:
            text = folded(record.text)
            yield from (at for at, key in asked if key in text)

    def worded(self, found: frozenset[str]) -> Iterator[tuple[int, int]]:
        """Those whose words the record has, and with how many words they are asked then."""
        for word in found:
            for at, count, asked in self._words.get(word, ()):
                if asked <= found:
                    yield at, count


def _chosen(items: Iterable[_Item], per_kind: int, kinds: Sequence[str], seed: int) -> KnownItems:
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, float]] = {}
    kind_of: dict[str, str] = {}
    sources: dict[str, str] = {}
    notes = []
    able = [item for item in items if item.answers and item.asks]
    known: set[str] = set()
    for kind in dict.fromkeys(kinds):
        taken: set[str] = set()
        of_kind = [item for item in able if item.kind == kind]
        for item in _spread(of_kind, seed):
            if len(taken) == per_kind:
                break
            asked = folded(item.asks)
            if asked in known:
                continue
            known.add(asked)
            taken.add(asked)
            name = f"{kind}-{number_of(kind, item.key):016x}"
            queries[name] = item.asks
            qrels[name] = dict.fromkeys(item.answers, 1)
            kind_of[name] = kind
            sources[name] = item.record.id
        if len(taken) < per_kind:
            notes.append(f"{kind}: {len(taken)} of {per_kind} questions; {_WANTING[kind]}")
    if not queries:
        raise UsageError("No question could be made from the store's records. " + " ".join(notes))
    return KnownItems(Golden(queries, qrels), kind_of, sources, tuple(notes))


_WANTING: Final[Mapping[str, str]] = {
    "title": "too few records have a title of their own. See title_fields.",
    "heading": "too few records have a Markdown heading (# …) of their own.",
    "sentence": f"too few of the records drawn have a sentence of 5 to 60 words that at most "
    f"{_MANY} share.",
    "rare": f"too few of the records drawn have rare words that at most {_MANY} share.",
    "common": f"too few of the records drawn have common words that together at most {_MANY} "
    "share.",
}


def _spread(items: Sequence[_Item], seed: int) -> Iterator[_Item]:
    """In turn from each stratum, in drawn order."""
    strata: dict[str, list[_Item]] = {}
    for item in sorted(items, key=lambda one: number_of(seed, one.kind, one.key)):
        strata.setdefault(item.stratum, []).append(item)
    order = sorted(strata, key=lambda stratum: number_of(seed, stratum))
    for turn in range(max(map(len, strata.values()), default=0)):
        yield from (strata[stratum][turn] for stratum in order if turn < len(strata[stratum]))


def _check(per_kind: object, kinds: Any, drop: object, seed: object) -> None:
    if isinstance(per_kind, bool) or not isinstance(per_kind, int) or per_kind < 1:
        raise UsageError(f"per_kind must be a whole number of at least 1; got {per_kind!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed must be a whole number; got {seed!r}.")
    unknown = [kind for kind in kinds if kind not in KINDS] if not isinstance(kinds, str) else kinds
    if unknown or not kinds:
        raise UsageError(f"kinds is a list of some of {', '.join(KINDS)}; got {kinds!r}.")
    if isinstance(drop, bool) or not isinstance(drop, (int, float)) or not 0 <= drop < 1:
        raise UsageError(f"drop must be at least 0 and below 1; got {drop!r}.")
