"""In which encoding is a file of text, and what does it say in it?"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cormorant.errors import LoadError

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["decoded", "decoded_parts"]

_LOOKED_AT: Final = 2**18
_PART: Final = 2**20  # characters
_WHOLE: Final = 64 * 2**20  # bytes of a file that is held whole, such as JSON
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OLD: Final = ("gb18030", "big5", "shift_jis", "cp1252")


def decoded(file: SourceFile) -> str:
    """The whole text.

    Raises:
        LoadError: If it is no text, or too large to be held whole.
    """
    if file.size_bytes > _WHOLE:
        raise LoadError(
            f"{file.source} has {file.size_bytes:,} bytes; at most {_WHOLE:,} are read of a "
            "file of its kind. Split it.",
            path=file.path,
        )
    return "".join(decoded_parts(file))


def decoded_parts(file: SourceFile) -> Iterator[str]:
    """The text, piece by piece, each ending at the end of a line where there is one.

    Lines end in a line feed, whatever they ended in.

    Raises:
        LoadError: If it is no text: bytes that no encoding known here explains.
    """
    encoding = _encoding(file)
    rest = ""
    try:
        with file.path.open(encoding=encoding, newline=None) as text:
            while block := text.read(_PART):
                rest += block
                if len(block) < _PART:
                    continue
                end = max(rest.rfind("\n\n") + 2, rest.rfind("\n") + 1 if "\n\n" not in rest else 0)
                end = end if end > 1 else len(rest) - 1  # never between two halves of a character
                yield rest[:end]
                rest = rest[end:]
    except (UnicodeDecodeError, UnicodeError) as error:
        raise LoadError(
            f"{file.source} looked like {encoding}, and is not: {error}", path=file.path
        ) from error
    if rest:
        yield rest


def _encoding(file: SourceFile) -> str:
    with file.path.open("rb") as raw:
        sample = raw.read(_LOOKED_AT)
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        raise LoadError(
            f"{file.source} holds null bytes: it is no text. If it is UTF-16, it needs a byte "
            "order mark.",
            path=file.path,
        )
    whole = file.size_bytes <= len(sample)
    if _explains("utf-8", sample, whole=whole):
        return "utf-8"
    return _guessed(sample, whole=whole) or _none(file)


def _guessed(sample: bytes, *, whole: bool) -> str | None:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        candidates: tuple[str, ...] = _OLD
    else:
        best = from_bytes(sample).best()
        candidates = _OLD if best is None else (best.encoding, *_OLD)
    return next((name for name in candidates if _explains(name, sample, whole=whole)), None)


def _explains(encoding: str, sample: bytes, *, whole: bool) -> bool:
    try:
        reader = codecs.getincrementaldecoder(encoding)()
        reader.decode(sample, final=whole)
    except (UnicodeError, LookupError):
        return False
    return True


def _none(file: SourceFile) -> str:
    raise LoadError(
        f"{file.source} is in no encoding that is known here. Save it as UTF-8.", path=file.path
    )
