"""What does a parent know of its children?

Over a Cormorant that holds both, nothing: the store finds them. Elsewhere their ids are kept in
the parent's metadata, under a key that is not seen in what is returned.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.documents import Document

__all__ = ["Parent", "all_children", "children_of", "parts_of", "plain", "remembering"]

FAMILY: Final = "_family"
_CHILDREN: Final = "children"
_LEFT: Final = "left"  # those of an earlier version that could not be deleted
_PARTS: Final = "parts"


@dataclass(frozen=True, slots=True)
class Parent:
    """A document as it is kept, and what of it is searched.

    Attributes:
        id: Its key.
        document: Kept under that key.
        children: Searched; each gets the key in its metadata.
    """

    id: str
    document: Document
    children: Sequence[Document] = field(default_factory=tuple)


def plain(key: str, parent: Document) -> Document:
    """A copy of a parent as it was given, with its key for an id if it has none."""
    metadata = {name: value for name, value in parent.metadata.items() if name != FAMILY}
    update: dict[str, Any] = {"metadata": copy.deepcopy(metadata)}
    if parent.id is None:
        update["id"] = key
    return parent.model_copy(update=update)


def remembering(
    parent: Document,
    *,
    children: Sequence[str] | None,
    left: Sequence[str] = (),
    parts: int | None = None,
) -> Document:
    """A copy of a parent that remembers its family.

    Args:
        parent: The document.
        children: Their ids; None if they are not known.
        left: Ids of children of an earlier version that are still there.
        parts: Of how many parts the whole document is, on the first of them.
    """
    family: dict[str, Any] = {}
    if children is not None:
        family[_CHILDREN] = list(children)
    if left:
        family[_LEFT] = list(left)
    if parts is not None:
        family[_PARTS] = parts
    return parent.model_copy(update={"metadata": {**parent.metadata, FAMILY: family}})


def children_of(parent: Document) -> int | None:
    """How many children a parent from another store remembers; None if it does not say."""
    family = _family(parent)
    return len(family[_CHILDREN]) if _CHILDREN in family else None


def parts_of(first: Document) -> int:
    """Of how many parts a document is, as its first part remembers."""
    parts: int = _family(first).get(_PARTS, 1)
    return parts


def all_children(parents: Iterable[Document]) -> list[str]:
    """The ids of all children that these parents remember, also of those that were left."""
    return [
        id
        for parent in parents
        for name in (_CHILDREN, _LEFT)
        for id in _family(parent).get(name, ())
    ]


def _family(parent: Document) -> Mapping[str, Any]:
    found = parent.metadata.get(FAMILY)
    return found if isinstance(found, Mapping) else {}
