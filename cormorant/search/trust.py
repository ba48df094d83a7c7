"""How far is each leg to be trusted, by what the store itself holds?

Two questions are asked, and no judgement is needed for either. *Of the store*: the terms of a
record are cut into two halves; does its vector find the record that one half points to as well
as the other half does? Vectors of noise find nothing. *Of a query*: do the records that the
vector leg likes best hold the query's terms? Those in another script could not, so their lack of
them says nothing. With the embedder at hand a third: does it understand questions? Measured in
docs/decisions/0014-trust.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.analysis.scripts import script_of
from cormorant.errors import ConfigError
from cormorant.index.vector import scores
from cormorant.search.probes import Embed, heard

if TYPE_CHECKING:
    from cormorant.search.fuse import LegScores
    from cormorant.search.snapshot import Snapshot

__all__ = ["DEPTH", "IMAGINED", "Trust", "Weighing", "learn"]

Floats: TypeAlias = NDArray[np.float64]

DEPTH: Final = 10
"""Candidates of each leg, from the best, that a query's agreement is read from."""

IMAGINED: Final = 0.9
"""Of a sound vector's standard, what the text leg is taken to say of a record it cannot read."""

_SAMPLE: Final = 512  # records asked about, at most
_FEWEST: Final = 32
_EFFORT: Final = 470_000.0  # some seconds: see _effort()
_SPLITS: Final = 2
_PAGE: Final = 64  # texts fetched in one go

_PRIOR_RECORDS: Final = 10.0  # imagined ones, in which both find alike: thin evidence moves little
_PRIOR_FOUND: Final = 0.25

_NEUTRAL: Final = 0.65  # usual agreement of a good leg with text; taken where text knows nothing
_LOW: Final = 0.37  # below it the vector leg loses weight
_HIGH: Final = 0.8  # from here on it may gain, if its vectors were found good
_RAMP: Final = 0.04
_GAIN: Final = 0.15
_UNKNOWN: Final = 0.06  # for a query none of whose terms the store knows
_STRAY: Final = 0.02  # so many records in another script do not make a store one of several
_SEVERAL: Final = 0.1  # from so many on it is one
_DEAF: Final = 0.1  # agreement of noise; where vectors say something it is twice that and more
_FLOOR: Final = 0.01  # so that a leg is asked at all: the other one may find nothing


_OPTIONAL: Final = ("fingerprint", "scripts", "heard", "probes")


class Weighing(NamedTuple):
    """What was learned, brought to one query.

    Attributes:
        weights: ``vector`` and ``text``, adding up to 1.
        imagined: Of a candidate in another script than the query: the part of its vector's
            standard that the text leg is taken to give it, in [0, 1].
    """

    weights: dict[str, float]
    imagined: float


