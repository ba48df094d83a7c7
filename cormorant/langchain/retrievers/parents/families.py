"""Which families did the children found so far come from?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from cormorant.langchain.calls.steps import Steps, beside, on
from cormorant.langchain.provenance import Answer, attach, of
from cormorant.langchain.retrievers.parents.kin import plain
from cormorant.model import Step
from cormorant.store.door import Door

__all__ = ["Families", "Found"]

_NAMED = 3  # of those that are missing


@dataclass(slots=True)
class Found:
    """A family, as far as it was found.

    Attributes:
        place: Of its best child, from 1.
        children: In order, each with its place.
        key: Its parent's; None for a document that names no parent.
        parent: As the docstore gave it; None if it has none.
        ids: Of the children.
    """

    place: int
    key: Hashable | None
    children: list[tuple[int, Document]] = field(default_factory=list)
    parent: Document | None = None
    ids: set[str | None] = field(default_factory=set)

    def told(self) -> Document:
        """The parent, with its best child's scores; a document without parent as it is."""
        best = self.children[0][1]
        if self.parent is None:
            return best
        return adopted(plain(str(self.key), self.parent), self.children, f"Parent {self.key!r}")


def adopted(document: Document, children: Sequence[tuple[int, Document]], what: str) -> Document:
    """A document that is returned for its children: with the best one's scores."""
    place, best = children[0]
    count = "1 child" if len(children) == 1 else f"{len(children)} children"
    step = Step(
        "parent",
        kept=True,
        says=f"{what} of {count} found, the best at place {place}.",
        value=of(best).score,
        detail={"children": [child.id for _, child in children]},
    )
    return attach(document, of(best).then(step))


class Families:
    """The families of one call.

    Args:
        docstore: Where parents are kept.
        id_key: The metadata field in which a child names its parent.
        door: The store of the children, as far as the call may see it; None if it is not a
            Cormorant's. A parent outside of it is as good as none.
    """

    def __init__(
        self,
        docstore: BaseStore[str, Document],
        id_key: str,
        door: Door | None,
    ) -> None:
        self.door = door
        self.id_key = id_key
        self._docstore = docstore
        self._seen = 0
        self._found: dict[tuple[str, Hashable], Found] = {}
        self._parents: dict[Hashable, Document | None] = {}

    def take(self, children: Sequence[Document], *, more: bool) -> None:
        """Note the children of a search, best first.

        Args:
            children: What it found.
            more: Whether these come after the ones before, or hold them too.
        """
        if not more:
            self._seen = 0
            self._found = {}
        for child in children:
            self._seen += 1
            key = child.metadata.get(self.id_key)
            named = key is not None and isinstance(key, Hashable)
            whose = ("parent", key) if named else ("alone", child.id or id(child))
            family = self._found.get(whose)
            if family is None:
                family = self._found[whose] = Found(self._seen, key if named else None)
            if child.id is None or child.id not in family.ids:
                family.ids.add(child.id)
                family.children.append((self._seen, child))

    def fetch(self) -> Steps[None]:
        """Get the parents that are not there yet."""
        keys = [key for kind, key in self._found if kind == "parent" and key not in self._parents]
        if keys:
            got = yield on(self._docstore, "mget", keys)
            yield beside(keys, lambda: self._note(keys, got))
        for (kind, key), family in self._found.items():
            if kind == "parent":
                family.parent = self._parents.get(key)

    def _note(self, keys: Sequence[Hashable], got: Sequence[Document | None]) -> None:
        for key, parent in zip(keys, got, strict=True):
            inside = parent is not None and (self.door is None or self.door.admits(parent.metadata))
            self._parents[key] = parent if inside else None

    def exclusion(self) -> dict[str, Any] | None:
        """A filter that leaves out the children of the families found; None if there are none."""
        keys = [key for kind, key in self._found if kind == "parent"]
        return {self.id_key: {"$nin": keys}} if keys else None

    def __iter__(self) -> Iterator[Found]:
        """The families in the order of their best children, but those that lost their parent."""
        for (kind, _), family in self._found.items():
            if kind == "alone" or family.parent is not None:
                yield family

    def told(self, answer: Answer, found: Sequence[Document]) -> Answer:
        """An Answer with ``found``, and what must be said of it."""
        said = answer.of(found)
        lost = [repr(family.key) for family in self._found.values() if self._is_lost(family)]
        alone = sum(family.key is None for family in self._found.values())
        if lost:
            some = ", ".join(lost[:_NAMED]) + (", …" if len(lost) > _NAMED else "")
            said = said.degrading(
                f"{len(lost)} of {len(self._found)} parents are not in the docstore and were left "
                f"out: {some}. Add them again, or delete their children."
            )
        if alone:
            said = said.degrading(
                f"{alone} of {self._seen} documents found name no parent under "
                f"{self.id_key!r} and stand for themselves."
            )
        return said

    @staticmethod
    def _is_lost(family: Found) -> bool:
        return family.key is not None and family.parent is None
