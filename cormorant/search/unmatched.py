"""Why did a filter let nothing through?"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from cormorant.filters import crossed
from cormorant.search.admit import Condition, admitted

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["unmatched"]

_ASKED = 4  # unknown fields that get a suggestion
_LONGEST = 64  # characters of a name that gets one
_NEIGHBOURS = 500  # fields compared with it


def unmatched(snapshot: Snapshot, condition: Condition) -> list[str]:
    """Fields that no record has, and those that hold values of another type; a sentence each.

    Inside a scope its own records are looked at, and no others.

    Args:
        snapshot: Of the store.
        condition: A filter that nothing passed.
    """
    seen = admitted(snapshot, Condition())
    if condition.parsed is None or not snapshot.n or (seen is not None and not seen.any()):
        return []
    known = snapshot.columns.fields(seen)
    said: list[str] = []
    for name in sorted(condition.parsed.fields):
        if name in known or any(other.startswith(name + ".") for other in known):
            continue
        # A scope is told no neighbours; and asking for many, among many, would take long.
        few = len(said) < _ASKED and len(name) <= _LONGEST and len(known) <= _NEIGHBOURS
        told = few and snapshot.scope is None
        near = difflib.get_close_matches(name, known, n=1) if told else []
        said.append(
            f"No record has the field {name!r}, which the filter asks for"
            + (f"; did you mean {near[0]!r}?" if near else ".")
        )
    said.extend(crossed(condition.parsed, {name: info.kinds for name, info in known.items()}))
    return said