@dataclass(frozen=True, slots=True)
class Trust:
    """What a store learned of its legs.

    Attributes:
        vector: How well the vectors find the record that half of a record's terms points to:
            mean reciprocal rank, less what chance finds; at least 0.
        text: How well the other half of the terms does.
        records: How many records there was something to learn from.
        newest: The newest record's row when it was learned.
        fingerprint: Of the embedder whose vectors they were, encoded as the store keeps it;
            None if the store knew none.
        scripts: Of the records looked at, the part in each script; those without letters are in
            none. Adds up to 1, or is empty.
        heard: 1 if the embedder understands questions made from the records, 0 if their vectors
            find nothing of what they are about; None if no embedder was asked, or too little.
        probes: How many questions were asked.

    Raises:
        ConfigError: On a value that could not have been learned.
    """

    vector: float
    text: float
    records: int
    newest: int
    fingerprint: Mapping[str, Any] | None = None
    scripts: Mapping[str, float] = field(default_factory=dict)
    heard: float | None = None
    probes: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.scripts, Mapping):
            raise ConfigError("The store's trust: scripts is a dict of script to part.")
        parts = {f"scripts[{script!r}]": part for script, part in self.scripts.items()}
        for name, value in {"vector": self.vector, "text": self.text, **parts}.items():
            if not _is_part(value):
                raise ConfigError(f"The store's trust: {name} lies in [0, 1]; got {value!r}.")
        for name in ("records", "newest", "probes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError(f"The store's trust: {name} is a count; got {value!r}.")
        if self.fingerprint is not None and not isinstance(self.fingerprint, Mapping):
            raise ConfigError("The store's trust: fingerprint is a dict, or null.")
        if self.heard is not None and not _is_part(self.heard):
            raise ConfigError(
                f"The store's trust: heard lies in [0, 1], or is null; got {self.heard!r}."
            )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Trust:
        """Read what :meth:`to_json` wrote; what a later release added is left out.

        Raises:
            ConfigError: If it is something else.
        """
        try:
            return cls(
                **{name: stored[name] for name in ("vector", "text", "records", "newest")},
                **{name: stored[name] for name in _OPTIONAL if name in stored},
            )
        except (KeyError, TypeError) as error:
            raise ConfigError(f"The store's trust is damaged: {error!r}.") from error

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        written = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**written, "scripts": dict(self.scripts)}

    @property
    def foreign(self) -> float:
        """Part of the records in another script than most, in [0, 1]."""
        return 1.0 - max(self.scripts.values(), default=1.0)

    @property
    def several(self) -> float:
        """How far the store is one of several scripts: 1 from a tenth of its records on."""
        return min(max((self.foreign - _STRAY) / (_SEVERAL - _STRAY), 0.0), 1.0)

    @property
    def share(self) -> float:
        """The vector leg's weight, before a query is looked at; in [0, 1].

        r² / (1 + r²), r being what the vectors find over what the other half of the terms
        finds, drawn towards 1 where few records were asked about. Falls to nothing with
        ``heard``, where that is known to be low.
        """
        prior = _PRIOR_RECORDS * _PRIOR_FOUND
        ratio = (self.records * self.vector + prior) / (self.records * self.text + prior)
        strength = ratio * ratio
        return (1.0 if self.heard is None else self.heard) * strength / (1.0 + strength)

    def weigh(
        self,
        vector: LegScores,
        text: LegScores,
        *,
        known: float,
        depth: int = DEPTH,
        beyond: NDArray[np.bool_] | None = None,
    ) -> Weighing:
        """Weights for one query, from how the two legs see each other's best candidates.

        Args:
            vector: The vector leg's view of the candidates, with its statistics.
            text: The text leg's view of the same.
            known: Part of the weight of the query's terms that belongs to terms the store
                has, in [0, 1].
            depth: Candidates each leg fetched.
            beyond: Which of the candidates are in another script than the query; None if that
                is not known.
        """
        best = (vector.ranks > 0) & (vector.ranks <= min(depth, DEPTH))
        agreement = _agreement(text, best if beyond is None else best & ~beyond)
        # Questions that are understood may be answered by what is in another script alone.
        sure = beyond is not None and self.heard == 1.0
        share = self.share
        half = min(share, 0.5)
        heed = 1.0 if sure else min(max(agreement, 0.0) / _LOW, 1.0)
        weight = half * heed
        weight += min(share - half, _GAIN) * min(max((agreement - _HIGH) / _RAMP, 0.0), 1.0)
        weight += _UNKNOWN * (1.0 - known) * 2.0 * half
        sound = min(4.0 * half, 1.0)
        several = self.several
        weight = max(weight + several * max(0.5 * sound - weight, 0.0), _FLOOR)
        meant = 1.0 if sure else min(max((agreement - _DEAF) / _DEAF, 0.0), 1.0)
        imagined = IMAGINED * sound * several * meant
        return Weighing({"vector": weight, "text": 1.0 - weight}, imagined)


