"""Which format has a file? Its suffix says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["FORMATS", "Format", "format_of"]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file.

    Attributes:
        name: As a document's metadata has it under ``type``.
        module: Of ``cormorant.ingest.loaders``, which reads it.
        suffixes: By which it is told, in lower case.
        needs: The package that reads it, and the module by which it is imported; None if
            Python does.
    """

    name: str
    module: str
    suffixes: tuple[str, ...]
    needs: str | None = None


_CODE: Final = (
    "py,pyi,js,jsx,ts,tsx,java,kt,c,h,cc,cpp,hpp,cs,go,rs,rb,php,swift,scala,sh,sql,lua,r,pl,hs,ex,"
    "exs,ps1,proto,css,toml,ini,cfg,yaml,yml,xml,dockerfile"
)

FORMATS: Final = (
    Format("text", "plain", (".txt", ".text", ".log", ".rst", ".adoc", ".org", ".tex", "")),
    Format("markdown", "plain", (".md", ".markdown", ".mdx")),
    Format("html", "html", (".html", ".htm", ".xhtml"), "bs4"),
    Format("pdf", "pdf", (".pdf",), "pypdf"),
    Format("docx", "docx", (".docx",), "docx"),
    Format("pptx", "pptx", (".pptx",), "pptx"),
    Format("xlsx", "xlsx", (".xlsx", ".xlsm"), "openpyxl"),
    Format("csv", "table", (".csv", ".tsv")),
    Format("json", "json_values", (".json", ".jsonl", ".ndjson")),
    Format("email", "mail", (".eml",)),
    Format(
        "code",
        "plain",
        tuple(f".{each}" for each in _CODE.split(",")),
    ),
)

_BY_SUFFIX: Final[Mapping[str, Format]] = MappingProxyType(
    {suffix: each for each in FORMATS for suffix in each.suffixes}
)


def format_of(source: str) -> Format | None:
    """The format of a file's name; None if no loader knows it.

    Example:
        >>> format_of("docs/Guide.MD").name, format_of("README").name, format_of("logo.png")
        ('markdown', 'text', None)
    """
    name = source.rsplit("/", 1)[-1]
    _, dot, suffix = name.rpartition(".")
    return _BY_SUFFIX.get(dot + suffix.lower() if dot else "")
