"""What does a PDF say, page by page?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pypdf import PdfReader

from cormorant.errors import LoadError

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """A document a page, in the order of the file.

    Raises:
        LoadError: If it is encrypted with a password.
    """
    with file.path.open("rb") as raw:
        reader = PdfReader(raw)
        if reader.is_encrypted and not reader.decrypt(""):
            raise LoadError(
                f"{file.source} is encrypted. Save it without a password.", path=file.path
            )
        title = reader.metadata.title if reader.metadata else None
        for number, page in enumerate(reader.pages, start=1):
            yield page.extract_text(), {"title": title, "page": number}
