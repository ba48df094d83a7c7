"""How does a LangChain Document become a Record, and a Record a Document?

Copies both ways: nothing a caller holds is shared with the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from cormorant.errors import RecordError
from cormorant.model import Record
from cormorant.store.intake import take_in
from cormorant.store.scope import Scope

__all__ = [
    "SCORES_KEY",
    "from_documents",
    "from_texts",
    "listed_documents",
    "listed_texts",
    "record_document",
    "with_vectors",
]

T = TypeVar("T")

SCORES_KEY = "_cormorant"
"""The metadata key scores come under. It is dropped from what is added: scores belong to
a query, not to a document."""


def from_documents(
    documents: Iterable[Document], ids: Iterable[str | None] | None = None
) -> list[Record]:
    """Documents as checked records without vectors.

    Args:
        documents: Read once.
        ids: One per document; beats ``Document.id``. None, here or there, becomes a
            random UUID.

    Raises:
        RecordError: On anything that cannot be stored.
    """
    taken = listed_documents(documents, "For plain strings use add_texts.")
    return _records(
        [document.page_content for document in taken],
        [document.metadata for document in taken],
        [document.id for document in taken] if ids is None else ids,
        noun="documents",
    )


def listed_documents(
    documents: Iterable[Document], instead: str = "Make one with Document(page_content=…)."
) -> list[Document]:
    """The documents as a list.

    Args:
        documents: Read once, so a generator is fine.
        instead: What to do with something else.

    Raises:
        RecordError: If it is one Document, or holds something else than Documents.
    """
    if isinstance(documents, Document):
        raise RecordError("documents takes a list of Documents; got one alone. Put it in a list.")
    taken = _listed(documents, "documents")
    for position, document in enumerate(taken):
        if not isinstance(document, Document):
            raise RecordError(
                f"documents takes Documents; got a {type(document).__name__} at position "
                f"{position}. {instead}"
            )
    return taken


def listed_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list; what else is in it than strings is not looked at.

    Args:
        texts: Read once, so a generator is fine.

    Raises:
        RecordError: If it is one string, or holds Documents.
    """
    if isinstance(texts, (str, bytes)):
        raise RecordError(
            f"texts takes a list of strings; got one {type(texts).__name__}. Put it in a list."
        )
    taken = _listed(texts, "texts")
    for position, text in enumerate(taken):
        if isinstance(text, Document):
            raise RecordError(
                f"texts takes strings; got a Document at position {position}. For Documents use "
                "add_documents, or from_documents."
            )
    return taken


def from_texts(
    texts: Iterable[str],
    metadatas: Iterable[Mapping[str, Any] | None] | None = None,
    ids: Iterable[str | None] | None = None,
) -> list[Record]:
    """Texts as checked records without vectors.

    Args:
        texts: Read once, so a generator is fine.
        metadatas: One per text.
        ids: One per text; None becomes a random UUID.

    Raises:
        RecordError: On anything that cannot be stored.
    """
    taken = listed_texts(texts)
    return _records(taken, metadatas, ids, noun="texts")


def _records(
    texts: list[str],
    metadatas: Iterable[Mapping[str, Any] | None] | None,
    ids: Iterable[str | None] | None,
    *,
    noun: str,
) -> list[Record]:
    chosen_metadatas = _aligned(metadatas, "metadatas", len(texts), noun)
    chosen_ids = _aligned(ids, "ids", len(texts), noun)
    given = [
        # An empty text is allowed here, since it will have a vector; the checks are
        # told so by a placeholder.
        Record(
            id=str(uuid.uuid4()) if id_ is None else id_,
            text=text,
            metadata=_without_scores(metadata),
            vector=None if text else (1.0,),
        )
        for text, metadata, id_ in zip(texts, chosen_metadatas, chosen_ids, strict=True)
    ]
    checked = take_in(given, dim=None, metric="dot", scope=Scope())
    return [
        Record(id=record.id, text=record.text, metadata=metadata)
        for record, metadata in zip(checked.records, checked.metadatas, strict=True)
    ]


def _aligned(values: Iterable[Any] | None, name: str, count: int, noun: str) -> list[Any]:
    if values is None:
        return [None] * count
    if isinstance(values, (str, bytes, Mapping)):
        raise RecordError(f"{name} takes a list; got a {type(values).__name__}. Put it in a list.")
    given = _listed(values, name)
    if len(given) != count:
        raise RecordError(
            f"The number of {name} must match the number of {noun}; got {len(given)} {name} and "
            f"{count} {noun}. Nothing was stored. Give one each, or leave {name} out."
        )
    return given


def _listed(values: Iterable[T], name: str) -> list[T]:
    try:
        items = iter(values)
    except TypeError as error:
        raise RecordError(
            f"{name} takes a list; got a {type(values).__name__}. Nothing was stored."
        ) from error
    return list(items)


def _without_scores(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if metadata is None:
        return {}
    if isinstance(metadata, Mapping) and SCORES_KEY in metadata:
        return {key: value for key, value in metadata.items() if key != SCORES_KEY}
    return metadata


def with_vectors(records: Sequence[Record], vectors: NDArray[np.float32]) -> list[Record]:
    """The records, each with its row of ``vectors``."""
    return [replace(record, vector=row) for record, row in zip(records, vectors, strict=True)]


def record_document(record: Record) -> Document:
    """A stored record as a Document."""
    return Document(id=record.id, page_content=record.text, metadata=dict(record.metadata))
