"""Is what the user handed over a batch that can be stored, all of it?

Everything is checked before anything is written, so a bad record in a batch of a
thousand costs nothing but the message.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import RecordError
from cormorant.index.vector import check_vectors
from cormorant.model import Metric, Record
from cormorant.storage import NewDocument, NewRecord, decode_metadata, encode_metadata

if TYPE_CHECKING:
    from cormorant.store.scope import Scope

__all__ = ["Batch", "check_ids", "take_in", "take_in_documents"]

_FIELDS = ("id", "text", "vector", "metadata")


@dataclass(frozen=True, slots=True)
class Batch:
    """Checked and encoded records, aligned.

    Attributes:
        records: What SQLite stores.
        metadatas: As they will be read back: fresh copies.
        vectors: float32, shape (m, dim); rows of zeros where there is none; None if
            no record has one.
        has_vector: bool, shape (m,).
    """

    records: list[NewRecord]
    metadatas: list[dict[str, Any]]
    vectors: NDArray[np.float32] | None
    has_vector: NDArray[np.bool_]


def take_in(
    records: Iterable[Record | Mapping[str, Any]],
    *,
    dim: int | None,
    metric: Metric,
    scope: Scope,
) -> Batch:
    """Check and encode a batch.

    Args:
        records: Records or dicts; any iterable, read once.
        dim: The store's dimension, or None if the first vector decides it.
        metric: The store's metric; under cosine vectors are normalised.
        scope: Stamped on every record.

    Raises:
        RecordError: On a record that cannot be stored, naming its position and id.
        DimensionError: On a bad vector, naming its record.
        ScopeError: On a record outside the scope.
    """
    if isinstance(records, (str, bytes, Mapping, Record)):
        raise RecordError(
            f"add takes an iterable of records; got a single {type(records).__name__}. "
            "Put it in a list."
        )
    if not isinstance(records, Iterable):
        raise RecordError(f"add takes an iterable of records; got {type(records).__name__}.")
    taken: list[NewRecord] = []
    metadatas: list[dict[str, Any]] = []
    given: list[Any] = []
    seen: dict[str, int] = {}
    for position, item in enumerate(records):
        record = _as_record(item, position)
        _check_string(record.id, "id", position, limit=defaults.MAX_ID_BYTES)
        if not record.id:
            raise RecordError(f"Record {position} has an empty id.")
        if record.id in seen:
            raise RecordError(
                f"The id {record.id!r} comes twice in one call, at positions {seen[record.id]} "
                f"and {position}. Give each record its own id, or add them in two calls."
            )
        seen[record.id] = position
        _check_string(
            record.text, f"text of {record.id!r}", position, limit=defaults.MAX_TEXT_BYTES
        )
        if not record.text and record.vector is None:
            raise RecordError(
                f"Record {record.id!r} has neither text nor vector, so nothing could ever find it."
            )
        encoded, metadata = _metadata(record, scope)
        taken.append(NewRecord(id=record.id, text=record.text, metadata_json=encoded))
        metadatas.append(metadata)
        given.append(record.vector)
    vectors, has_vector = _vectors(given, [r.id for r in taken], dim=dim, metric=metric)
    return Batch(taken, metadatas, vectors, has_vector)


def take_in_documents(
    documents: Iterable[Record | Mapping[str, Any]], scope: Scope
) -> list[NewDocument]:
    """Check and encode documents that are kept and not searched.

    Args:
        documents: Records or dicts without vectors; any iterable, read once. A text may be empty.
        scope: Stamped on every document.

    Raises:
        RecordError: On a document that cannot be stored, naming its position and id.
        ScopeError: On a document outside the scope.
    """
    if isinstance(documents, (str, bytes, Mapping, Record)):
        raise RecordError(
            f"documents takes an iterable of documents; got a single {type(documents).__name__}. "
            "Put it in a list."
        )
    taken: dict[str, NewDocument] = {}
    for position, item in enumerate(documents):
        document = _as_record(item, position)
        if document.vector is not None:
            raise RecordError(
                f"Document {document.id!r} has a vector, but documents are kept, not searched. "
                "Add it as a record, or leave the vector out."
            )
        _check_string(document.id, "id", position, limit=defaults.MAX_ID_BYTES)
        if not document.id:
            raise RecordError(f"Document {position} has an empty id.")
        if document.id in taken:
            raise RecordError(
                f"The document id {document.id!r} comes twice in one call, the second time at "
                f"position {position}. Give each document its own id, or add them in two calls."
            )
        what = f"text of {document.id!r}"
        _check_string(document.text, what, position, limit=defaults.MAX_DOCUMENT_BYTES)
        encoded, _ = _metadata(document, scope)
        taken[document.id] = NewDocument(document.id, document.text, encoded)
    return list(taken.values())


def check_ids(ids: Iterable[str]) -> list[str]:
    """Ids as a list without repeats, in the order they came.

    Raises:
        RecordError: If it is a bare string, or holds something else than strings.
    """
    if isinstance(ids, (str, bytes)):
        raise RecordError(f"ids takes a list of ids; got the string {ids!r}. Put it in a list.")
    if not isinstance(ids, Iterable):
        raise RecordError(f"ids takes a list of ids; got {type(ids).__name__}.")
    wanted = list(ids)
    for position, id in enumerate(wanted):
        _check_string(id, "id", position, limit=defaults.MAX_ID_BYTES)
    return list(dict.fromkeys(wanted))


def _as_record(item: Record | Mapping[str, Any], position: int) -> Record:
    if isinstance(item, Record):
        return item
    if not isinstance(item, Mapping):
        raise RecordError(
            f"Record {position} is a {type(item).__name__}; a Record or a dict with "
            f"{', '.join(_FIELDS)} is accepted."
        )
    unknown = [key for key in item if key not in _FIELDS]
    if unknown:
        raise RecordError(
            f"Record {position} has the unknown field {unknown[0]!r}; accepted are "
            f"{', '.join(_FIELDS)}. Put anything else into metadata."
        )
    given = {key: value for key, value in item.items() if value is not None}
    return Record(
        id=given["id"] if "id" in given else str(uuid.uuid4()),
        text=given.get("text", ""),
        vector=given.get("vector"),
        metadata=given.get("metadata", {}),
    )


def _check_string(value: object, what: str, position: int, *, limit: int) -> None:
    if not isinstance(value, str):
        raise RecordError(
            f"The {what} at position {position} must be a string; got {type(value).__name__}."
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise RecordError(
            f"The {what} at position {position} holds a lone surrogate at character {error.start}, "
            "which no encoding can store. Decode the source with errors='replace', or drop it."
        ) from error
    if size > limit:
        raise RecordError(
            f"The {what} at position {position} has {size:,} bytes; at most {limit:,} are "
            "accepted. Split it into chunks first."
        )


def _metadata(record: Record, scope: Scope) -> tuple[str, dict[str, Any]]:
    try:
        encoded = encode_metadata(record.metadata)
        metadata = decode_metadata(encoded)
        if scope:
            encoded = encode_metadata(scope.stamp(metadata, id=record.id))
            metadata = decode_metadata(encoded)
    except RecordError as error:
        raise RecordError(f"Record {record.id!r}: {error}") from error
    return encoded, metadata


def _vectors(
    given: list[Any], ids: list[str], *, dim: int | None, metric: Metric
) -> tuple[NDArray[np.float32] | None, NDArray[np.bool_]]:
    has_vector = np.fromiter((v is not None for v in given), dtype=np.bool_, count=len(given))
    if not has_vector.any():
        return None, has_vector
    present = check_vectors(
        [v for v in given if v is not None],
        dim=dim,
        metric=metric,
        names=[id for id, has in zip(ids, has_vector, strict=True) if has],
    )
    if has_vector.all():
        return present, has_vector
    vectors = np.zeros((len(given), present.shape[1]), dtype=np.float32)
    vectors[has_vector] = present
    return vectors, has_vector
