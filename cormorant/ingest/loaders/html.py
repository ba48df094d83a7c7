"""What does a page say to a reader, section by section?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag

from cormorant.ingest.loaders.decoding import decoded

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]

_UNREAD: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "head", "nav", "iframe", "object", "button"}
)
_BLOCKS: Final = frozenset(
    """p div section article li ul ol table tr br hr pre blockquote dl dt dd figure figcaption main
    header footer aside details summary h1 h2 h3 h4 h5 h6""".split()  # noqa: SIM905 - a paragraph
)
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """A document for each heading's text. Nothing is fetched and no script is looked at."""
    page = BeautifulSoup(decoded(file), "html.parser")
    title = page.title.get_text(" ", strip=True) if page.title else None
    sections: list[str | None] = [None] * len(_HEADINGS)
    parts: list[str] = []
    for kind, text in _words(page):
        if kind is None:
            parts.append(text)
            continue
        yield _joined(parts), _told(title, sections)
        parts = [text, "\n"]
        sections[kind:] = [text.strip(), *[None] * (len(_HEADINGS) - kind - 1)]
    yield _joined(parts), _told(title, sections)


def _words(page: Tag) -> Iterator[tuple[int | None, str]]:
    """What is written, in order; with the level, from 0, where it is a heading."""
    waiting: list[PageElement | str | None] = [page]
    within_pre = 0
    while waiting:  # no recursion: pages may nest without end
        each = waiting.pop()
        if each is None:
            within_pre -= 1
        elif isinstance(each, Tag):
            if each.name in _UNREAD:
                continue
            if each.name in _HEADINGS:
                yield _HEADINGS.index(each.name), each.get_text(" ", strip=True)
                continue
            edge = ["\n"] if each.name in _BLOCKS else [" "] if each.name in {"td", "th"} else []
            if each.name == "pre":
                within_pre += 1
                waiting.append(None)
            waiting.extend([*edge, *reversed(list(each.children)), *edge])
        elif isinstance(each, NavigableString):
            if type(each) is NavigableString:  # no comment, no doctype
                yield None, str(each) if within_pre else re.sub(r"\s+", " ", str(each))
        elif isinstance(each, str):
            yield None, each


def _joined(parts: list[str]) -> str:
    text = "".join(parts)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]*\n[ \t]*", "\n", text)).strip()


def _told(title: str | None, sections: list[str | None]) -> dict[str, Any]:
    path = " > ".join(each for each in sections if each)
    return {"title": title or next((s for s in sections if s), None), "section": path}
