"""What does the store hold of which source, as far as it was synced?

Read once when a sync begins, and kept up with what the sync commits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from cormorant.ingest.manifest import Kept, Manifest, Part, Place
from cormorant.ingest.members import Members, key_of

__all__ = ["Ledger", "Version"]

_VERSIONS: Final = 64  # whose chunks are remembered, for chunks that sources share


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """One version of a source; a later one of the same source comes first."""

    place: Place
    minus_build: int

    @property
    def build(self) -> int:
        """Its number."""
        return -self.minus_build


class Ledger:
    """Sources, their versions, and which chunks each holds.

    Args:
        manifest: Where it is read from.

    Attributes:
        kept: Every source's head.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self.kept: dict[Place, Kept] = {}
        self._versions: list[Version] = []
        self._numbers: dict[Version, int] = {}
        self._of_place: dict[Place, set[int]] = {}
        self._members = Members()
        self._known: OrderedDict[Version, dict[str, dict[str, Any]]] = OrderedDict()
        for each in manifest.read():
            if isinstance(each, Part):
                self.hold(Version(each.place, -each.build), list(each.chunks))
            else:
                self.kept[each.place] = each

    def hold(self, version: Version, ids: list[str]) -> None:
        """The version holds these chunks too; none of them was named for it before."""
        self._members.add(self._number(version), map(key_of, ids))
        self._known.pop(version, None)

    def drop(self, version: Version) -> None:
        """The version is gone."""
        number = self._numbers.pop(version, None)
        if number is not None:
            self._members.drop(number)
            self._of_place[version.place].discard(number)
        self._known.pop(version, None)

    def versions(self, place: Place) -> list[Version]:
        """All versions of a source of which something is in the store, latest first."""
        return sorted(self._versions[number] for number in self._of_place.get(place, ()))

    def holders(self, id: str) -> list[Version]:
        """The versions that hold a chunk (or one whose id begins alike), in order."""
        return sorted(self._versions[number] for number in self._members.of(key_of(id)))

    def holds(self, version: Version, id: str) -> bool:
        """Whether a version holds a chunk (or one whose id begins alike)."""
        number = self._numbers.get(version)
        return number is not None and number in self._members.of(key_of(id))

    def places(self, collection: str) -> list[Place]:
        """All sources of a collection of which something is in the store, in order."""
        held = {place for place, numbers in self._of_place.items() if numbers}
        return sorted(place for place in held | set(self.kept) if place.collection == collection)

    def metadata(self, version: Version, id: str) -> dict[str, Any] | None:
        """What a chunk's metadata are because of a version; None if it does not hold the chunk."""
        known = self._known.get(version)
        if known is None:
            return self._look_up(version, id)
        self._known.move_to_end(version)
        return known.get(id)

    def _look_up(self, version: Version, id: str) -> dict[str, Any] | None:
        """Through the version's parts, one at a time: it may be larger than memory."""
        parts = self._manifest.parts(version.place, version.build)
        first = next(parts, None)
        if first is None:
            return None
        second = next(parts, None)
        if second is None:
            self._known[version] = dict(first.chunks)
            while len(self._known) > _VERSIONS:
                self._known.popitem(last=False)
            return first.chunks.get(id)
        for part in chain((first, second), parts):
            if id in part.chunks:
                return part.chunks[id]
        return None

    def next_build(self, place: Place) -> int:
        """A number no version of the source has."""
        head = self.kept.get(place)
        taken = [version.build for version in self.versions(place)]
        return max([0 if head is None else head.build, *taken]) + 1

    def _number(self, version: Version) -> int:
        number = self._numbers.get(version)
        if number is None:
            number = self._numbers[version] = len(self._versions)
            self._versions.append(version)
            self._of_place.setdefault(version.place, set()).add(number)
        return number
