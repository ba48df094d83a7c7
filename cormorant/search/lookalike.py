"""Which stored record has this text, or the most like it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cormorant.analysis.normalise import normalise
from cormorant.search.admit import Condition, admitted
from cormorant.search.legs import TextLeg

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["Likeness", "most_like"]

_TERMS: Final = 64  # so many of a long text's terms find it
_LOOKED_AT: Final = 20
_ALIKE: Final = 0.5


class Likeness(NamedTuple):
    """How like a text a record is.

    Attributes:
        id: The record's.
        share: Of the terms of both, those in both (Jaccard's coefficient), in [0, 1].
        alike: Whether it may be taken for what was meant: one text holds the other, or at least
            half of their terms are the same.
    """

    id: str
    share: float
    alike: bool


def most_like(snapshot: Snapshot, text: str) -> Likeness | None:
    """The record inside the snapshot's scope that is most like a text; None if none shares a term.

    Looks at the best few by BM25 alone, so of many near-copies any may be taken.
    """
    asked = list(dict.fromkeys(snapshot.analyzer.query_terms(text)))[:_TERMS]
    mask = admitted(snapshot, Condition())
    if not asked or not snapshot.n or (mask is not None and not mask.any()):
        return None
    found = TextLeg(snapshot, asked).fetch(_LOOKED_AT, mask)
    likenesses = [
        _likeness(snapshot, record.id, record.text, text) for record in snapshot.fetch(found.slots)
    ]
    return max(likenesses, key=lambda each: (each.alike, each.share), default=None)


def _likeness(snapshot: Snapshot, id: str, stored: str, given: str) -> Likeness:
    terms = snapshot.analyzer.terms
    here, there = set(terms(stored)), set(terms(given))
    share = len(here & there) / (len(here | there) or 1)
    one, other = normalise(stored).strip(), normalise(given).strip()
    return Likeness(
        id, share, alike=share >= _ALIKE or other in one or (one in other and one != "")
    )
