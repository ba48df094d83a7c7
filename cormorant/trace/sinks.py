"""Where do finished traces go? To lines of JSON, to a log, or to a function."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cormorant.trace.record import as_records
from cormorant.trace.span import Span, listen

__all__ = ["to_function", "to_json_lines", "to_log"]

logger = logging.getLogger(__name__)


@contextmanager
def to_function(
    take: Callable[[list[dict[str, Any]]], None], *, content: bool = False
) -> Iterator[None]:
    """Hand each finished trace, as JSON values, to a function while the context is open.

    Args:
        take: Called in the thread the call ran in. What it raises is logged and goes no further.
        content: Whether questions and texts are among the values.

    Example:
        >>> import cormorant
        >>> from cormorant import trace
        >>> seen = []
        >>> with cormorant.open(":memory:") as store, trace.to_function(seen.extend):
        ...     _ = store.add([{"id": "a", "text": "fish"}])
        ...     _ = store.search(cormorant.Query(text="fish"))
        >>> seen[0]["name"], seen[0]["hits"][0]["id"]
        ('search', 'a')
    """

    def sink(span: Span) -> None:
        if span.parent is None:
            try:
                take(as_records(span, content=content))
            except Exception:
                logger.exception("A trace could not be handed on.")

    with listen(sink):
        yield


@contextmanager
def to_json_lines(path: str | Path, *, content: bool = False) -> Iterator[None]:
    """Append each span of each finished trace to a file, a line of JSON each."""
    lock = threading.Lock()
    with Path(path).open("a", encoding="utf-8") as file:

        def take(records: list[dict[str, Any]]) -> None:
            lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records)
            with lock:
                file.write(lines)
                file.flush()

        with to_function(take, content=content):
            yield


@contextmanager
def to_log(
    log: logging.Logger | None = None, *, level: int = logging.INFO, content: bool = False
) -> Iterator[None]:
    """Log each finished trace as one line: name, milliseconds, hits, error."""
    told = log or logging.getLogger("cormorant.trace")

    def take(records: list[dict[str, Any]]) -> None:
        root = records[0]
        asked = f" {root['content']}" if content and "content" in root else ""
        told.log(
            level,
            "%s %.2f ms%s%s%s",
            root["name"],
            1e3 * root["seconds"],
            f", {root['found']} hits" if "found" in root else "",
            f", {root['error']}" if root["error"] else "",
            asked,
        )

    with to_function(take, content=content):
        yield
