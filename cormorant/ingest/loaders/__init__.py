"""What does a file say? One module a format; ``decoding`` for all that is text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from langchain_core.documents import Document

from cormorant.errors import CormorantError, LoadError, MissingDependency
from cormorant.ingest.loaders.formats import FORMATS, Format, format_of
from cormorant.ingest.loaders.language import language_of

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["FORMATS", "Format", "format_of", "load"]

_UNPACKED: Final = 512 * 2**20  # of a zipped document, in bytes; and so many times its size
_TIMES: Final = 200


def load(file: SourceFile) -> Iterator[Document]:
    """Read a file, a document for each page, sheet, slide or section it has.

    Args:
        file: As :func:`~cormorant.ingest.walk` found it, or ``SourceFile.at(path)``.

    Yields:
        Documents in order. Their metadata: ``source``, ``type``, ``modified`` (ISO, UTC),
        ``language`` where its words tell, and where the format has them ``title``, ``page`` (from
        1), ``sheet``, ``section`` (the headings above, joined by " > ").

    Raises:
        LoadError: If it cannot be read, or holds no text: encrypted, broken, scanned, empty.
        MissingDependency: If the extra ``files`` is not installed and the format needs it.
    """
    found = format_of(file.source) or FORMATS[0]
    if found.needs is not None:
        _check_installed(found)
    whole = {
        "source": file.source,
        "type": found.name,
        "modified": datetime.fromtimestamp(file.modified, UTC).isoformat(timespec="seconds"),
    }
    something = False
    try:
        if found.needs in {"docx", "pptx", "openpyxl"}:
            _check_unpacked(file)
        for text, metadata in import_module(f"{__name__}.{found.module}").read(file):
            if text.strip():
                something = True
                language = language_of(text)
                known = whole if language is None else {**whole, "language": language}
                yield Document(text, metadata={**known, **_plain(metadata)})
    except (CormorantError, MemoryError):
        raise
    except OSError as error:
        raise LoadError(f"{file.source}: {error.strerror or error}.", path=file.path) from error
    except Exception as error:  # of a library, about a file that may hold anything
        raise LoadError(
            f"{file.source} cannot be read as {found.name}: {type(error).__name__}: {error}",
            path=file.path,
        ) from error
    if not something:
        raise LoadError(
            f"{file.source} holds no text."
            + (" Is it scanned? Recognise its text first." if found.name == "pdf" else ""),
            path=file.path,
        )


def _check_installed(wanted: Format) -> None:
    try:
        import_module(str(wanted.needs))
    except ImportError as error:
        raise MissingDependency(
            f"reading {wanted.name} files ({wanted.needs})", extra="files"
        ) from error


def _check_unpacked(file: SourceFile) -> None:
    """Refuse an archive that unpacks to more than there can be in a document.

    Raises:
        LoadError: If it does, or is none.
    """
    try:
        with zipfile.ZipFile(file.path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise LoadError(
            f"{file.source} is broken, or encrypted: {error}.", path=file.path
        ) from error
    if total > min(_UNPACKED, _TIMES * max(file.size_bytes, 2**20)):
        raise LoadError(
            f"{file.source} unpacks to {total:,} bytes, which is more than is read of a document.",
            path=file.path,
        )


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if value not in (None, "")}
