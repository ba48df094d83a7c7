"""Which records and documents come and go together?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cormorant.errors import RecordError
from cormorant.store.intake import check_ids

if TYPE_CHECKING:
    from cormorant.storage import Reader

__all__ = ["Family"]

_NUMBERED = re.compile(r"#\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Family:
    """Documents, and the records that name one of them in a metadata field.

    Args:
        ids: Of the documents.
        field: The metadata field in which a record names its document; None for the documents
            alone.
        parts: Whether ``a`` also stands for its parts ``a#0``, ``a#1``, …
        keep: Whether the documents stay, and the records alone go.

    Raises:
        RecordError: If the ids are not ids, or the field is not a name.
    """

    ids: tuple[str, ...]
    field: str | None
    parts: bool = False
    keep: bool = False

    def __init__(
        self, ids: Iterable[str], field: str | None, *, parts: bool = False, keep: bool = False
    ) -> None:
        named = isinstance(field, str) and field and not field.startswith("$")
        if field is not None and not named:
            raise RecordError(
                "A family's field is the name of a metadata field, such as 'doc_id'; got "
                f"{field!r}."
            )
        object.__setattr__(self, "ids", tuple(check_ids(ids)))
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "keep", keep)

    def document_ids(self, reader: Reader) -> list[str]:
        """The ids of its documents, parts included; some may not be stored."""
        found = list(self.ids)
        if self.parts:
            for id in self.ids:
                found += [
                    each
                    for each in reader.document_ids(f"{id}#")
                    if _NUMBERED.fullmatch(each, len(id))
                ]
        return found