def _is_part(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0.0 <= value <= 1.0  # type: ignore[operator]


def _agreement(text: LegScores, best: NDArray[np.bool_]) -> float:
    """The text standards of the vector leg's best, over those of the text leg's own best.

    Drawn towards the usual where the text leg's best hardly rise above the mean.
    """
    statistics = text.among or text.statistics
    if statistics is None:  # pragma: no cover - z has them
        raise ValueError("Agreement needs the collection's statistics.")
    standards = statistics.standard(text.scores)
    count = int(np.count_nonzero(best))
    if not count:
        return _NEUTRAL
    own = (text.ranks > 0) & (text.ranks <= count)
    theirs = float(standards[best].sum()) / count
    # Where the text leg found fewer, the rest hold no term and stand at the mean.
    ours = max(float(standards[own].sum()) / count, 0.0)
    return (theirs + _NEUTRAL) / (ours + 1.0)


def learn(
    snapshot: Snapshot,
    *,
    newest: int,
    fingerprint: Mapping[str, Any] | None,
    embed: Embed | None = None,
) -> Trust:
    """Ask the store about its own records. Deterministic; takes some seconds at most.

    For a sample of records with text and vector: its distinct terms are cut into two halves, the
    same for every record. The record that one half finds best by BM25, itself left out, is what
    should be found; the reciprocal rank at which the other half finds it, and at which the
    record's vector does, say what each is worth. Chance (the mean of 1 / rank) is taken off.

    Args:
        snapshot: Of a store, unscoped.
        newest: The newest record's row, kept with the result.
        fingerprint: The embedder's, likewise.
        embed: As questions are embedded; asked at most 96 times, one after the other.

    Returns:
        With ``records`` 0 if there is nothing to ask about: the legs then count alike.

    Source:
        Split-half reliability (Spearman, 1910; Brown, 1910) with the vector as a third measure
        of the same thing, on the top of the ranking alone instead of by correlation.
    """
    vectors = snapshot.vectors()
    slots = np.flatnonzero(snapshot.alive & snapshot.has_vector)
    empty = Trust(0.0, 0.0, 0, newest, fingerprint)
    if vectors is None or len(slots) < 3:  # itself, and two to choose from
        return empty
    found: list[tuple[float, float]] = []
    scripts: Counter[str] = Counter()
    effort, records = 0.0, 0
    for asked, (at, terms, script) in enumerate(_sample(snapshot, slots)):
        if script is not None:
            scripts[script] += 1
        if effort > _EFFORT and asked >= _FEWEST:
            break
        effort += _effort(len(terms), len(slots))
        if terms:
            likeness = scores(vectors[slots[at]], vectors, snapshot.metric)[slots]
            told = _asked(snapshot, slots, at, terms, likeness.astype(np.float64))
            found.extend(told)
            records += bool(told)
    if not found:
        return empty
    by_vector, by_text = np.mean(np.array(found), axis=0).tolist()
    chance = float(np.mean(1.0 / np.arange(1, len(slots))))
    known, probes = (None, 0) if embed is None else heard(snapshot, slots, embed)
    return Trust(
        vector=max(by_vector - chance, 0.0),
        text=max(by_text - chance, 0.0),
        records=records,
        newest=newest,
        fingerprint=fingerprint,
        scripts={name: count / scripts.total() for name, count in sorted(scripts.items())},
        heard=known,
        probes=probes,
    )


def _sample(
    snapshot: Snapshot, slots: NDArray[np.int64]
) -> Iterator[tuple[int, list[str], str | None]]:
    """Records to ask about, in an order that says nothing: their place, distinct terms, script."""
    order = np.random.default_rng(0).permutation(len(slots))[:_SAMPLE]
    for start in range(0, len(order), _PAGE):
        page = order[start : start + _PAGE]
        for at, record in zip(page.tolist(), snapshot.fetch(slots[page]), strict=True):
            yield at, sorted(set(snapshot.analyzer.terms(record.text))), script_of(record.text)


def _effort(terms: int, n: int) -> float:
    """What one record costs: its terms, longer postings in a larger store, and all vectors.

    In units of some 8 microseconds, fitted to 850 long Chinese passages and 60,000 short ones.
    """
    return terms * (3.0 + n / 5_000) + n / 125


def _asked(
    snapshot: Snapshot, slots: NDArray[np.int64], at: int, terms: Sequence[str], by_vector: Floats
) -> list[tuple[float, float]]:
    """One record's reciprocal ranks by vector and by text, for each half of each split."""
    k1, b = snapshot.bm25
    alive = snapshot.alive if snapshot.dead else None
    by_vector[at] = -math.inf
    found = []
    for split in range(_SPLITS):
        seen: list[Floats] = []
        for half in _halves(terms, split):
            if half:
                asked = snapshot.text.ask(half, alive=alive, k1=k1, b=b)
                by_text = asked.score(slots).astype(np.float64)
                by_text[at] = -math.inf
                seen.append(by_text)
        if len(seen) == 2:  # both halves hold a term
            for one, other in (seen, seen[::-1]):
                best = int(np.argmax(one))
                if one[best] > 0:
                    found.append((_reciprocal(by_vector, best), _reciprocal(other, best)))
    return found


def _halves(terms: Sequence[str], split: int) -> tuple[list[str], list[str]]:
    """Terms in two halves: a term goes the same way in every record."""
    halves: tuple[list[str], list[str]] = ([], [])
    for term in terms:
        digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=1).digest()
        halves[digest[0] >> split & 1].append(term)
    return halves


def _reciprocal(worth: Floats, at: int) -> float:
    """1 / rank of one record, the middle of those it ties with."""
    value = worth[at]
    above = int(np.count_nonzero(worth > value))
    tied = int(np.count_nonzero(worth == value)) - 1
    return 1.0 / (1.0 + above + tied / 2.0)
