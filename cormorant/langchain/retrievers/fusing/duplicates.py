"""Which documents of several ranked lists are one and the same?

Two are, if they have the same ``Document.id``; or the same value under ``id_key``, where one is
named; or the same text, where at least one of them has no id to be told apart by. So documents
with equal text and different ids stay apart, and a document that one leg returns with an id
and another without is still found to be one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from cormorant.langchain.provenance import attach, of

__all__ = ["Group", "grouped", "unique"]


@dataclass(slots=True)
class Group:
    """One document, as several lists show it.

    Attributes:
        views: By the number of the list, its best-ranked view.
        ranks: By the number of the list, the best rank, from 1, duplicates not counted.
        id: Of the first view that has one.
    """

    views: dict[int, Document] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    id: str | None = None

    @property
    def document(self) -> Document:
        """The first view, with what only the others know: an id, and further metadata.

        Metadata of a view with another text stays there: it describes that text.
        """
        first, *others = self.views.values()
        metadata: dict[str, Any] = {}
        for view in (*reversed([v for v in others if v.page_content == first.page_content]), first):
            metadata.update(view.metadata)
        return attach(first.model_copy(update={"id": self.id, "metadata": metadata}), of(first))


def grouped(lists: Sequence[Iterable[Document]], id_key: str | None = None) -> list[Group]:
    """Every document once, in the order of their first appearance, list by list.

    Within one list a document that comes again counts once, at its best rank, and does not
    push down those behind it.

    Args:
        lists: Ranked, best first.
        id_key: A metadata key that tells documents apart; those without it are told apart by
            id or text.
    """
    groups: list[Group] = []
    known: dict[tuple[str, str], Group] = {}
    for number, documents in enumerate(lists):
        rank = 0
        for document in documents:
            group = _find(known, document, id_key)
            if group is None:
                group = Group()
                groups.append(group)
            if number not in group.ranks:
                rank += 1
                group.ranks[number] = rank
                group.views[number] = document
            if group.id is None:
                group.id = document.id
            for key in _keys(document, id_key):
                known.setdefault(key, group)
    return groups


def unique(documents: Iterable[Document], id_key: str | None = None) -> list[Document]:
    """The documents in their order, each once."""
    return [group.document for group in grouped([documents], id_key)]


def _find(
    known: dict[tuple[str, str], Group], document: Document, id_key: str | None
) -> Group | None:
    for key in _keys(document, id_key):
        group = known.get(key)
        if group is None:
            continue
        # Equal texts are one document only if no two ids say otherwise.
        if key[0] != "text" or document.id is None or group.id is None:
            return group
    return None


def _keys(document: Document, id_key: str | None) -> list[tuple[str, str]]:
    """The surest first."""
    keys = [] if document.id is None else [("id", document.id)]
    if id_key is not None and document.metadata.get(id_key) is not None:
        # With an id_key of its own, a document is never taken for another by its text.
        return [*keys, ("key", _written(document.metadata[id_key]))]
    return [*keys, ("text", document.page_content)]


def _written(value: Any) -> str:
    """Equal for equal values, whatever the order of a dict's keys."""
    try:
        return json.dumps(value, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys of two types, a dict within itself
        return repr(value)
